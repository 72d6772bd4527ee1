//! A listener without free file descriptors. The test runs in a child process with a low limit of open files.

use std::process::Command;
use std::time::Duration;

use core_http::ServeOptions;
use tokio::net::TcpStream;
use tower::service_fn;

use crate::world::server::{Server, echo_length, options};

/// The environment variable that is set in the child process.
const BOUNDED: &str = "CORE_HTTP_TESTS_BOUNDED";

/// The operating system's error code for too many open files.
const EMFILE: i32 = 24;

#[tokio::test]
async fn a_listener_that_ran_out_of_file_descriptors_serves_again_when_some_are_free() {
    if std::env::var_os(BOUNDED).is_some() {
        return with_few_file_descriptors().await;
    }
    let own = "serve::descriptors::a_listener_that_ran_out_of_file_descriptors_serves_again_when_some_are_free";
    let output = Command::new("sh")
        .args(["-c", "ulimit -n 48 && exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", own, "--nocapture"])
        .env(BOUNDED, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{log}");
    assert!(said.contains("1 passed"), "{said}");
}

async fn with_few_file_descriptors() {
    let options = ServeOptions {
        max_connections: 10_000,
        ..options()
    };
    let server = Server::start(service_fn(echo_length), options).await;
    let mut clients = Vec::new();
    let error = loop {
        match TcpStream::connect(server.address).await {
            Ok(client) => clients.push(client),
            Err(error) => break error,
        }
    };
    assert_eq!(error.raw_os_error(), Some(EMFILE), "{error}");
    // The listener has reached the same limit by now, so it cannot accept the connections in its backlog.
    tokio::time::sleep(Duration::from_millis(200)).await;
    clients.truncate(4);
    server.assert_serves_others().await;
}
