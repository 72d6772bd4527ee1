//! Hard deletion of platforms.

use core_domain::provisioning::{HoldScope, Job};
use core_domain::registry::ResourceType;
use core_domain::use_case::provisioning::NoSupervisor;
use serde_json::{Value, json};

use crate::world::{JobCommand, World, on_every_store, operator, owner, platform_path};

impl World {
    async fn is_purged(&self, platform: &str) -> bool {
        let answer = self
            .registry
            .get(&operator(), &platform_path(platform, ""))
            .await;
        answer.status == 404
    }

    /// Returns the newest job that removes a whole platform.
    async fn removal_of(&self, platform: &str) -> String {
        let jobs = self.jobs(platform).await;
        let of_everything =
            |job: &&Value| job["kind"] == "platform.deprovision" && job["environment"].is_null();
        let removal = jobs.iter().find(of_everything).unwrap();
        removal["jobId"].as_str().unwrap().to_owned()
    }
}

async fn a_platform_is_purged_only_after_all_its_objects_are_removed(world: World) {
    let platform = world.create_platform("engines").await;
    let entity = world.tenant(&platform, "tenant").await;
    world.resource(&platform, &entity, "engines-db").await;
    world
        .create_object(ResourceType::D1, "engines-db", &platform)
        .await;
    world.provision(&platform).await;
    world.run_jobs().await;
    world
        .create_object(ResourceType::D1, "of-others", "somebody-else")
        .await;
    world.provider.set_failing(true);
    let of_dev = world.deprovision(&platform, "dev").await;
    world.run_jobs().await;
    let caller = owner(&platform);
    world.begin_session_of(&caller).await;
    let _ = world
        .change_lifecycle(&platform, "delete", &caller)
        .await
        .expect(200);
    world.run_jobs().await;
    // The owner cannot repeat the deletion. An operator's deletion retries the same job.
    let removal = world.removal_of(&platform).await;
    for _ in 0..2 {
        let refused = world.change_lifecycle(&platform, "delete", &caller).await;
        refused.expect_error(409, "INVALID_STATE");
        let failed = world.job(&removal).await;
        assert_eq!(failed["status"], "FAILED");
        let again = world
            .change_lifecycle(&platform, "delete", &operator())
            .await;
        assert_eq!(again.expect(200).text("status"), "deleted");
        assert_eq!(world.removal_of(&platform).await, removal);
        let under_way = world
            .change_lifecycle(&platform, "delete", &operator())
            .await;
        under_way.expect_error(409, "INVALID_STATE");
        world.run_jobs().await;
    }

    // Neither the removal of one environment nor a forced completion purges the platform.
    world.provider.set_failing(false);
    world.operate(&of_dev, JobCommand::Retry).await;
    world.run_jobs().await;
    assert_eq!(world.job(&of_dev).await["status"], "COMPLETED");
    assert_eq!(world.status(&platform).await, "deleted");
    world.operate(&removal, JobCommand::ForceComplete).await;
    assert_eq!(world.job(&removal).await["status"], "COMPLETED");
    assert_eq!(world.status(&platform).await, "deleted");
    assert_eq!(world.provider.names().len(), 8);
    assert!(world.audit("platform.purged").await.is_empty());

    // Another request queues a new removal.
    let again = world
        .change_lifecycle(&platform, "delete", &operator())
        .await;
    let _ = again.expect(200);
    assert_ne!(world.removal_of(&platform).await, removal);
    world.run_jobs().await;
    assert!(world.is_purged(&platform).await);
    assert_eq!(world.provider.names(), ["of-others"]);
    assert_eq!(world.audit("platform.purged").await.len(), 1);
    assert!(world.is_slug_available("engines").await);
}

#[tokio::test]
async fn a_hard_delete_cancels_jobs_of_unknown_kinds() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let overtaken = world.provision(&platform).await;
    let unknown = |job: &mut Job| job.kind = "platform.forgotten".to_owned();
    world.change_job(&overtaken, unknown).await;
    let caller = owner(&platform);
    world.begin_session_of(&caller).await;
    let _ = world
        .change_lifecycle(&platform, "delete", &caller)
        .await
        .expect(200);
    world.run_jobs().await;
    assert!(world.is_purged(&platform).await);
    let job = world.job(&overtaken).await;
    let told = [&job["status"], &job["failureKind"]];
    assert_eq!(told, ["FAILED", "CANCELLED"]);
}

