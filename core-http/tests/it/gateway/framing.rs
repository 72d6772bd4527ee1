//! Ambiguous and oversized HTTP messages, which are refused even where hyper would accept them.

use super::world::{SESSION, World};
use crate::world::server::{Server, options, status};

async fn start_server(world: &World) -> Server {
    Server::start(world.gateway.clone(), options()).await
}

#[tokio::test]
async fn ambiguously_framed_requests_are_400_and_the_connection_is_closed() {
    let world = World::new();
    let server = start_server(&world).await;
    for (claim, line, head, body) in [
        ("no Host", "POST /api/v1/platforms", "", ""),
        (
            "two Hosts",
            "GET /api/v1/platforms",
            "Host: a\r\nHost: b\r\n",
            "",
        ),
        (
            "gzip before chunked",
            "POST /api/v1/platforms",
            "Host: a\r\nTransfer-Encoding: gzip, chunked\r\n",
            "0\r\n\r\n",
        ),
        (
            "chunked twice",
            "POST /api/v1/platforms",
            "Host: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            "0\r\n\r\n",
        ),
        (
            "two lengths",
            "POST /api/v1/platforms",
            "Host: a\r\nContent-Length: 4\r\nContent-Length: 5\r\n",
            "abcde",
        ),
        (
            "another host",
            "GET http://b/api/v1/platforms",
            "Host: a\r\n",
            "",
        ),
        ("space before colon", "GET /health", "Host : a\r\n", ""),
    ] {
        let auth = format!("Authorization: Bearer {SESSION}");
        let request = format!("{line} HTTP/1.1\r\n{head}{auth}\r\n\r\n{body}");
        let answer = server.send_raw(&request).await;
        assert_eq!(status(&answer), "400", "{claim}: {answer}");
    }
    assert!(world.received_requests().is_empty());
}

#[tokio::test]
async fn bytes_after_a_request_with_length_and_chunks_are_not_a_second_request() {
    let world = World::new();
    let head = format!(
        "POST /api/v1/platforms HTTP/1.1\r\nHost: a\r\nContent-Length: 60\r\n\
         Transfer-Encoding: chunked\r\nAuthorization: Bearer {SESSION}\r\n\r\n"
    );
    let second = "GET /health HTTP/1.1\r\nHost: a\r\n\r\n";
    let server = start_server(&world).await;
    let answer = server.send_raw(&format!("{head}0\r\n\r\n{second}")).await;
    assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{answer}");
    let seen = world.single_request();
    assert_eq!(seen.header("content-length"), "");
    assert_eq!(seen.header("transfer-encoding"), "");
}

#[tokio::test]
async fn connect_is_405() {
    let server = start_server(&World::new()).await;
    let answer = server.send_raw("CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n");
    assert_eq!(status(&answer.await), "405");
}

#[tokio::test]
async fn oversized_request_heads_are_431() {
    let server = start_server(&World::new()).await;
    for lines in [
        format!("X: {}\r\n", "x".repeat(40_000)),
        "X: y\r\n".repeat(120),
    ] {
        let request = format!("GET /health HTTP/1.1\r\nHost: a\r\n{lines}\r\n");
        assert_eq!(status(&server.send_raw(&request).await), "431");
    }
}
