//! Limits on connections: connections that are closed in favour of new ones, and connections that never are.

use std::convert::Infallible;
use std::sync::Arc;

use core_domain::gateway::TrustedProxies;
use core_http::kernel::Body;
use core_http::{IncomingBody, ServeOptions};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use tokio::sync::Semaphore;
use tower::service_fn;

use crate::world::server::{Client, Server, echo_length, get, options};

const HALF_HEAD: &str = "GET / HTTP/1.1\r\nHo";

/// A client address that the tests do not use by default.
const OTHER: &str = "127.0.0.2";

/// A service in which requests to `/held` wait for [`Held::release`], and the response to `/stream` is endless.
#[derive(Clone)]
struct BlockingService {
    begun: Arc<Semaphore>,
    released: Arc<Semaphore>,
}

impl BlockingService {
    fn new() -> Self {
        Self {
            begun: Arc::new(Semaphore::new(0)),
            released: Arc::new(Semaphore::new(0)),
        }
    }

    async fn server(&self, options: ServeOptions) -> Server {
        let held = self.clone();
        let service = service_fn(move |request| held.clone().answer(request));
        Server::start(service, options).await
    }

    async fn answer(self, request: Request<IncomingBody>) -> Result<Response<Body>, Infallible> {
        match request.uri().path() {
            "/held" => {
                self.begun.add_permits(1);
                self.released.acquire().await.unwrap().forget();
            }
            "/stream" => return Ok(Response::new(self.stream())),
            _ => {}
        }
        echo_length(request).await
    }

    /// Returns a body that sends a comment after every release.
    fn stream(self) -> Body {
        let frames = futures_util::stream::unfold(self, |held| async move {
            held.begun.add_permits(1);
            held.released.acquire().await.unwrap().forget();
            Some((Ok(Frame::data(":\n\n".into())), held))
        });
        Body::new(StreamBody::new(Box::pin(frames)))
    }

    /// Sends a request and returns when the request is in progress.
    async fn begin(&self, client: &mut Client, path: &str) {
        client.write(&get(path)).await;
        self.begun.acquire().await.unwrap().forget();
    }

    fn release(&self, requests: usize) {
        self.released.add_permits(requests);
    }
}

fn limited_to(connections: usize, per_client: usize) -> ServeOptions {
    ServeOptions {
        max_connections: connections,
        max_connections_per_client: per_client,
        ..options()
    }
}

#[track_caller]
fn assert_refused(answer: &str, limit: usize) {
    let body = answer
        .strip_prefix("503 ")
        .unwrap_or_else(|| panic!("{answer}"));
    let body: serde_json::Value = serde_json::from_str(body).unwrap();
    let error = &body["error"];
    assert_eq!(error["code"], "SERVICE_UNAVAILABLE");
    assert_eq!(error["details"]["limit"], limit);
    assert!(error["requestId"].as_str().is_some_and(|id| !id.is_empty()));
}

#[tokio::test]
async fn one_address_with_incomplete_heads_does_not_block_another() {
    let server = Server::start(service_fn(echo_length), limited_to(200, 128)).await;
    let mut attackers = Vec::new();
    for _ in 0..250 {
        let mut client = server.connect_from(OTHER).await;
        client.write(HALF_HEAD).await;
        attackers.push(client);
    }
    server.assert_serves_others().await;
    // The address keeps its newest 128 connections, so the listener has room for others.
    let mut other = server.connect().await;
    for _ in 0..3 {
        assert_eq!(other.ask("/").await, "200 fine");
    }
    let newest = attackers.split_off(250 - 128);
    for closed in attackers {
        assert_eq!(closed.read_to_close().await, "");
    }
    for mut client in newest {
        client.write("st: a\r\n\r\n").await;
        assert_eq!(client.answer().await, "200 fine");
    }
}

#[tokio::test]
async fn at_the_limit_the_oldest_incomplete_head_is_closed_for_a_new_connection() {
    let held = BlockingService::new();
    let server = held.server(limited_to(3, 100)).await;
    let mut active = server.connect().await;
    held.begin(&mut active, "/held").await;
    let (mut first, mut second) = (server.connect().await, server.connect().await);
    first.write(HALF_HEAD).await;
    second.write(HALF_HEAD).await;
    server.assert_serves_others().await;
    assert_eq!(first.read_to_close().await, "");
    second.write("st: a\r\n\r\n").await;
    assert_eq!(second.answer().await, "200 fine");
    held.release(1);
    assert_eq!(active.answer().await, "200 fine");
}

