//! The memory that requests need. Each test measures a process of its own.

use std::convert::Infallible;
use std::process::Command;
use std::time::Duration;

use bytes::Bytes;
use core_domain::gateway::{RateKey, RatePolicy, RateSubject};
use core_domain::kernel::Timestamp;
use core_http::gateway::GatewayConfig;
use core_http::kernel::{Body, BoxError, MemoryRateLimiter, bytes_body};
use core_http::{IncomingBody, ServeOptions};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;
use tower::service_fn;

use super::over_http::{gateway_with, session_request_text};
use super::world::config;
use crate::world::server::{Server, options, status};

/// The environment variable that is set in the child process.
const MEASURED: &str = "CORE_HTTP_TESTS_MEASURED";

const MIB: usize = 1024 * 1024;

/// The size of an upload and of a response, in bytes.
const GIB: usize = 1024 * MIB;

/// The memory that a request may need at most, whatever its size: the buffers of four sockets and of the tasks.
const MAX_MEMORY: usize = 16 * MIB;

/// The documented memory of a full table of the rate limiter is about 6 MiB.
const MAX_TABLE: usize = 7 * MIB;

/// Returns whether this process is the child. Otherwise runs the test in one, and asserts that it passes.
fn is_child(test: &str) -> bool {
    if std::env::var_os(MEASURED).is_some() {
        return true;
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            &format!("gateway::memory::{test}"),
            "--nocapture",
        ])
        .env(MEASURED, "1")
        .output()
        .unwrap();
    let out = String::from_utf8_lossy(&output.stdout);
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{out}{log}");
    assert!(out.contains("1 passed"), "{out}");
    false
}

/// Returns the largest memory of this process so far, in bytes.
fn peak_memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: usize = peak
        .unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap();
    kib * 1024
}

#[test]
fn line_12_a_million_keys_need_no_more_than_the_documented_memory() {
    if !is_child("line_12_a_million_keys_need_no_more_than_the_documented_memory") {
        return;
    }
    let limiter = MemoryRateLimiter::new();
    let policy = RatePolicy::new("test", 100, Duration::from_secs(60)).unwrap();
    let client = "198.51.100.7".parse().unwrap();
    let count = |n: usize| {
        let path = format!("/{n}");
        let key = RateKey::new(&policy, client, RateSubject::Path(&path));
        let usage = limiter.count(key, &policy, Timestamp::from_millis(0));
        assert!(usage.is_allowed);
    };
    // The first request also loads the code.
    count(0);
    let before = peak_memory();
    for n in 1..1_000_000 {
        count(n);
    }
    let needed = peak_memory() - before;
    assert!(needed > MIB && needed < MAX_TABLE, "{needed}");
}

/// Returns a body that yields a gibibyte, and sends a message when it is dropped.
fn large(dropped: mpsc::UnboundedSender<()>) -> Body {
    struct Guard(mpsc::UnboundedSender<()>);
    impl Drop for Guard {
        fn drop(&mut self) {
            let _ = self.0.send(());
        }
    }
    let guard = Guard(dropped);
    let frames = futures_util::stream::unfold((0, guard), |(sent, guard)| async move {
        // Each frame has memory of its own, as those of a real service.
        let frame = Frame::data(Bytes::from(vec![b'x'; 64 * 1024]));
        (sent < GIB).then_some((Ok::<_, BoxError>(frame), (sent + 64 * 1024, guard)))
    });
    Body::new(StreamBody::new(Box::pin(frames)))
}

/// Creates a gateway over HTTP to a service that reads bodies and sends a gibibyte to `/download`.
async fn gateway(options: ServeOptions) -> (Server, Server, mpsc::UnboundedReceiver<()>) {
    let (sender, dropped) = mpsc::unbounded_channel();
    let service = service_fn(move |request: Request<IncomingBody>| {
        let sender = sender.clone();
        async move {
            if request.uri().path() == "/download" {
                return Ok::<_, Infallible>(Response::new(large(sender)));
            }
            let mut length = 0;
            let mut body = request.into_body();
            while let Some(Ok(frame)) = body.frame().await {
                length += frame.data_ref().map_or(0, Bytes::len);
            }
            Ok(Response::new(bytes_body(length.to_string())))
        }
    });
    let service = Server::start(service, crate::world::server::options()).await;
    let config = GatewayConfig {
        body_limit: 2 * GIB as u64,
        ..config()
    };
    let gateway = Server::start(gateway_with(service.address, config), options).await;
    let warm_up = session_request_text("GET /api/v1/platforms", "Connection: close\r\n", "");
    assert_eq!(status(&gateway.send_raw(&warm_up).await), "200");
    (gateway, service, dropped)
}

#[tokio::test]
async fn line_46_an_upload_of_a_gibibyte_needs_constant_memory() {
    if !is_child("line_46_an_upload_of_a_gibibyte_needs_constant_memory") {
        return;
    }
    let (gateway, _service, _) = gateway(options()).await;
    let piece = vec![b'x'; 256 * 1024];
    let before = peak_memory();
    let mut client = gateway.connect().await;
    let lines = format!("Content-Length: {GIB}\r\nConnection: close\r\n");
    let head = session_request_text("POST /api/v1/platforms/upload", &lines, "");
    client.write(&head).await;
    for _ in 0..GIB / piece.len() {
        client.0.write_all(&piece).await.unwrap();
    }
    let answer = client.read_to_close().await;
    assert!(answer.ends_with(&format!("\r\n\r\n{GIB}")), "{answer}");
    let needed = peak_memory() - before;
    assert!(needed < MAX_MEMORY, "{needed}");
}

#[tokio::test]
async fn line_46_a_client_that_does_not_read_a_gibibyte_needs_constant_memory() {
    if !is_child("line_46_a_client_that_does_not_read_a_gibibyte_needs_constant_memory") {
        return;
    }
    let options = ServeOptions {
        write_idle_timeout: Duration::from_secs(1),
        ..options()
    };
    let (gateway, _service, mut dropped) = gateway(options).await;
    let before = peak_memory();
    let mut client = gateway.connect().await;
    let request = session_request_text("GET /api/v1/platforms/download", "", "");
    client.write(&request).await;
    // The gateway closes the connection, and with it the response of the service.
    dropped.recv().await.unwrap();
    let needed = peak_memory() - before;
    assert!(needed < MAX_MEMORY, "{needed}");
    assert!(client.read_to_close().await.len() < 64 * MIB);
}
