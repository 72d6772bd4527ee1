//! The bytes on the connections between the gateway and a service over HTTP.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use core_http::gateway::GatewayConfig;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use super::over_http::{gateway_to, gateway_with, session_request_text};
use super::world::config;
use crate::world::server::{Server, options, status};

const CLOSE: &str = "Connection: close\r\n";

/// A service that sends fixed bytes once a request has arrived up to a text, and records the bytes of its requests.
struct RawService {
    address: SocketAddr,
    received: Arc<Mutex<Vec<u8>>>,
    /// Receives a message whenever the gateway has closed a connection.
    closed: mpsc::UnboundedReceiver<()>,
}

impl RawService {
    async fn start(end: &'static str, reply: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let received = Arc::new(Mutex::new(Vec::new()));
        let (sender, closed) = mpsc::unbounded_channel();
        let memory = Arc::clone(&received);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                respond(stream, end, reply, &memory).await;
                let _ = sender.send(());
            }
        });
        Self {
            address,
            received,
            closed,
        }
    }

    fn received_text(&self) -> String {
        String::from_utf8(self.received.lock().unwrap().clone()).unwrap()
    }
}

/// Serves one connection until the gateway closes it.
async fn respond(mut stream: TcpStream, end: &str, reply: &str, memory: &Mutex<Vec<u8>>) {
    let mut has_replied = false;
    let mut bytes = [0; 64 * 1024];
    while let Ok(length) = stream.read(&mut bytes).await {
        if length == 0 {
            return;
        }
        let is_complete = {
            let mut memory = memory.lock().unwrap();
            memory.extend_from_slice(&bytes[..length]);
            String::from_utf8_lossy(&memory).contains(end)
        };
        if is_complete && !has_replied {
            has_replied = true;
            if stream.write_all(reply.as_bytes()).await.is_err() {
                return;
            }
        }
    }
}

#[tokio::test]
async fn line_34_informational_responses_of_a_service_are_not_passed_on() {
    for informational in [
        "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n",
    ] {
        let last = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        let reply = format!("{informational}{last}").leak();
        let service = RawService::start("\r\n\r\n", reply).await;
        let gateway = Server::start(gateway_to(service.address), options()).await;
        let request = session_request_text("GET /api/v1/platforms", CLOSE, "");
        let answer = gateway.send_raw(&request).await;
        assert_eq!(status(&answer), "200", "{answer}");
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{answer}");
        assert!(!answer.contains("link: "), "{answer}");
        assert!(answer.ends_with("\r\n\r\nok"), "{answer}");
    }
}

#[tokio::test]
async fn line_34_responses_without_a_body_get_none_and_no_length() {
    for (reply, method, expected, has_length) in [
        ("HTTP/1.1 204 No Content\r\n\r\n", "GET", "204", false),
        (
            "HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\n\r\n",
            "GET",
            "304",
            false,
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n",
            "HEAD",
            "200",
            true,
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            "HEAD",
            "200",
            false,
        ),
        ("HTTP/1.1 204 No Content\r\n\r\n", "HEAD", "204", false),
    ] {
        let service = RawService::start("\r\n\r\n", reply).await;
        let gateway = Server::start(gateway_to(service.address), options()).await;
        let line = format!("{method} /api/v1/platforms");
        let request = session_request_text(&line, CLOSE, "");
        let answer = gateway.send_raw(&request).await;
        assert_eq!(status(&answer), expected, "{answer}");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert_eq!(body, "", "{reply}");
        assert_eq!(head.contains("\r\ncontent-length: 7"), has_length, "{head}");
        assert_eq!(head.contains("content-length"), has_length, "{head}");
    }
}

#[tokio::test]
async fn line_34_every_cookie_keeps_its_own_line() {
    let reply = "HTTP/1.1 200 OK\r\nSet-Cookie: a=1; Expires=Thu, 01 Jan 2032 00:00:00 GMT\r\nServer: theirs\r\n\
                 Set-Cookie: b=2\r\nX-Core-Role: owner\r\nConnection: X-Hop\r\nX-Hop: 1\r\nContent-Length: 0\r\n\r\n";
    let service = RawService::start("\r\n\r\n", reply).await;
    let gateway = Server::start(gateway_to(service.address), options()).await;
    let request = session_request_text("GET /api/v1/platforms", CLOSE, "");
    let answer = gateway.send_raw(&request).await;
    assert_eq!(answer.matches("set-cookie: ").count(), 2, "{answer}");
    for name in ["server: ", "x-core-role: ", "x-hop: "] {
        assert!(!answer.contains(name), "{answer}");
    }
}