#[tokio::test]
async fn a_connection_above_the_limit_of_its_address_closes_an_older_one_of_that_address() {
    let server = Server::start(service_fn(echo_length), limited_to(100, 2)).await;
    let mut neighbour = server.connect_from(OTHER).await;
    assert_eq!(neighbour.ask("/").await, "200 fine");
    let mut own = Vec::new();
    for _ in 0..3 {
        let mut client = server.connect().await;
        assert_eq!(client.ask("/").await, "200 fine");
        own.push(client);
    }
    let newest = own.split_off(1);
    for oldest in own {
        assert_eq!(oldest.read_to_close().await, "");
    }
    for mut client in newest {
        assert_eq!(client.ask("/").await, "200 fine");
    }
    assert_eq!(neighbour.ask("/").await, "200 fine");
}

#[tokio::test]
async fn an_address_whose_connections_all_have_requests_is_refused_and_others_are_served() {
    let held = BlockingService::new();
    let server = held.server(limited_to(100, 2)).await;
    let (mut first, mut second) = (server.connect().await, server.connect().await);
    held.begin(&mut first, "/held").await;
    held.begin(&mut second, "/held").await;
    let mut third = server.connect().await;
    assert_refused(&third.ask("/").await, 2);
    let mut other = server.connect_from(OTHER).await;
    assert_eq!(other.ask("/").await, "200 fine");
    held.release(2);
    assert_eq!(first.answer().await, "200 fine");
    assert_eq!(second.answer().await, "200 fine");
    server.assert_serves_others().await;
}

#[tokio::test]
async fn a_request_and_a_stream_in_progress_are_never_closed_for_another_connection() {
    let held = BlockingService::new();
    let server = held.server(limited_to(2, 100)).await;
    let (mut request, mut stream) = (server.connect().await, server.connect().await);
    held.begin(&mut request, "/held").await;
    held.begin(&mut stream, "/stream").await;
    for _ in 0..5 {
        let mut refused = server.connect().await;
        assert_refused(&refused.ask("/").await, 2);
    }
    held.release(2);
    assert_eq!(request.answer().await, "200 fine");
    stream.read_until(":\n\n").await;
}

#[tokio::test]
async fn refused_connections_that_send_nothing_do_not_block_the_listener() {
    let held = BlockingService::new();
    let server = held.server(limited_to(1, 100)).await;
    let mut active = server.connect().await;
    held.begin(&mut active, "/held").await;
    let mut silent = Vec::new();
    for _ in 0..200 {
        silent.push(server.connect().await);
    }
    held.release(1);
    assert_eq!(active.answer().await, "200 fine");
    server.assert_serves_others().await;
}

#[tokio::test]
async fn a_trusted_proxy_has_no_limit_per_address() {
    let held = BlockingService::new();
    let server = held
        .server(ServeOptions {
            trusted_proxies: TrustedProxies::parse([OTHER]).unwrap(),
            ..limited_to(100, 1)
        })
        .await;
    let mut clients = Vec::new();
    for _ in 0..5 {
        let mut client = server.connect_from(OTHER).await;
        held.begin(&mut client, "/held").await;
        clients.push(client);
    }
    held.release(5);
    for mut client in clients {
        assert_eq!(client.answer().await, "200 fine");
    }
}

#[tokio::test]
async fn line_02_a_refused_connection_gets_the_security_headers_and_the_envelope() {
    let held = BlockingService::new();
    let server = held.server(limited_to(1, 100)).await;
    let mut active = server.connect().await;
    held.begin(&mut active, "/held").await;
    let answer = server.send_raw(&get("/")).await;
    for line in [
        "x-content-type-options: nosniff",
        "x-frame-options: DENY",
        "referrer-policy: no-referrer",
        "content-type: application/json",
        "retry-after: 1",
        "x-request-id: connection-1",
        "connection: close",
    ] {
        assert!(answer.contains(&format!("\r\n{line}\r\n")), "{answer}");
    }
    assert!(
        answer.contains("\"requestId\":\"connection-1\""),
        "{answer}"
    );
    held.release(1);
    assert_eq!(active.answer().await, "200 fine");
}
