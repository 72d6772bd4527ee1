//! The undoing of cancelled jobs.

use std::sync::Arc;

use core_domain::port::ProviderError;
use core_domain::registry::ResourceType;
use serde_json::{Value, json};

use super::{PLATFORM, platform_body};
use crate::world::{
    Follower, HookedInfrastructure, JobCommand, World, on_every_store, operator, platform_path,
    vouched_for,
};

impl World {
    /// Runs jobs while every provider call fails for objects whose name ends with `end`.
    async fn run_jobs_until(&self, end: &'static str) {
        let stuck = HookedInfrastructure::new(&self.provider, move |_, name| {
            if name.ends_with(end) {
                return Err(ProviderError::Transient("not now".into()));
            }
            Ok(())
        });
        self.run_jobs_on(Arc::new(stuck)).await;
    }

    async fn step_statuses(&self, job: &str) -> Vec<String> {
        let job = self.job(job).await;
        let steps = job["steps"].as_array().unwrap().iter();
        steps
            .map(|step| step["status"].as_str().unwrap().to_owned())
            .collect()
    }
}

async fn a_cancelled_provisioning_is_undone_and_can_be_retried(world: World) {
    let platform = world.create_platform("engines").await;
    let job = world.provision(&platform).await;
    world.run_jobs_until("-events").await;
    assert_eq!(world.provider.names().len(), 3);
    world.operate(&job, JobCommand::Cancel).await;
    world.finish_jobs().await;
    let statuses = world.step_statuses(&job).await;
    assert_eq!(statuses[..3], ["UNDONE"; 3]);
    assert!(
        world.provider.names().is_empty(),
        "{:?}",
        world.provider.names()
    );
    assert_eq!(
        world.count(&platform_path(&platform, "/resources")).await,
        0
    );
    world.operate(&job, JobCommand::Retry).await;
    world.run_jobs().await;
    assert_eq!(world.job(&job).await["status"], "COMPLETED");
    assert_eq!(world.provider.names().len(), 6);
    assert_eq!(
        world.count(&platform_path(&platform, "/resources")).await,
        6
    );
}

on_every_store! { a_cancelled_provisioning_is_undone_and_can_be_retried }

#[tokio::test]
async fn objects_from_before_a_cancelled_provisioning_are_kept() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    world.provision(&platform).await;
    world.run_jobs().await;
    let before = world.provider.names();
    // Another job has already created all objects.
    let again = world.provision(&platform).await;
    world.run_jobs_until("-events").await;
    world.operate(&again, JobCommand::Cancel).await;
    world.finish_jobs().await;
    assert_eq!(world.provider.names(), before);
    assert_eq!(
        world.count(&platform_path(&platform, "/resources")).await,
        6
    );
    // This object exists without a record.
    let db = before.iter().find(|name| name.ends_with("-db")).unwrap();
    let db = db.replace("-prod-", "-dev-");
    world.create_object(ResourceType::D1, &db, &platform).await;
    let mut dev = platform_body(&platform);
    dev["environment"] = json!("dev");
    let job = world.queue_job(&operator(), PLATFORM, dev).await;
    world.run_jobs_until("-dev-events").await;
    assert_eq!(world.provider.names().len(), 9);
    world.operate(&job, JobCommand::Cancel).await;
    world.finish_jobs().await;
    let left = world.provider.names();
    assert!(left.len() == 7 && left.contains(&db), "{left:?}");
    assert_eq!(
        world.count(&platform_path(&platform, "/resources")).await,
        7
    );
}

#[tokio::test]
async fn a_cancelled_onboarding_deletes_its_platform_and_completes_after_a_restore() {
    let world = World::new();
    let ada = world.sign_up("ada@example.org").await;
    let start = json!({ "platformName": "Engines", "slug": "engines" });
    let path = "/api/v1/onboarding/start";
    let started = world
        .registry
        .post(&ada.caller(), path, start)
        .await
        .expect(202);
    let job = started.text("jobId").to_owned();
    world.run_jobs_until("-events").await;
    let waiting = world.job(&job).await;
    assert_eq!(waiting["status"], "WAITING");
    let platform = waiting["steps"][0]["output"]["platformId"]
        .as_str()
        .unwrap()
        .to_owned();
    world.operate(&job, JobCommand::Cancel).await;
    world.finish_jobs().await;
    assert_eq!(world.status(&platform).await, "deleted");
    assert!(world.provider.names().is_empty());
    let kinds: Vec<Value> = world
        .jobs(&platform)
        .await
        .iter()
        .map(|j| j["kind"].clone())
        .collect();
    assert_eq!(kinds, ["platform.deprovision", "platform"]);
    world.operate(&job, JobCommand::Retry).await;
    world.finish_jobs().await;
    let refused = world.job(&job).await;
    let told = [&refused["status"], &refused["error"]["code"]];
    assert_eq!(told, ["FAILED", "PRECONDITION_FAILED"]);
    world
        .change_lifecycle_as_operator(&platform, "restore")
        .await;
    world.operate(&job, JobCommand::Retry).await;
    world.finish_jobs().await;
    assert_eq!(world.job(&job).await["status"], "COMPLETED");
    assert_eq!(world.provider.names().len(), 6);
}

#[tokio::test]
async fn a_job_cancelled_by_its_platforms_removal_undoes_nothing_itself() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    world.provision(&platform).await;
    world.run_jobs_until("-events").await;
    world.delete_platform(&platform, "delete").await;
    world.finish_jobs().await;
    assert!(world.provider.names().is_empty());
    assert!(world.is_slug_available("engines").await);
}

#[tokio::test]
async fn the_event_stream_of_a_cancelled_job_continues_until_it_is_undone() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let job = world.provision(&platform).await;
    world.run_jobs_until("-events").await;
    world.operate(&job, JobCommand::Cancel).await;
    let path = format!("/api/v1/provision/jobs/{job}/events");
    let caller = vouched_for(operator());
    let mut follower = Follower::open(&world.provisioning, &caller, &path, None, &[]).await;
    while follower.next_type().await != "job.cancelled" {}
    let rest = async {
        let mut types = Vec::new();
        while let Some(event) = follower.next().await {
            let name = event.lines().find_map(|line| line.strip_prefix("event: "));
            types.extend(name.map(str::to_owned));
        }
        types
    };
    let (told, ()) = tokio::join!(rest, world.finish_jobs());
    // Three objects were created, and the fourth was requested.
    assert_eq!(told, ["step.undone"; 4]);
}
