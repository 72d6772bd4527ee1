//! The log entry of each request.

use http::Method;
use http_body_util::BodyExt;
use serde_json::Value;
use tower::ServiceExt;

use super::bodies::{piecewise, reply_once};
use super::captured::{self, captured_log};
use super::world::{World, anonymous, delayed_reply, session_request};

/// Returns the fields of the log entries about requests.
fn requests() -> Vec<Value> {
    captured_log()
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["fields"].clone())
        .filter(|fields| fields["message"] == "request")
        .collect()
}

#[tokio::test]
async fn line_09_each_request_writes_one_log_entry_after_its_response_has_ended() {
    captured::start();
    let world = World::new();
    let request = session_request("/api/v1/platforms/p-1").header("x-request-id", "r-1");
    let response = world
        .gateway
        .clone()
        .oneshot(request.build())
        .await
        .unwrap();
    assert!(requests().is_empty());
    let body = response.into_body().collect().await;
    assert_eq!(body.unwrap().to_bytes(), "fine");
    let written = requests();
    assert_eq!(written.len(), 1, "{written:?}");
    let line = &written[0];
    assert_eq!(line["method"], "GET");
    assert_eq!(line["route"], "/api/v1/platforms");
    assert_eq!(line["status"], 200);
    assert_eq!(line["outcome"], "ok");
    assert_eq!(line["bytes"], 4);
    assert_eq!(line["request_id"], "r-1");
    assert_eq!(line["actor"], "olga");
    assert!(line["upstream_ms"].is_number() && line["duration_ms"].is_number());
}

#[tokio::test]
async fn line_09_a_response_has_ended_with_its_last_frame_even_if_its_body_is_not_polled_again() {
    captured::start();
    let world = World::new();
    let request = session_request("/api/v1/platforms/p-1").build();
    let response = world.gateway.clone().oneshot(request).await.unwrap();
    let mut body = response.into_body();
    let frame = body.frame().await.unwrap().unwrap();
    assert_eq!(frame.into_data().unwrap(), "fine");
    drop(body);
    assert_eq!(requests()[0]["outcome"], "ok");
}

#[tokio::test]
async fn line_09_refusals_are_logged_with_their_status() {
    captured::start();
    let world = World::new();
    world.send(anonymous("/api/v1/platforms").build()).await;
    world.send(anonymous("/api//x").build()).await;
    let written = requests();
    let seen: Vec<_> = written
        .iter()
        .map(|line| {
            (
                line["status"].as_u64(),
                line["outcome"].as_str(),
                line["route"].as_str(),
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            (Some(401), Some("client-error"), Some("/api/v1/platforms")),
            (Some(400), Some("client-error"), Some("refused")),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn line_09_a_client_that_disconnects_is_logged_as_499() {
    captured::start();
    let world = World::new();
    world.set_reply(delayed_reply(std::time::Duration::from_secs(5)));
    let request = world.get("/api/v1/platforms");
    let left = tokio::time::timeout(std::time::Duration::from_secs(1), request).await;
    assert!(left.is_err());
    let written = requests();
    assert_eq!(
        (
            written[0]["status"].as_u64(),
            written[0]["outcome"].as_str()
        ),
        (Some(499), Some("client-left"))
    );
}

#[tokio::test]
async fn line_09_secrets_and_client_text_are_not_logged() {
    captured::start();
    let world = World::new();
    let request = session_request("/api/v1/platforms/private-path?token=private-query")
        .method(Method::POST)
        .header("cookie", "private-cookie")
        .header("x-request-id", "private <b>");
    world.send(request.build()).await;
    world
        .send(
            anonymous("/api/v1/stacks")
                .header("authorization", "Bearer private-token")
                .build(),
        )
        .await;
    world
        .send(
            anonymous("/api/v1/stacks")
                .header("x-api-key", "core_private-key")
                .build(),
        )
        .await;
    assert!(!captured_log().contains("private"), "{}", captured_log());
    assert!(!captured_log().contains(super::world::SESSION));
}

#[tokio::test]
async fn line_09_a_client_that_leaves_during_the_response_is_not_logged_as_a_server_error() {
    captured::start();
    let world = World::new();
    let (sender, body) = piecewise();
    sender.send("first").unwrap();
    world.set_reply(reply_once(body));
    let request = session_request("/api/v1/platforms").build();
    let response = world.gateway.clone().oneshot(request).await.unwrap();
    let mut body = response.into_body();
    assert!(body.frame().await.unwrap().is_ok());
    assert!(requests().is_empty());
    drop(body);
    let written = requests();
    assert_eq!(written.len(), 1);
    // The status had been sent, so the outcome names the client.
    assert_eq!(written[0]["status"], 200);
    assert_eq!(written[0]["outcome"], "client-left");
    assert_eq!(written[0]["bytes"], 5);
}

#[tokio::test(start_paused = true)]
async fn line_09_a_response_that_breaks_is_logged_with_its_bytes() {
    captured::start();
    let world = World::new();
    let (sender, body) = piecewise();
    sender.send("first").unwrap();
    world.set_reply(reply_once(body));
    // The service pauses for longer than the gateway waits.
    let answer = world.get("/api/v1/platforms").await;
    assert!(answer.bytes.is_empty(), "the body is cut off");
    let written = requests();
    assert_eq!(written.len(), 1);
    assert_eq!(written[0]["outcome"], "upstream-broke");
    assert_eq!(written[0]["bytes"], 5);
    drop(sender);
}

#[tokio::test]
async fn line_09_the_bytes_of_a_refusal_are_logged() {
    captured::start();
    let world = World::new();
    let refused = world.send(anonymous("/api/v1/platforms").build()).await;
    let head = anonymous("/api/v1/platforms").method(Method::HEAD);
    world.send(head.build()).await;
    let bytes: Vec<_> = requests()
        .iter()
        .map(|line| line["bytes"].as_u64().unwrap())
        .collect();
    assert_eq!(bytes, [refused.bytes.len() as u64, 0]);
}

#[tokio::test]
async fn line_09_control_characters_never_reach_the_log() {
    captured::start();
    let world = World::new();
    for path in [
        "/api/v1/platforms/a%0d%0aforged",
        "/api/v1/platforms?a=%0d%0aforged",
        "/api/v1/platforms/a%1b%5b31mforged",
    ] {
        let request = session_request(path)
            .header("x-request-id", "a\tforged")
            .header("traceparent", "forged\t")
            .header("x-forwarded-for", "forged\t")
            .header("user-agent", "forged\tagent");
        world.send(request.build()).await;
    }
    let log = captured_log();
    assert!(!log.contains("forged"), "{log}");
    let is_control = |c: char| c.is_control() && c != '\n';
    assert!(!log.contains(is_control), "{log}");
    for line in log.lines() {
        assert!(serde_json::from_str::<Value>(line).is_ok(), "{line}");
    }
}
