//! The shutdown of a server: readiness, draining, and running requests.

use std::sync::Arc;
use std::time::Duration;

use core_http::{IncomingBody, ServeOptions};
use http::Request;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tower::service_fn;

use crate::world::World;
use crate::world::server::{Client, Server, echo_length, get, options, status};

#[tokio::test]
async fn line_55_requests_that_outlast_the_drain_time_are_aborted() {
    let entered = Arc::new(Notify::new());
    let inside = Arc::clone(&entered);
    let service = service_fn(move |request: Request<IncomingBody>| {
        let inside = Arc::clone(&inside);
        async move {
            if request.uri().path() == "/for-ever" {
                inside.notify_one();
                std::future::pending::<()>().await;
            }
            echo_length(request).await
        }
    });
    let options = ServeOptions {
        drain: Duration::from_millis(200),
        ..options()
    };
    let server = Server::start(service, options).await;
    let mut idle = server.connect().await;
    assert_eq!(idle.ask("/").await, "200 fine");
    let mut held = server.connect().await;
    held.write(&get("/for-ever")).await;
    entered.notified().await;
    server.stop.send(()).unwrap();
    assert_eq!(idle.read_to_close().await, "");
    assert_eq!(held.read_to_close().await, "");
    server.running.await.unwrap().unwrap();
}

#[tokio::test]
async fn line_55_a_shutdown_finishes_running_requests_and_accepts_no_new_ones() {
    let (entered, leave) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (inside, may_leave) = (Arc::clone(&entered), Arc::clone(&leave));
    let service = service_fn(move |request: Request<IncomingBody>| {
        let (inside, may_leave) = (Arc::clone(&inside), Arc::clone(&may_leave));
        async move {
            inside.notify_one();
            may_leave.notified().await;
            echo_length(request).await
        }
    });
    let server = Server::start(service, options()).await;
    let mut client = server.connect().await;
    client.write(&get("/")).await;
    entered.notified().await;
    server.stop.send(()).unwrap();
    while TcpStream::connect(server.address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    leave.notify_one();
    assert!(client.read_to_close().await.ends_with("fine"));
    server.running.await.unwrap().unwrap();
}

#[tokio::test]
async fn line_55_readiness_fails_first_while_the_listener_still_serves() {
    let world = World::new();
    let options = ServeOptions {
        drain_delay: Duration::from_secs(24 * 60 * 60),
        ..options()
    };
    let server = Server::start(world.registry.0.clone(), options).await;
    let mut before = server.connect().await;
    assert!(before.ask("/readyz").await.starts_with("200 "));
    server.stop.send(()).unwrap();
    loop {
        let answer = raw(server.address, &get("/readyz")).await;
        if status(&answer) == "503" {
            assert!(answer.contains("\"stopping\""), "{answer}");
            break;
        }
    }
    // Older connections end with their next response, and new ones are accepted.
    before.write(&get("/livez")).await;
    let answer = before.read_to_close().await;
    assert_eq!(status(&answer), "200");
    assert!(answer.contains("connection: close"), "{answer}");
    let answer = raw(server.address, &get("/health")).await;
    assert_eq!(status(&answer), "200");
    server.running.abort();
}

#[tokio::test]
async fn line_55_after_the_drain_delay_the_listener_accepts_no_connections() {
    let options = ServeOptions {
        drain_delay: Duration::from_millis(50),
        ..options()
    };
    let server = Server::start(service_fn(echo_length), options).await;
    server.assert_serves_others().await;
    server.stop.send(()).unwrap();
    server.running.await.unwrap().unwrap();
    assert!(TcpStream::connect(server.address).await.is_err());
}

/// Sends bytes on a new connection, which closes after the response. Returns the response.
async fn raw(address: std::net::SocketAddr, bytes: &str) -> String {
    let mut client = Client(TcpStream::connect(address).await.unwrap());
    let bytes = bytes.replace("Host: a\r\n", "Host: a\r\nConnection: close\r\n");
    client.write(&bytes).await;
    client.read_to_close().await
}

#[test]
fn line_55_by_default_requests_have_25_seconds_to_end() {
    let options = ServeOptions::default();
    assert_eq!(options.drain, Duration::from_secs(25));
    // The delay is zero unless configured, so that a server in a terminal stops at once.
    assert_eq!(options.drain_delay, Duration::ZERO);
}
