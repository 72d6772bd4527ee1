//! Clients that send heads and bodies slowly or not at all.

use std::time::Duration;

use core_http::ServeOptions;
use core_http::kernel::BodyTimes;
use tokio::io::AsyncWriteExt;
use tower::service_fn;

use crate::world::server::{Client, Server, echo_length, get, options};

const SHORT: Duration = Duration::from_millis(500);

/// Sends single bytes with pauses until the server closes the connection. Returns the response.
async fn trickle(mut client: Client, bytes: &str) -> String {
    for byte in bytes.as_bytes().iter().cycle() {
        let mut closed = [0_u8; 1];
        let next = tokio::time::timeout(SHORT / 25, client.0.peek(&mut closed)).await;
        if next.is_ok() || client.0.write_all(&[*byte]).await.is_err() {
            break;
        }
    }
    client.read_to_close().await
}

#[tokio::test]
async fn line_44_a_connection_with_an_incomplete_head_is_closed_while_others_are_served() {
    let options = ServeOptions {
        header_timeout: SHORT,
        ..options()
    };
    let server = Server::start(service_fn(echo_length), options).await;
    let silent = server.connect().await;
    let mut half = server.connect().await;
    half.write("GET / HTTP/1.1\r\nHo").await;
    let trickling = server.connect().await;
    let trickled = tokio::spawn(trickle(trickling, "GET / HTTP/1.1\r\nX: aaaaaaaaaaaa"));
    server.assert_serves_others().await;
    assert_eq!(half.read_to_close().await, "");
    assert_eq!(silent.read_to_close().await, "");
    assert_eq!(trickled.await.unwrap(), "");
    server.assert_serves_others().await;
}

#[tokio::test]
async fn line_44_a_second_head_has_the_same_timeout_from_its_first_byte() {
    let options = ServeOptions {
        header_timeout: SHORT,
        ..options()
    };
    let server = Server::start(service_fn(echo_length), options).await;
    let mut client = server.connect().await;
    assert_eq!(client.ask("/").await, "200 fine");
    client.write("GET / HT").await;
    assert_eq!(client.read_to_close().await, "");
}

#[tokio::test]
async fn a_connection_may_be_idle_longer_than_the_header_timeout() {
    let options = ServeOptions {
        header_timeout: SHORT,
        ..options()
    };
    let server = Server::start(service_fn(echo_length), options).await;
    let mut client = server.connect().await;
    assert_eq!(client.ask("/").await, "200 fine");
    // The test needs real time, because it tests timeouts on a real socket.
    tokio::time::sleep(SHORT * 3).await;
    assert_eq!(client.ask("/").await, "200 fine");
}

#[tokio::test]
async fn line_49_a_connection_without_another_request_is_closed_after_the_keep_alive_timeout() {
    let options = ServeOptions {
        keep_alive_timeout: SHORT,
        ..options()
    };
    let server = Server::start(service_fn(echo_length), options).await;
    let mut client = server.connect().await;
    assert_eq!(client.ask("/").await, "200 fine");
    assert_eq!(client.ask("/").await, "200 fine");
    assert_eq!(client.read_to_close().await, "");
    server.assert_serves_others().await;
}

#[tokio::test]
async fn a_body_that_pauses_or_takes_too_long_is_refused_while_others_are_served() {
    let options = ServeOptions {
        body_times: BodyTimes {
            idle: SHORT,
            total: SHORT * 3,
        },
        ..options()
    };
    let server = Server::start(service_fn(echo_length), options).await;
    let head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n";
    let mut paused = server.connect().await;
    paused.write(&format!("{head}only this")).await;
    let mut trickling = server.connect().await;
    trickling.write(head).await;
    let trickled = tokio::spawn(trickle(trickling, "x"));
    server.assert_serves_others().await;
    for answer in [paused.read_to_close().await, trickled.await.unwrap()] {
        assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
        assert!(
            answer.ends_with("The body did not arrive in time."),
            "{answer}"
        );
    }
    server.assert_serves_others().await;
}

#[tokio::test]
async fn a_body_without_long_pauses_may_take_longer_than_the_idle_timeout() {
    let options = ServeOptions {
        body_times: BodyTimes {
            idle: SHORT * 4,
            total: SHORT * 100,
        },
        ..options()
    };
    let server = Server::start(service_fn(echo_length), options).await;
    let mut client = server.connect().await;
    client
        .write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\n")
        .await;
    for _ in 0..6 {
        tokio::time::sleep(SHORT).await;
        client.write("x").await;
    }
    assert_eq!(client.answer().await, "200 6");
}

#[tokio::test]
async fn pipelined_requests_all_get_a_response() {
    let server = Server::start(service_fn(echo_length), options()).await;
    let mut client = server.connect().await;
    client.write(&get("/").repeat(3)).await;
    client
        .write("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        .await;
    let answers = client.read_to_close().await;
    assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 4, "{answers}");
}
