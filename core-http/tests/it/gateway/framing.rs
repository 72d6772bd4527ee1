//! Ambiguous and oversized HTTP messages, which are refused even where hyper would accept them.

use http::Method;
use proptest::prelude::*;
use tokio::io::AsyncWriteExt;

use super::over_http::session_request_text;
use super::world::{API_KEY, SESSION, World, config, session_request};
use crate::world::server::{Server, options, status};

const CLOSE: &str = "Connection: close\r\n";

async fn start_server(world: &World) -> Server {
    Server::start(world.gateway.clone(), options()).await
}

#[tokio::test]
async fn line_41_ambiguously_framed_requests_are_400_and_the_connection_is_closed() {
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
async fn line_41_bytes_after_a_request_with_length_and_chunks_are_not_a_second_request() {
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
async fn line_42_connect_and_trace_are_405_at_the_door() {
    let world = World::new();
    let server = start_server(&world).await;
    for head in [
        "CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n",
        "TRACE /api/v1/platforms HTTP/1.1\r\nHost: a\r\n\r\n",
        "TRACE /health HTTP/1.1\r\nHost: a\r\n\r\n",
    ] {
        assert_eq!(status(&server.send_raw(head).await), "405", "{head}");
    }
    let with_session = session_request_text("TRACE /api/v1/platforms", "", "");
    assert_eq!(status(&server.send_raw(&with_session).await), "405");
    assert!(world.received_requests().is_empty());
}

#[tokio::test]
async fn line_44_oversized_request_heads_are_431() {
    let server = start_server(&World::new()).await;
    for lines in [
        format!("X: {}\r\n", "x".repeat(40_000)),
        "X: y\r\n".repeat(120),
    ] {
        let request = format!("GET /health HTTP/1.1\r\nHost: a\r\n{lines}\r\n");
        assert_eq!(status(&server.send_raw(&request).await), "431");
    }
}

#[tokio::test]
async fn line_40_malformed_framing_is_400_and_no_service_receives_it() {
    let world = World::new();
    let server = start_server(&world).await;
    let line = "POST /api/v1/platforms";
    for (lines, body) in [
        ("Content-Length: 5, 5\r\n", "hello"),
        ("Content-Length: 5\r\nContent-Length: 6\r\n", "hello!"),
        ("Content-Length: +5\r\n", "hello"),
        ("Content-Length: -5\r\n", "hello"),
        ("Content-Length: 0x5\r\n", "hello"),
        ("Content-Length: 99999999999999999999\r\n", "hello"),
        ("Content-Length : 5\r\n", "hello"),
        ("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n"),
        ("Transfer-Encoding: chunked, gzip\r\n", "0\r\n\r\n"),
        ("X: a\r\n b\r\n", ""),
        ("Transfer-Encoding: chunked\r\n", "zz\r\nhello\r\n0\r\n\r\n"),
        ("Transfer-Encoding: chunked\r\n", "-5\r\nhello\r\n0\r\n\r\n"),
        (
            "Transfer-Encoding: chunked\r\n",
            "fffffffffffffffff\r\nhello\r\n0\r\n\r\n",
        ),
        (
            "Transfer-Encoding: chunked\r\n",
            "5\r\nhelloworld\r\n0\r\n\r\n",
        ),
    ] {
        let request = session_request_text(line, lines, body);
        let answer = server.send_raw(&request).await;
        assert_eq!(status(&answer), "400", "{lines}{body}: {answer}");
    }
    let old = session_request_text(line, "Transfer-Encoding: chunked\r\n", "0\r\n\r\n");
    let old = old.replace("HTTP/1.1", "HTTP/1.0");
    assert_eq!(status(&server.send_raw(&old).await), "400");
    assert!(world.received_requests().is_empty());
}

#[tokio::test]
async fn line_41_a_length_together_with_chunks_is_400_where_it_can_be_seen() {
    // Over a connection, hyper has removed the length, so that the gateway closes the connection of every chunked
    // request instead.
    let world = World::new();
    for codings in [
        &["chunked"][..],
        &["gzip"],
        &["chunked", "chunked"],
        &["gzip, chunked"],
    ] {
        let mut request = session_request("/api/v1/platforms").method(Method::POST);
        for coding in codings {
            request = request.header("transfer-encoding", coding);
        }
        if *codings == ["chunked"] {
            request = request.header("content-length", "5");
        }
        let answer = world.send(request.build()).await;
        let answer = answer.expect_error(400, "BAD_REQUEST");
        assert_eq!(answer.header("connection"), "close", "{codings:?}");
    }
    assert!(world.received_requests().is_empty());
    let server = start_server(&world).await;
    let lines = "Transfer-Encoding: chunked\r\n";
    let chunked = session_request_text("POST /api/v1/platforms", lines, "2\r\n{}\r\n0\r\n\r\n");
    let answer = server.send_raw(&chunked).await;
    assert_eq!(status(&answer), "200");
    assert!(answer.contains("connection: close"), "{answer}");
}

#[tokio::test]
async fn line_44_heads_and_targets_are_accepted_up_to_their_limits() {
    let server = start_server(&World::new()).await;
    let head = |target: &str, lines: &str| {
        format!("GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{lines}\r\n")
    };
    let long = |bytes: usize| format!("X: {}\r\n", "x".repeat(bytes));
    let target = |bytes: usize| format!("/health?{}", "x".repeat(bytes - "/health?".len()));
    for (what, request, expected) in [
        ("100 lines", head("/health", &"X: y\r\n".repeat(98)), "200"),
        ("101 lines", head("/health", &"X: y\r\n".repeat(99)), "431"),
        ("15 KiB", head("/health", &long(15 * 1024)), "200"),
        ("17 KiB", head("/health", &long(17 * 1024)), "431"),
        ("a target of 8 KiB", head(&target(8_192), ""), "200"),
        ("a longer target", head(&target(8_193), ""), "414"),
    ] {
        let answer = server.send_raw(&request).await;
        assert_eq!(status(&answer), expected, "{what}: {answer}");
    }
}

#[tokio::test]
async fn line_36_raw_bytes_in_a_path_are_400_or_have_no_effect() {
    let world = World::new();
    let server = start_server(&world).await;
    for path in [
        "/a\\b", "/\u{e9}", "/a\u{1}b", "/a\u{7f}", "/a\tb", "/../iam", "/a//b",
    ] {
        let line = format!("GET /api/v1/platforms{path}");
        let request = session_request_text(&line, CLOSE, "");
        assert_eq!(status(&server.send_raw(&request).await), "400", "{path}");
    }
    assert!(world.received_requests().is_empty());
    // hyper drops a fragment before the gateway sees it, so the service does not receive it either.
    let line = "GET /api/v1/platforms/a#/../../iam/internal";
    let request = session_request_text(line, CLOSE, "");
    assert_eq!(status(&server.send_raw(&request).await), "200");
    assert_eq!(world.single_request().uri, "/a");
}

#[tokio::test]
async fn line_06_a_health_check_by_head_has_no_body() {
    let server = start_server(&World::new()).await;
    let head = "HEAD /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let answer = server.send_raw(head).await;
    assert_eq!(status(&answer), "200");
    assert!(answer.ends_with("\r\n\r\n"), "{answer}");
    assert!(answer.contains("content-type: text/plain"), "{answer}");
}

#[tokio::test]
async fn line_04_errors_of_the_parser_have_no_body() {
    // hyper offers no hook for the responses of its parser, so they have a status only.
    let server = start_server(&World::new()).await;
    for (request, expected) in [
        ("GET / HTTP/9.9\r\n\r\n", "400"),
        ("not http\r\n\r\n", "400"),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "closed"),
    ] {
        let answer = server.send_raw(request).await;
        assert_eq!(status(&answer), expected, "{answer}");
        assert!(
            answer.is_empty() || answer.ends_with("\r\n\r\n"),
            "{answer}"
        );
    }
}

#[tokio::test]
async fn line_47_a_client_that_waits_for_100_continue_is_refused_before_it_sends_its_body() {
    let world = World::new();
    let server = start_server(&world).await;
    let expect = "Expect: 100-continue\r\n";
    let large = format!("Content-Length: 2000000\r\n{expect}");
    let line = "POST /api/v1/platforms";
    let anonymous = format!("{line} HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n{expect}\r\n");
    for (request, expected) in [
        (anonymous, "401"),
        (session_request_text(line, &large, ""), "413"),
    ] {
        let answer = server.send_raw(&request).await;
        assert_eq!(status(&answer), expected, "{answer}");
        assert!(answer.contains("connection: close"), "{answer}");
    }
    assert!(world.received_requests().is_empty());
    let mut client = server.connect().await;
    let lines = format!("Content-Length: 5\r\nConnection: close\r\n{expect}");
    client.write(&session_request_text(line, &lines, "")).await;
    client.read_until("HTTP/1.1 100 Continue\r\n\r\n").await;
    client.write("hello").await;
    assert_eq!(status(&client.read_to_close().await), "200");
    let seen = world.single_request();
    assert_eq!((&seen.body[..], seen.header("expect")), (&b"hello"[..], ""));
}

#[tokio::test]
async fn line_48_requests_for_an_upgrade_get_a_normal_response() {
    // WebSockets are not supported, because no service of the interface has one.
    let world = World::new();
    let server = start_server(&world).await;
    for upgrade in [
        "Upgrade: websocket\r\nConnection: Upgrade, close\r\nSec-WebSocket-Version: 13\r\n",
        "Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings, close\r\nHTTP2-Settings: AAMAAABk\r\n",
    ] {
        let request = session_request_text("GET /api/v1/platforms", upgrade, "");
        let answer = server.send_raw(&request).await;
        assert_eq!(status(&answer), "200", "{answer}");
        assert!(!answer.to_ascii_lowercase().contains("upgrade"), "{answer}");
    }
    for seen in world.received_requests() {
        for name in ["upgrade", "connection", "http2-settings"] {
            assert_eq!(seen.header(name), "", "{name}");
        }
    }
    assert_eq!(world.received_requests().len(), 2);
}

/// Creates a gateway that does not limit the requests of these tests.
fn world_without_limits() -> World {
    let mut config = config();
    for kind in core_domain::gateway::RateKind::ALL {
        let minute = std::time::Duration::from_secs(60);
        config.rates.set(*kind, u32::MAX, minute).unwrap();
    }
    World::with(config)
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

/// The names of the headers that the gateway reads.
const READ_HEADERS: [&str; 18] = [
    "authorization",
    "x-api-key",
    "x-request-id",
    "traceparent",
    "tracestate",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "connection",
    "te",
    "origin",
    "access-control-request-method",
    "content-length",
    "transfer-encoding",
    "host",
    "cookie",
    "expect",
    "x_core_user_id",
];

#[test]
fn line_45_arbitrary_targets_and_headers_are_never_a_server_error() {
    let (runtime, world) = (runtime(), world_without_limits());
    let header = (
        proptest::sample::select(&READ_HEADERS[..]),
        proptest::collection::vec(any::<u8>(), 0..40),
    );
    let method = "GET|POST|OPTIONS|HEAD|DELETE|[A-Z]{1,8}";
    let target = "(/api/v1/(platforms|iam|cli))?(/|[a-z]|%[0-9a-fA-F]{2}|[.;%\\\\?&=*@:]){0,12}";
    proptest!(|(method in method, target in target, lines in proptest::collection::vec(header, 0..6))| {
        let Ok(uri) = target.parse() else { return Ok(()) };
        let mut request = session_request("/").build();
        *request.uri_mut() = uri;
        *request.method_mut() = method.parse().unwrap();
        for (name, value) in &lines {
            if let Ok(value) = http::HeaderValue::from_bytes(value) {
                request.headers_mut().append(*name, value);
            }
        }
        let answer = runtime.block_on(world.send(request));
        let status = answer.status.as_u16();
        // 503: the service of billing is not configured.
        prop_assert!(status < 500 || (status, answer.code()) == (503, "SERVICE_UNAVAILABLE"), "{}", answer.json);
    });
}

/// A change of one byte of a request.
#[derive(Clone, Debug)]
enum Mutation {
    Replace(usize, u8),
    Insert(usize, u8),
    Remove(usize),
    /// Removes all bytes after this one.
    Cut(usize),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let telling = proptest::sample::select(&b"\r\n :;,/%.?#\\\0\t\x7f\xff0aA\"-+_*"[..]);
    let byte = prop_oneof![telling, any::<u8>()];
    prop_oneof![
        (any::<usize>(), byte.clone()).prop_map(|(at, byte)| Mutation::Replace(at, byte)),
        (any::<usize>(), byte).prop_map(|(at, byte)| Mutation::Insert(at, byte)),
        any::<usize>().prop_map(Mutation::Remove),
        any::<usize>().prop_map(Mutation::Cut),
    ]
}

impl Mutation {
    fn apply(&self, bytes: &mut Vec<u8>) {
        let length = bytes.len().max(1);
        match *self {
            Self::Insert(at, byte) => bytes.insert(at % length.min(bytes.len() + 1), byte),
            _ if bytes.is_empty() => {}
            Self::Replace(at, byte) => bytes[at % length] = byte,
            Self::Remove(at) => drop(bytes.remove(at % length)),
            Self::Cut(at) => bytes.truncate(at % length),
        }
    }
}

#[test]
fn line_45_mutated_requests_never_panic_and_the_server_continues() {
    let (runtime, world) = (runtime(), world_without_limits());
    let server = runtime.block_on(start_server(&world));
    let key = format!("X-Api-Key: {API_KEY}\r\nTransfer-Encoding: chunked\r\n");
    let requests = [
        session_request_text("GET /api/v1/platforms/p-1?a=%2F", "X-Forwarded-For: 1.2.3.4\r\n", ""),
        session_request_text("POST /api/v1/cli/x", "Content-Length: 5\r\n", "hello"),
        session_request_text("PUT /api/v1/iam/x", "Transfer-Encoding: chunked\r\n", "2\r\n{}\r\n0\r\n\r\n"),
        format!("DELETE /api/v1/stacks HTTP/1.1\r\nHost: a\r\n{key}\r\n0\r\n\r\n"),
        "GET /health HTTP/1.1\r\nHost: a\r\nTraceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n\r\n".to_owned(),
    ];
    let mutations = proptest::collection::vec(mutation(), 1..6);
    proptest!(|(request in proptest::sample::select(requests.to_vec()), mutations in mutations)| {
        let mut bytes = request.into_bytes();
        for mutation in &mutations {
            mutation.apply(&mut bytes);
        }
        let answer = runtime.block_on(async {
            let mut client = server.connect().await;
            // The server may have closed the connection before it has received everything.
            let _ = client.0.write_all(&bytes).await;
            let _ = client.0.shutdown().await;
            client.read_to_close().await
        });
        prop_assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 "), "{}", answer);
        prop_assert_ne!(status(&answer), "500", "{}", answer);
    });
    let answer = runtime
        .block_on(server.send_raw("GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
    assert_eq!(status(&answer), "200");
}
