//! Old jobs, their events and old dead letters are removed.

use std::time::Duration;

use core_domain::port::transact;
use core_domain::use_case::provisioning::{remove_old_dead_letters, remove_old_jobs};
use serde_json::json;

use crate::world::{World, on_every_store, operator};

const DAY: u64 = 24 * 60 * 60;
const RETENTION: Duration = Duration::from_secs(90 * DAY);

impl World {
    async fn remove_old_jobs(&self, limit: u32) -> u64 {
        let removed = transact(self.app.store.as_ref(), |uow, _| {
            Box::pin(remove_old_jobs(uow, RETENTION, limit))
        });
        removed.await.unwrap()
    }

    async fn remove_old_dead_letters(&self) -> u64 {
        let removed = transact(self.app.store.as_ref(), |uow, _| {
            Box::pin(remove_old_dead_letters(uow, RETENTION, 1_000))
        });
        removed.await.unwrap()
    }

    async fn job_status(&self, job: &str) -> u16 {
        let path = format!("/api/v1/provision/jobs/{job}");
        let found = self.provisioning.get(&operator(), &path).await;
        found.status.as_u16()
    }
}

async fn old_jobs_go_with_their_events_and_those_with_an_open_dead_letter_stay(world: World) {
    let platform = world.create_platform("engines").await;
    let done = world.provision(&platform).await;
    world.run_jobs().await;
    let other = world.create_platform("other").await;
    let (failed, entry) = world.dead_letter(&other).await;
    let done_events = world.event_types(&done).await.len() as u64;
    assert!(done_events > 2);

    // A day before, nothing is old.
    world.tick(89 * DAY);
    assert_eq!(world.remove_old_jobs(1_000).await, 0);
    world.tick(2 * DAY);
    let recent = world.provision(&platform).await;
    world.run_jobs().await;
    assert_eq!(world.remove_old_jobs(1_000).await, done_events + 1);
    assert_eq!(world.remove_old_jobs(1_000).await, 0);
    let statuses = (
        world.job_status(&done).await,
        world.job_status(&failed).await,
        world.job_status(&recent).await,
    );
    assert_eq!(statuses, (404, 200, 200));
    assert!(!world.event_types(&failed).await.is_empty());

    // Once the dead letter is resolved, both go, each after its own time.
    assert_eq!(world.remove_old_dead_letters().await, 0);
    let path = format!("/api/v1/provision/dlq/{entry}/replay");
    let replayed = world.provisioning.post(&operator(), &path, json!({})).await;
    let _ = replayed.expect(200);
    world.run_jobs().await;
    assert_eq!(world.remove_old_jobs(1_000).await, 0, "it ended just now");
    assert_eq!(world.remove_old_dead_letters().await, 0);
    world.tick(91 * DAY);
    assert!(world.remove_old_jobs(1_000).await > 0);
    assert_eq!(world.remove_old_dead_letters().await, 1);
    assert_eq!(world.job_status(&failed).await, 404);
    assert_eq!(world.job_status(&recent).await, 404);
}

async fn old_jobs_are_removed_in_slices_of_one_job_at_least(world: World) {
    let platform = world.create_platform("engines").await;
    let mut records = 0;
    for _ in 0..3 {
        let job = world.provision(&platform).await;
        world.run_jobs().await;
        records += world.event_types(&job).await.len() as u64 + 1;
    }
    world.tick(91 * DAY);
    let mut slices = Vec::new();
    loop {
        match world.remove_old_jobs(1).await {
            0 => break,
            removed => slices.push(removed),
        }
    }
    assert_eq!(slices.len(), 3);
    assert_eq!(slices.iter().sum::<u64>(), records);
}

on_every_store! {
    old_jobs_go_with_their_events_and_those_with_an_open_dead_letter_stay,
    old_jobs_are_removed_in_slices_of_one_job_at_least,
}
