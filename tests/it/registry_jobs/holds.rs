//! Suspension holds a platform's jobs; removing it goes on all the same.

use core_domain::kernel::{Environment, PlatformId};
use core_domain::port::transact;
use core_domain::provisioning::JobStatus;
use core_domain::registry::PlatformEvent;
use core_domain::use_case::provisioning::{Outcome, Unsupervised};
use core_domain::use_case::registry::{move_platform, set_suspension};

use super::removal::{deprovision, hard_delete, provision};
use super::world::World;

async fn moved(world: &World, platform: &PlatformId, event: PlatformEvent) {
    let done = transact(world.store.as_ref(), |uow, _| {
        let cx = &world.cx;
        Box::pin(async move { move_platform(cx, uow, platform, event, None).await })
    });
    done.await.unwrap();
}

async fn flagged(world: &World, platform: &PlatformId, suspended: bool) {
    let done = transact(world.store.as_ref(), |uow, _| {
        let cx = &world.cx;
        Box::pin(async move { set_suspension(cx, uow, platform, suspended, None).await })
    });
    done.await.unwrap();
}

async fn is_idle(world: &World) -> bool {
    world.worker().run_one(&Unsupervised).await.unwrap() == Outcome::Idle
}

#[tokio::test]
async fn a_suspended_platforms_provisioning_waits_until_it_is_restored() {
    for from_outside in [false, true] {
        let world = World::memory().await;
        let done = world.set_up("engines").await;
        let platform = &done.platform_id;
        if from_outside {
            flagged(&world, platform, true).await;
        } else {
            moved(&world, platform, PlatformEvent::Suspend).await;
        }
        assert!(is_idle(&world).await);
        assert_eq!(world.status(&done.job_id).await, JobStatus::Queued);
        // A job that is asked for meanwhile waits as well.
        let later = provision(&world, platform, Environment::Dev).await;
        assert!(is_idle(&world).await);
        assert!(world.things(platform).await.is_empty());
        if from_outside {
            flagged(&world, platform, false).await;
        } else {
            moved(&world, platform, PlatformEvent::Restore).await;
        }
        world.until_idle().await;
        for job in [&done.job_id, &later] {
            assert_eq!(world.status(job).await, JobStatus::Completed);
        }
        assert_eq!(world.things(platform).await.len(), 12);
    }
}

#[tokio::test]
async fn a_suspended_platforms_neighbours_do_not_wait() {
    let world = World::memory().await;
    let done = world.set_up("engines").await;
    flagged(&world, &PlatformId::parse("another").unwrap(), true).await;
    world.until_idle().await;
    assert_eq!(world.status(&done.job_id).await, JobStatus::Completed);
}

#[tokio::test]
async fn a_suspended_platform_is_deprovisioned_at_once() {
    let world = World::memory().await;
    let done = world.set_up("engines").await;
    let platform = &done.platform_id;
    world.until_idle().await;
    moved(&world, platform, PlatformEvent::Suspend).await;
    let waiting = provision(&world, platform, Environment::Dev).await;
    let removal = deprovision(&world, platform, Environment::Prod).await;
    assert!(!is_idle(&world).await);
    assert_eq!(world.status(&removal).await, JobStatus::Completed);
    assert!(world.things(platform).await.is_empty());
    // What waited still waits.
    assert!(is_idle(&world).await);
    assert_eq!(world.status(&waiting).await, JobStatus::Queued);
}

#[tokio::test]
async fn a_suspended_platform_is_removed_for_good_and_its_waiting_jobs_fail() {
    let world = World::memory().await;
    let done = world.set_up("engines").await;
    let platform = &done.platform_id;
    moved(&world, platform, PlatformEvent::Suspend).await;
    hard_delete(&world, platform).await;
    world.until_idle().await;
    let mut uow = world.unit().await;
    assert!(
        uow.platforms()
            .get(platform.as_str())
            .await
            .unwrap()
            .is_none()
    );
    assert!(world.things(platform).await.is_empty());
    assert_eq!(world.status(&done.job_id).await, JobStatus::Failed);
}
