use std::time::Duration;

use core_client::types::log::LogQuery;
use core_client::{Client, RetryPolicy};
use serde_json::json;

use crate::fake::{AfterBody, FakeReply, FakeServer};

fn client(server: &FakeServer) -> Client {
    let policy = RetryPolicy {
        max_attempts: 2,
        first_pause: Duration::from_millis(1),
        max_pause: Duration::from_millis(2),
    };
    Client::builder(&server.url)
        .retry_policy(policy)
        .build()
        .unwrap()
}

fn line(id: u32) -> String {
    let line = json!({ "id": id.to_string(), "at": "2026-01-01T00:00:00.000Z", "resource": "api", "kind": "console", "text": "hi" });
    format!("id: {id}\ndata: {line}\n\n")
}

fn progress(seq: u32, status: &str) -> String {
    let deployment =
        json!({ "deploymentId": "d-1", "status": status, "url": null, "errorMessage": null });
    let event = json!({ "seq": seq, "type": "deployment.changed", "createdAt": 1 });
    format!(
        "id: {seq}\ndata: {}\n\n",
        json!({ "deployment": deployment, "event": event })
    )
}

#[tokio::test]
async fn a_broken_stream_continues_after_the_last_received_event() {
    let half = "id: 3\ndata: {\"half";
    let server = FakeServer::with_replies([
        FakeReply::events(&(line(1) + &line(2) + half), AfterBody::Break),
        FakeReply::events(&line(3), AfterBody::Hang),
    ]);
    let mut lines = client(&server)
        .follow_logs("p-1", &LogQuery::default())
        .await
        .unwrap();
    for id in ["1", "2", "3"] {
        assert_eq!(lines.next().await.unwrap().unwrap().id, id);
    }
    let received = server.requests();
    assert_eq!(received[0].header("last-event-id"), "");
    assert_eq!(received[1].header("last-event-id"), "2");
}

#[tokio::test]
async fn a_stream_without_follow_ends_with_the_response() {
    let server = FakeServer::with_replies([FakeReply::events(&line(1), AfterBody::End)]);
    let query = LogQuery {
        follow: false,
        ..LogQuery::default()
    };
    let mut lines = client(&server).follow_logs("p-1", &query).await.unwrap();
    assert_eq!(
        lines.next().await.unwrap().unwrap().text.as_deref(),
        Some("hi")
    );
    assert_eq!(lines.next().await.unwrap(), None);
    assert_eq!(
        server.requests()[0].target,
        "/api/v1/cli/platforms/p-1/logs?follow=false&tail=100"
    );
}

#[tokio::test]
async fn a_deployment_stream_that_ends_early_is_resumed_until_the_deployment_has_ended() {
    let server = FakeServer::with_replies([
        FakeReply::events(&progress(1, "uploading"), AfterBody::End),
        FakeReply::events(&progress(2, "active"), AfterBody::Hang),
    ]);
    let mut events = client(&server)
        .follow_deployment("p-1", "d-1")
        .await
        .unwrap();
    assert_eq!(events.next().await.unwrap().unwrap().event.unwrap().seq, 1);
    assert_eq!(
        events
            .next()
            .await
            .unwrap()
            .unwrap()
            .deployment
            .status
            .as_str(),
        "active"
    );
    assert_eq!(events.next().await.unwrap(), None);
}

#[tokio::test]
async fn a_stream_whose_access_has_ended_returns_the_refusal() {
    let server = FakeServer::with_replies([
        FakeReply::events(&line(1), AfterBody::End),
        FakeReply::error(403, "FORBIDDEN"),
    ]);
    let mut lines = client(&server)
        .follow_logs("p-1", &LogQuery::default())
        .await
        .unwrap();
    assert!(lines.next().await.unwrap().is_some());
    assert_eq!(lines.next().await.unwrap_err().status(), Some(403));
}

#[tokio::test]
async fn a_server_that_only_ends_streams_is_not_asked_forever() {
    let server = FakeServer::with_replies([FakeReply::events(": nothing\n\n", AfterBody::End)]);
    let mut lines = client(&server)
        .follow_logs("p-1", &LogQuery::default())
        .await
        .unwrap();
    assert!(lines.next().await.is_err());
    assert!(server.requests().len() < 20);
}

#[tokio::test]
async fn a_page_instead_of_a_stream_is_refused() {
    let server = FakeServer::with_replies([FakeReply::json(200, &json!({}))]);
    assert!(
        client(&server)
            .follow_logs("p-1", &LogQuery::default())
            .await
            .is_err()
    );
}
