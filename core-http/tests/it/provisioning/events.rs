//! The history of a job, as a list and as an event stream.

use std::time::Duration;

use core_domain::kernel::Caller;
use core_http::kernel::Draining;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::world::{
    Follower, World, on_every_store, operator, owner, plain_member, vouched_for,
    world_with_notifications,
};

fn path(job: &str) -> String {
    format!("/api/v1/provision/jobs/{job}/events")
}

impl World {
    async fn follower(&self, caller: &Caller, job: &str, last: Option<&str>) -> Follower {
        let last = last.map(|id| ("last-event-id", id));
        let api = &self.provisioning;
        Follower::open(api, caller, &path(job), None, last.as_slice()).await
    }
}

/// Returns the id, name and data of all events until the end of the stream.
async fn remaining_events(mut follower: Follower) -> Vec<(String, String, Value)> {
    let mut events = Vec::new();
    while let Some(text) = follower.next().await {
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap_or_default().to_owned()
        };
        let data = serde_json::from_str(&field("data: ")).unwrap();
        events.push((field("id: "), field("event: "), data));
    }
    events
}

async fn the_event_stream_of_a_job_starts_at_the_beginning_or_after_an_event(world: World) {
    let platform = world.create_platform("engines").await;
    let job = world.provision(&platform).await;
    let caller = vouched_for(plain_member(&platform));
    let mut follower = world.follower(&caller, &job, None).await;
    assert_eq!(follower.next_type().await, "job.created");
    let (events, ()) = tokio::join!(remaining_events(follower), world.run_jobs());
    let ids: Vec<String> = events.iter().map(|(id, ..)| id.clone()).collect();
    let in_order: Vec<String> = (2..2 + ids.len()).map(|seq| seq.to_string()).collect();
    assert_eq!(ids, in_order);
    let (last, name, data) = events.last().unwrap();
    let progress =
        json!({ "completedSteps": 6, "totalSteps": 6, "percent": 100, "message": "done" });
    let wanted = json!({
        "seq": last.parse::<u64>().unwrap(), "jobId": job, "at": data["at"], "type": "job.completed",
        "fromStatus": "RUNNING", "toStatus": "COMPLETED", "step": "pages", "fence": 2, "reason": null,
        "actor": data["actor"], "requestId": data["requestId"], "progress": progress,
    });
    assert_eq!((name.as_str(), data), ("job.completed", &wanted));
    for after in 0..=ids.len() + 1 {
        let last = after.to_string();
        let behind = world.follower(&caller, &job, Some(&last)).await;
        assert_eq!(remaining_events(behind).await.len(), 1 + ids.len() - after);
    }
}

async fn the_history_is_listed_newest_first(world: World) {
    let platform = world.create_platform("engines").await;
    let job = world.provision(&platform).await;
    let _ = world
        .operate_over_http("cancel", &job, json!({ "reason": "late" }))
        .await
        .expect(200);
    let caller = plain_member(&platform);
    let listed = world
        .provisioning
        .get(&caller, &path(&job))
        .await
        .expect(200);
    assert_eq!(listed.each("type"), ["job.cancelled", "job.created"]);
    let cancelled = &listed.json["data"][0];
    let wanted = json!({
        "seq": 2, "jobId": job, "at": cancelled["at"], "type": "job.cancelled", "fromStatus": "QUEUED",
        "toStatus": "FAILED", "step": "d1", "fence": 1, "reason": "late",
        "actor": { "type": "service", "id": "service-key" }, "requestId": cancelled["requestId"],
    });
    assert_eq!(cancelled, &wanted);
    let page = format!("{}?limit=1", path(&job));
    let page = world.provisioning.get(&caller, &page).await.expect(200);
    let next = format!("{}?limit=1&cursor={}", path(&job), page.text("cursor"));
    let next = world.provisioning.get(&caller, &next).await.expect(200);
    assert_eq!(next.each("type"), ["job.created"]);
    assert!(next.json["cursor"].is_null());
}

on_every_store! {
    the_event_stream_of_a_job_starts_at_the_beginning_or_after_an_event,
    the_history_is_listed_newest_first,
}

#[tokio::test]
async fn unauthorized_callers_and_unknown_event_ids_are_refused() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let job = world.provision(&platform).await;
    let path = path(&job);
    for (caller, last, status, code) in [
        (owner("other"), "1", 404, "NOT_FOUND"),
        (operator(), "2", 400, "VALIDATION_ERROR"),
        (operator(), "-1", 400, "VALIDATION_ERROR"),
        (operator(), "", 400, "VALIDATION_ERROR"),
    ] {
        let headers = [("accept", "text/event-stream"), ("last-event-id", last)];
        let answer = world
            .provisioning
            .send(&caller, "GET", &path, &headers, Value::Null);
        answer.await.expect_error(status, code);
    }
    let headers = [("accept", "text/html")];
    let caller = operator();
    let answer = world
        .provisioning
        .send(&caller, "GET", &path, &headers, Value::Null);
    answer.await.expect_error(406, "NOT_ACCEPTABLE");
}

#[tokio::test(start_paused = true)]
async fn a_silent_stream_sends_keep_alives_until_access_is_lost_or_the_server_stops() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let job = world.provision(&platform).await;
    let caller = vouched_for(owner(&platform));
    let mut follower = world.follower(&caller, &job, None).await;
    assert_eq!(follower.next_type().await, "job.created");
    let began = Instant::now();
    for _ in 0..2 {
        assert_eq!(follower.next().await.unwrap(), ":\n\n");
    }
    assert_eq!(began.elapsed().as_secs(), 30);
    world
        .change_lifecycle_as_operator(&platform, "suspend")
        .await;
    let _ = world
        .operate_over_http("cancel", &job, json!({}))
        .await
        .expect(200);
    assert_eq!(follower.next().await, None, "suspended");
    let (stop, stopped) = watch::channel(false);
    let (api, other) = (&world.provisioning, world.provision(&platform).await);
    let draining = Some(Draining::new(stopped));
    let mut follower = Follower::open(api, &operator(), &path(&other), draining, &[]).await;
    assert_eq!(follower.next_type().await, "job.created");
    let (end, _) = tokio::join!(follower.next(), async { stop.send_replace(true) });
    assert_eq!(end, None, "stopped");
}

#[tokio::test(start_paused = true)]
async fn a_follower_of_a_job_gets_its_events_at_once() {
    let world = world_with_notifications();
    let platform = world.create_platform("engines").await;
    let job = world.provision(&platform).await;
    let mut follower = world
        .follower(&vouched_for(owner(&platform)), &job, None)
        .await;
    assert_eq!(follower.next_type().await, "job.created");
    let (event, cancelled) = tokio::join!(follower.next_type(), async {
        let cancelled = world.operate_over_http("cancel", &job, json!({})).await;
        let _ = cancelled.expect(200);
        Instant::now()
    });
    assert_eq!(event, "job.cancelled");
    assert_eq!(cancelled.elapsed(), Duration::ZERO);
}
