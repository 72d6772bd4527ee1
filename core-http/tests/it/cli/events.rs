//! The progress of a deployment as server-sent events.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::harness::UploadHarness;
use crate::world::{Follower, SITE, operator, owner, platform_path, vouched_for};

impl UploadHarness {
    fn events_path(&self, id: &str) -> String {
        platform_path(&self.platform, &format!("/deployments/{id}/events"))
    }

    /// Returns all events of a deployment that has ended, after the event with this id.
    async fn events(&self, id: &str, last: Option<&str>) -> Vec<String> {
        let last: Vec<_> = last
            .map(|last| ("last-event-id", last))
            .into_iter()
            .collect();
        let (path, caller) = (self.events_path(id), vouched_for(self.mary()));
        let mut follower = Follower::open(&self.world.cli, &caller, &path, None, &last).await;
        let mut events = Vec::new();
        while let Some(event) = follower.next().await {
            events.push(event);
        }
        events
    }
}

fn data(event: &str) -> Value {
    let data = event.lines().find_map(|line| line.strip_prefix("data: "));
    serde_json::from_str(data.unwrap()).unwrap()
}

#[tokio::test]
async fn the_stream_has_every_step_and_ends_with_the_deployment() {
    let harness = UploadHarness::new().await;
    let queued = harness.deploy(&[], SITE).await.expect(202);
    harness.world.run_jobs().await;
    let id = queued.text("deploymentId");
    let events = harness.events(id, None).await;
    let steps: Vec<Value> = events
        .iter()
        .map(|event| data(event)["event"]["step"].clone())
        .collect();
    for step in ["project", "upload", "activate"] {
        assert!(steps.contains(&json!(step)), "{step}: {steps:?}");
    }
    let last = data(events.last().unwrap());
    assert_eq!(last["deployment"]["deploymentId"], json!(id));
    assert_eq!(last["deployment"]["status"], "active");
    // A lost stream continues after the last event that was received.
    let third = events[2].lines().find_map(|line| line.strip_prefix("id: "));
    assert_eq!(harness.events(id, third).await, events[3..]);
}

#[tokio::test(start_paused = true)]
async fn a_follower_gets_the_steps_of_a_deployment_at_once() {
    let harness = UploadHarness::announcing().await;
    let queued = harness.deploy(&[], SITE).await.expect(202);
    let path = harness.events_path(queued.text("deploymentId"));
    let caller = vouched_for(harness.mary());
    let mut follower = Follower::open(&harness.world.cli, &caller, &path, None, &[]).await;
    assert_eq!(follower.next_type().await, "job.created");
    let (last, ended) = tokio::join!(
        async {
            let mut last = None;
            while let Some(event) = follower.next().await {
                last = Some(data(&event)["event"]["type"].clone());
            }
            last
        },
        async {
            harness.world.run_jobs().await;
            Instant::now()
        }
    );
    assert_eq!(last, Some(json!("job.completed")));
    assert_eq!(ended.elapsed(), Duration::ZERO);
}

#[tokio::test]
async fn a_deployment_of_another_program_reports_its_status() {
    let harness = UploadHarness::new().await;
    let id = harness
        .world
        .active_deployment(&harness.platform, "preview")
        .await;
    let events = harness.events(&id, None).await;
    assert_eq!(events.len(), 1);
    let event = data(&events[0]);
    assert_eq!(
        (&event["event"], &event["deployment"]["status"]),
        (&json!(null), &json!("active"))
    );
}

#[tokio::test]
async fn only_callers_who_can_read_the_deployment_can_follow_it() {
    let harness = UploadHarness::new().await;
    let id = harness
        .world
        .active_deployment(&harness.platform, "preview")
        .await;
    let path = harness.events_path(&id);
    let stranger = harness.world.cli.get(&owner("another"), &path).await;
    stranger.expect_error(404, "NOT_FOUND");
    let missing = harness.events_path("missing");
    let missing = harness.world.cli.get(&operator(), &missing).await;
    missing.expect_error(404, "NOT_FOUND");
    let headers = [("last-event-id", "x")];
    let refused = harness
        .world
        .cli
        .send(&operator(), "GET", &path, &headers, json!(null))
        .await;
    refused.expect_error(400, "VALIDATION_ERROR");
}
