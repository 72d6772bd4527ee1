//! The order in which the jobs of a platform run.

use core_domain::access::RecordKey;
use core_domain::kernel::{JobId, Timestamp};
use core_domain::port::{Mode, Repository};
use core_domain::provisioning::JobLease;
use core_domain::testing::named_uuid;
use serde_json::json;

use super::{DEPROVISION, PLATFORM, platform_body};
use crate::world::{JobCommand, World, on_every_store, operator};

#[tokio::test]
async fn removals_run_before_queued_jobs_and_other_jobs_in_queue_order() {
    let world = World::new();
    let platform = world.create_platform("engines").await;
    let mut waiting = Vec::new();
    for _ in 0..3 {
        let body = platform_body(&platform);
        waiting.push(world.queue_job(&operator(), PLATFORM, body).await);
    }
    let first = world.deprovision(&platform, "stg").await;
    let body = json!({ "platformId": platform });
    let second = world.queue_job(&operator(), DEPROVISION, body).await;
    let shown = world.job(&second).await;
    let told = [&shown["kind"], &shown["environment"]];
    assert_eq!(told, ["platform.deprovision", "prod"]);
    for id in [second, first].into_iter().chain(waiting) {
        assert_eq!(world.next_job().await, Some(id.clone()));
        // A cancelled job may have to be undone first.
        world.operate(&id, JobCommand::ForceComplete).await;
    }
    assert_eq!(world.next_job().await, None);
    let queued = world.audit("platform.deprovision_queued").await;
    assert_eq!(queued.len(), 2);
    assert_eq!(queued[0].platform_id.as_ref().unwrap().as_str(), platform);
}

async fn a_retried_removal_runs_before_all_queued_jobs_again(world: World) {
    let platform = world.create_platform("engines").await;
    let removal = world.deprovision(&platform, "prod").await;
    world.provider.set_failing(true);
    world.run_jobs().await;
    assert_eq!(world.job(&removal).await["status"], "FAILED");
    let waiting = world.provision(&platform).await;
    // The suspension holds the other job. A removal after it would wait forever.
    world.set_platform_status(&platform, "suspended").await;
    world.operate(&removal, JobCommand::Retry).await;
    assert_eq!(world.next_job().await.as_deref(), Some(&*removal));
    world.set_platform_status(&platform, "active").await;
    assert_eq!(world.next_job().await, Some(removal.clone()));
    world.operate(&removal, JobCommand::Cancel).await;
    // A retried job that is not a removal moves to the end of its lane.
    let last = world.provision(&platform).await;
    world.operate(&waiting, JobCommand::Cancel).await;
    world.operate(&waiting, JobCommand::Retry).await;
    assert_eq!(world.next_job().await, Some(last));
}

/// Adds a lease of a job that is not running.
async fn orphan_lease(world: &World, job: &str) {
    let mut uow = world.app.store.begin(Mode::Write).await.unwrap();
    let lease = JobLease {
        job_id: JobId::parse(job).unwrap(),
        fence: 1,
        owner: "nobody".to_owned(),
        lease_until: Timestamp::EPOCH,
    };
    let repositories = uow.repositories(RecordKey::for_tests());
    let leases: &mut dyn Repository<JobLease> = repositories.job_leases();
    leases.insert(lease).await.unwrap();
    uow.commit().await.unwrap();
}

async fn a_restart_requeues_running_jobs_and_ends_all_leases(world: World) {
    let platform = world.create_platform("engines").await;
    let running = world.provision(&platform).await;
    let claimed = world.worker().claim(1).await.unwrap();
    assert_eq!(claimed[0].job_id.as_str(), running);
    let waiting = world.provision(&platform).await;
    orphan_lease(&world, &waiting).await;
    orphan_lease(&world, &named_uuid("no-such-job")).await;
    assert_eq!(world.worker().recover().await.unwrap(), 1);
    let taken_back = world.job(&running).await;
    assert_eq!(taken_back["status"], "QUEUED");
    assert_eq!(taken_back["error"]["code"], "WORKER_LOST");
    assert_eq!(world.job(&waiting).await["status"], "QUEUED");
    assert_eq!(world.worker().recover().await.unwrap(), 0);
    // The lane does not have to wait for the lease, because its holder ended with the process.
    let retry = taken_back["runAt"].as_str().unwrap();
    assert!(retry <= "2027-01-15T08:00:03.000Z", "{retry}");
    world.tick(2);
    assert_eq!(world.next_job().await, Some(running));
}

on_every_store! {
    a_retried_removal_runs_before_all_queued_jobs_again,
    a_restart_requeues_running_jobs_and_ends_all_leases,
}