async fn a_hard_delete_cancels_jobs_without_dead_letters(world: World) {
    let platform = world.create_platform("engines").await;
    let overtaken = [
        world.provision(&platform).await,
        world.provision(&platform).await,
        world.deprovision(&platform, "dev").await,
    ];
    let deployment = world.deployment(&platform, &operator()).await;
    let claimed = world.worker().claim(1).await.unwrap();
    assert_eq!(claimed[0].job_id.as_str(), overtaken[2]);
    world.begin_session_of(&owner(&platform)).await;
    let deleted = world
        .change_lifecycle(&platform, "delete", &owner(&platform))
        .await;
    let _ = deleted.expect(200);
    let path = platform_path(&platform, &format!("/deployments/{deployment}"));
    let shown = world.cli.get(&operator(), &path).await.expect(200);
    assert_eq!(shown.text("status"), "canceled");
    for job in &overtaken {
        let job = world.job(job).await;
        let told = [&job["status"], &job["failureKind"]];
        assert_eq!(told, ["FAILED", "CANCELLED"]);
        assert_eq!(job["reason"], "The platform is being removed for good.");
        assert!(job["dlqEntryId"].is_null());
    }
    let cancelled = world.audit("job.cancelled").await;
    assert_eq!(cancelled.len(), 4);
    assert!(cancelled.iter().all(|entry| entry.actor_id == "olga"));
    world.set_platform_status(&platform, "suspended").await;
    // The worker of the cancelled job may still run, so its lease must expire first.
    assert_eq!(world.next_job().await, None);
    world.tick(31);
    world.run_jobs().await;
    assert!(world.is_purged(&platform).await && world.provider.names().is_empty());
    assert_eq!(world.audit("job_hold.lifted").await.len(), 1);
}

async fn an_onboarding_creates_nothing_after_its_platform_was_removed(world: World) {
    let ada = world.sign_up("ada@example.org").await;
    let jobs_of_platforms = HoldScope::Kind("platform".to_owned());
    world.hold(&jobs_of_platforms, true).await;
    let start = json!({ "platformName": "Engines", "slug": "engines" });
    let path = "/api/v1/onboarding/start";
    let started = world.registry.post(&ada.caller(), path, start).await;
    let started = started.expect(202);
    world.run_jobs().await;
    let path = format!("/api/v1/onboarding/status/{}", started.text("onboardingId"));
    let status = world.registry.get(&ada.caller(), &path).await.expect(200);
    assert_eq!(status.text("status"), "WAITING");
    let message = "infrastructure: waiting for the platform's infrastructure";
    assert_eq!(status.text("message"), message);
    let platform = status.text("platformId");
    // The job that creates the infrastructure is in the platform's own lane.
    let [job] = <[Value; 1]>::try_from(world.jobs(platform).await).unwrap();
    let told = [&job["kind"], &job["status"], &job["parentJobId"]];
    assert_eq!(told, ["platform", "QUEUED", started.text("jobId")]);
    world.delete_platform(platform, "delete").await;
    world.hold(&jobs_of_platforms, false).await;
    world.finish_jobs().await;
    assert!(world.is_purged(platform).await && world.provider.names().is_empty());
    let ended = world.job(started.text("jobId")).await;
    assert_eq!(ended["status"], "FAILED");
    assert!(world.is_slug_available("engines").await);
}

#[tokio::test]
async fn pending_deployments_are_cancelled_when_production_is_removed() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let deployment = world.deployment(&platform, &operator()).await;
    let path = platform_path(&platform, &format!("/deployments/{deployment}"));
    for (environment, status) in [("dev", "queued"), ("prod", "canceled")] {
        let removal = world.deprovision(&platform, environment).await;
        assert!(world.worker().run_one(&NoSupervisor).await.is_ok());
        assert_eq!(world.job(&removal).await["status"], "COMPLETED");
        let shown = world.cli.get(&operator(), &path).await.expect(200);
        assert_eq!(shown.text("status"), status, "{environment}");
    }
}

on_every_store! {
    a_platform_is_purged_only_after_all_its_objects_are_removed,
    a_hard_delete_cancels_jobs_without_dead_letters,
    an_onboarding_creates_nothing_after_its_platform_was_removed,
}