#[tokio::test]
async fn line_41_a_request_with_bare_line_feeds_is_forwarded_with_proper_framing() {
    // hyper accepts such heads, and the gateway cannot see it.
    let reply = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
    let service = RawService::start("\r\n\r\nhello", reply).await;
    let gateway = Server::start(gateway_to(service.address), options()).await;
    let lines = "Content-Length: 5\r\nX-Mine: 1\r\nConnection: close\r\n";
    let request = session_request_text("POST /api/v1/platforms/p-1", lines, "hello");
    let answer = gateway.send_raw(&request.replace("\r\n", "\n")).await;
    assert_eq!(status(&answer), "200", "{answer}");
    let received = service.received_text();
    let (head, body) = received.split_once("\r\n\r\n").unwrap();
    assert_eq!(body, "hello");
    assert!(head.starts_with("POST /p-1 HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("\r\nx-mine: 1"), "{head}");
    assert_eq!(head.matches('\n').count(), head.matches("\r\n").count());
    assert_eq!(head.matches("content-length: 5").count(), 1, "{head}");
    assert!(!head.contains("transfer-encoding"), "{head}");
}

#[tokio::test]
async fn line_41_a_smuggled_request_in_a_body_stays_a_body() {
    let reply = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
    let smuggled = "GET /internal/x HTTP/1.1\r\nHost: a\r\n\r\n";
    let service = RawService::start("Host: a\r\n\r\n", reply).await;
    let gateway = Server::start(gateway_to(service.address), options()).await;
    let lines = format!("Content-Length: {}\r\n{CLOSE}", smuggled.len());
    let request = session_request_text("POST /api/v1/platforms/p-1", &lines, smuggled);
    let answer = gateway.send_raw(&request).await;
    assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{answer}");
    let received = service.received_text();
    let (head, body) = received.split_once("\r\n\r\n").unwrap();
    assert_eq!(body, smuggled);
    let length = format!("content-length: {}", smuggled.len());
    assert!(head.contains(&length), "{head}");
}

#[tokio::test]
async fn line_43_the_upstream_request_of_an_incomplete_body_is_aborted() {
    let mut service = RawService::start("never", "").await;
    let gateway = Server::start(gateway_to(service.address), options()).await;
    for (lines, sent) in [
        ("Content-Length: 100\r\n", "only this"),
        ("Transfer-Encoding: chunked\r\n", "9\r\nonly this\r\n"),
    ] {
        service.received.lock().unwrap().clear();
        let mut client = gateway.connect().await;
        let request = session_request_text("POST /api/v1/platforms", lines, sent);
        client.write(&request).await;
        client.0.shutdown().await.unwrap();
        client.read_to_close().await;
        service.closed.recv().await.unwrap();
        let received = service.received_text();
        let (head, body) = received.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("POST / HTTP/1.1"), "{head}");
        assert!(!body.ends_with("0\r\n\r\n"), "{body}");
        assert!(body.len() < 100, "{body}");
    }
}

#[tokio::test]
async fn line_43_an_early_response_of_a_service_is_passed_on_and_the_upload_ends() {
    let reply = "HTTP/1.1 409 Conflict\r\nContent-Length: 4\r\n\r\nbusy";
    let config = GatewayConfig {
        body_limit: 64_000_000,
        ..config()
    };
    let mut service = RawService::start("\r\n\r\n", reply).await;
    let gateway = Server::start(gateway_with(service.address, config), options()).await;
    let lines = "Content-Length: 64000000\r\n";
    let mut client = gateway.connect().await;
    let request = session_request_text("POST /api/v1/platforms", lines, "the first bytes");
    client.write(&request).await;
    let answer = client.read_to_close().await;
    assert_eq!(status(&answer), "409", "{answer}");
    assert!(answer.contains("connection: close"), "{answer}");
    assert!(answer.ends_with("\r\n\r\nbusy"), "{answer}");
    // The connection to the service is not used again: the rest of the body is missing on it.
    service.closed.recv().await.unwrap();
    assert!(service.received_text().len() < 10_000);
}
