//! Connections on which a service responds without reading the request body.

use std::convert::Infallible;
use std::sync::Arc;

use core_http::IncomingBody;
use core_http::kernel::{Body, bytes_body};
use http::{Request, Response};
use http_body_util::BodyExt;
use tokio::sync::Notify;

use crate::world::server::{Server, echo_length, options};

/// Starts a server that responds with 401: to `/none` without reading the body, to `/some` after the first frame. The
/// returned `Notify` is notified before each of these responses.
async fn server() -> (Server, Arc<Notify>) {
    let entered = Arc::new(Notify::new());
    let inside = Arc::clone(&entered);
    let service = tower::service_fn(move |request: Request<IncomingBody>| {
        let inside = Arc::clone(&inside);
        async move {
            match request.uri().path() {
                "/none" => {}
                "/some" => {
                    let mut body = request.into_body();
                    assert!(body.frame().await.is_some());
                }
                _ => return echo_length(request).await,
            }
            inside.notify_one();
            let refused = Response::builder().status(401);
            let refused: Response<Body> = refused.body(bytes_body("no")).unwrap();
            Ok::<_, Infallible>(refused)
        }
    });
    (Server::start(service, options()).await, entered)
}

fn head(path: &str, lines: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nHost: a\r\n{lines}\r\n")
}

/// Asserts that a response is the 401, and returns whether it announces that the connection closes.
fn closes(answer: &str) -> bool {
    assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
    assert!(answer.ends_with("\r\n\r\nno"), "{answer}");
    answer.contains("\r\nconnection: close\r\n")
}

#[tokio::test]
async fn a_connection_is_reused_after_a_small_unread_body() {
    let (server, entered) = server().await;
    let mut client = server.connect().await;
    let large = "x".repeat(200_000);
    let chunked = format!("{:x}\r\n{large}\r\n0\r\n\r\n", large.len());
    for path in ["/none", "/some"] {
        for (lines, body) in [
            ("Content-Length: 2\r\n", "{}"),
            ("Content-Length: 200000\r\n", &large),
            ("Transfer-Encoding: chunked\r\n", &chunked),
        ] {
            client.write(&head(path, lines)).await;
            let (first, rest) = body.split_at(1);
            if path == "/none" {
                // The body is sent after the service has responded.
                entered.notified().await;
            }
            client.write(first).await;
            client.write(rest).await;
            assert_eq!(client.answer().await, "401 no", "{path} {lines}");
        }
    }
    assert_eq!(client.ask("/").await, "200 fine");
}

#[tokio::test]
async fn line_43_a_large_unread_body_gets_a_response_and_closes_the_connection() {
    let (server, _) = server().await;
    // More than the socket buffers hold, so that the client is still writing when the response arrives.
    let large = "x".repeat(16_000_000);
    for path in ["/none", "/some"] {
        let mut client = server.connect().await;
        let lines = format!("Content-Length: {}\r\n", large.len());
        client.write(&head(path, &lines)).await;
        client.write(&large).await;
        assert!(closes(&client.read_to_close().await), "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_missing_body_delays_a_response_by_seconds_and_closes_the_connection() {
    let (server, _) = server().await;
    let mut client = server.connect().await;
    client.write(&head("/none", "Content-Length: 2\r\n")).await;
    assert!(closes(&client.read_to_close().await));
}

#[tokio::test]
async fn line_47_a_client_that_waits_for_100_continue_gets_the_response_instead() {
    let (server, _) = server().await;
    let lines = "Content-Length: 2\r\nExpect: 100-continue\r\n";
    assert!(closes(&server.send_raw(&head("/none", lines)).await));
}
