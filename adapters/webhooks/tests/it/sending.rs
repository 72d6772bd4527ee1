//! Tests of the request, the handling of responses, and the addresses that are refused.

use std::time::Duration;

use core_domain::port::{WebhookSendError, WebhookSender};
use core_domain::shared::WebhookTargets;
use core_webhooks::HttpSender;
use tokio::net::TcpListener;

use crate::receiver::{ANYWHERE, listener, receiver, request, sender};

#[tokio::test]
async fn a_request_is_a_post_with_the_headers_of_the_standard() {
    let (serving, port) =
        receiver("HTTP/1.1 202 Accepted\r\nretry-after: 7\r\ncontent-length: 2\r\n\r\nok").await;
    let url = format!("http://127.0.0.1:{port}/in?key=x");
    let answer = sender(ANYWHERE).send(&request(&url)).await.unwrap();
    assert_eq!(
        (answer.status, answer.retry_after.as_deref(), &*answer.body),
        (202, Some("7"), "ok")
    );
    let read = serving.await.unwrap();
    let (head, body) = read.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("POST /in?key=x HTTP/1.1\r\n"), "{head}");
    let host = format!("host: 127.0.0.1:{port}");
    for header in [
        &*host,
        "content-type: application/json",
        "content-length: 20",
        "webhook-id: msg-1",
        "webhook-timestamp: 1614265330",
        "webhook-signature: v1,one v1,two",
    ] {
        assert!(head.lines().any(|line| line == header), "{header}: {head}");
    }
    assert_eq!(body, r#"{"test": 2432232314}"#);
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let (elsewhere, other) = listener().await;
    let moved = format!(
        "HTTP/1.1 307 Moved\r\nlocation: http://127.0.0.1:{other}/\r\ncontent-length: 0\r\n\r\n"
    );
    let (_serving, port) = receiver(moved).await;
    let answer = sender(ANYWHERE)
        .send(&request(&format!("http://127.0.0.1:{port}/")))
        .await
        .unwrap();
    assert_eq!(answer.status, 307);
    // If the redirect had been followed, a connection would be pending now.
    assert!(has_no_pending_connection(&elsewhere).await);
}

/// Returns whether no connection is pending.
async fn has_no_pending_connection(listener: &TcpListener) -> bool {
    tokio::select! {
        biased;
        _ = listener.accept() => false,
        () = tokio::task::yield_now() => true,
    }
}

#[tokio::test]
async fn only_the_first_kibibyte_of_a_response_body_is_kept() {
    let head = "HTTP/1.1 200 OK\r\ncontent-length: 1000000000000\r\n\r\n";
    let (serving, port) = receiver(format!("{head}{}", "é".repeat(300_000))).await;
    let answer = sender(ANYWHERE)
        .send(&request(&format!("http://127.0.0.1:{port}/")))
        .await
        .unwrap();
    assert_eq!((answer.status, answer.body), (200, "é".repeat(512)));
    serving.await.unwrap();
}

#[tokio::test]
async fn silence_refused_connections_and_malformed_responses_are_errors() {
    let hasty = HttpSender::new(ANYWHERE, Duration::from_millis(200)).unwrap();
    let (_serving, port) = receiver("").await;
    let url = format!("http://127.0.0.1:{port}/");
    assert_eq!(
        hasty.send(&request(&url)).await,
        Err(WebhookSendError::TimedOut)
    );
    // A status that arrives in time counts, however slow the body is.
    let (_serving, port) = receiver("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nbegun").await;
    let url = format!("http://127.0.0.1:{port}/");
    assert_eq!(hasty.send(&request(&url)).await.unwrap().body, "begun");
    for nonsense in [
        "hello\r\n\r\n".to_owned(),
        format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "y".repeat(1_000_000)),
    ] {
        let (_serving, port) = receiver(nonsense).await;
        let url = format!("http://127.0.0.1:{port}/");
        let refused = sender(ANYWHERE).send(&request(&url)).await;
        assert!(
            matches!(refused, Err(WebhookSendError::NoResponse(_))),
            "{refused:?}"
        );
    }
    let (closed, port) = listener().await;
    drop(closed);
    let url = format!("http://127.0.0.1:{port}/");
    let refused = sender(ANYWHERE).send(&request(&url)).await;
    assert!(
        matches!(refused, Err(WebhookSendError::Unreachable(_))),
        "{refused:?}"
    );
}

#[tokio::test]
async fn loopback_addresses_and_names_that_resolve_to_them_are_refused() {
    let (waiting, port) = listener().await;
    let public = WebhookTargets {
        allow_private_addresses: false,
        ..ANYWHERE
    };
    for host in [
        "localhost",
        "127.0.0.1",
        "[::ffff:127.0.0.1]",
        "[::1]",
        "[64:ff9b::7f00:1]",
        "0.0.0.0",
    ] {
        let refused = sender(public)
            .send(&request(&format!("http://{host}:{port}/")))
            .await;
        assert_eq!(refused, Err(WebhookSendError::Forbidden), "{host}");
    }
    let with_tls = WebhookTargets {
        allow_http: false,
        ..ANYWHERE
    };
    let refused = sender(with_tls)
        .send(&request(&format!("http://localhost:{port}/")))
        .await;
    assert_eq!(refused, Err(WebhookSendError::Forbidden));
    assert!(has_no_pending_connection(&waiting).await);
    let (_serving, port) = receiver("HTTP/1.1 204 No Content\r\n\r\n").await;
    let allowed = sender(ANYWHERE)
        .send(&request(&format!("http://localhost:{port}/")))
        .await;
    assert_eq!(allowed.unwrap().status, 204);
}
