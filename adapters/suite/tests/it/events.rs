//! The change feed of a complete suite: committed changes are sealed and sent without further calls.

use futures_util::StreamExt;
use http_body_util::BodyStream;
use serde_json::{Value, json};
use tokio::time::{Duration, Instant, timeout};
use tower::ServiceExt;

use crate::world::{SERVICE_KEY, World, json_body, request, send};

const EVENTS: &str = "/api/v1/platforms/api/v1/events";

/// Follows a feed. Returns the names of its events.
async fn follow(world: &World, path: &str, token: &str) -> impl StreamExt<Item = String> + Unpin {
    let request = json_body(request("GET", path, token), &Value::Null);
    let answer = world.suite.gateway().oneshot(request).await.unwrap();
    assert_eq!(answer.status(), 200);
    let frames = BodyStream::new(answer.into_body());
    frames.map(|frame| {
        let text = frame.unwrap().into_data().unwrap();
        let text = std::str::from_utf8(&text).unwrap().to_owned();
        let name = text.lines().find_map(|line| line.strip_prefix("event: "));
        name.unwrap_or_default().to_owned()
    })
}

#[tokio::test]
async fn committed_changes_are_sealed_and_sent_without_further_calls() {
    let world = World::new().await;
    let path = format!("{EVENTS}?types=platform");
    let mut events = follow(&world, &path, SERVICE_KEY).await;
    let platform = world.platform("engines").await;
    assert_eq!(events.next().await.unwrap(), "platform.created");
    let path = format!("/api/v1/platforms/{platform}");
    let renamed = world
        .call("PATCH", &path, SERVICE_KEY, json!({ "name": "Motors" }))
        .await;
    let _ = renamed.expect(200);
    assert_eq!(events.next().await.unwrap(), "platform.updated");
    let path = format!("/api/v1/platforms/api/v1/audit/verify?platformId={platform}");
    let report = world
        .call("GET", &path, SERVICE_KEY, Value::Null)
        .await
        .expect(200);
    assert_eq!(
        (&report.json["valid"], &report.json["checked"]),
        (&json!(true), &json!(2))
    );
    drop(events);
    world.suite.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_sign_out_ends_the_feed_of_its_session_before_the_next_poll() {
    let world = World::new().await;
    let token = world.signed_up_with_platform("engines").await;
    let mut events = follow(&world, EVENTS, &token).await;
    // Waits for a heartbeat, after which no event is left. Then moves to a time at which no poll is due soon.
    while !events.next().await.unwrap().is_empty() {}
    let silent = timeout(Duration::from_secs(2), events.next()).await;
    assert!(silent.is_err());
    let began = Instant::now();
    let sign_out = json_body(request("POST", "/api/auth/sign-out", &token), &json!({}));
    let _ = send(world.suite.iam(), sign_out).await.expect(200);
    assert_eq!(events.next().await, None);
    assert_eq!(Instant::now(), began);
}
