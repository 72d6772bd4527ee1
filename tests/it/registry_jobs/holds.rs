//! A suspension holds the platform's jobs, but not its removal.

use core_domain::kernel::{Environment, PlatformId};
use core_domain::provisioning::JobStatus;
use core_domain::use_case::registry::platform;

use crate::world::{Platforms, as_operator, on_every_store};

on_every_store! { Platforms: a_suspended_platforms_provisioning_waits_until_it_is_restored }

async fn suspend(world: &Platforms, id: &PlatformId) {
    as_operator!(world, id, |cx, scope, uow| platform::suspend(
        cx, scope, uow, None
    ));
}

async fn restore(world: &Platforms, id: &PlatformId) {
    as_operator!(world, id, |cx, scope, uow| platform::restore(
        cx, scope, uow, None
    ));
}

/// Sets only the suspension flag, as an external service does.
async fn flag(world: &Platforms, id: &PlatformId, suspended: bool) {
    as_operator!(world, id, |cx, scope, uow| platform::set_suspension(
        cx, scope, uow, suspended, None
    ));
}

async fn a_suspended_platforms_provisioning_waits_until_it_is_restored(world: Platforms) {
    let done = world.set_up("engines").await;
    let platform = &done.platform_id;
    for from_outside in [false, true] {
        if from_outside {
            flag(&world, platform, true).await;
        } else {
            suspend(&world, platform).await;
        }
        assert!(world.is_idle().await);
        assert_eq!(world.status(&done.job_id).await, JobStatus::Queued);
        // A job that is queued during the suspension waits as well.
        world.provision(platform, Environment::Dev).await;
        assert!(world.is_idle().await);
        assert!(world.objects(platform).await.is_empty());
        if from_outside {
            flag(&world, platform, false).await;
        } else {
            restore(&world, platform).await;
        }
    }
    world.until_idle().await;
    for job in world.jobs().await {
        assert_eq!(job.status, JobStatus::Completed);
    }
    assert_eq!(world.objects(platform).await.len(), 12);
}

#[tokio::test]
async fn a_suspended_platform_is_deprovisioned_at_once() {
    let world = Platforms::memory().await;
    let platform = &world.complete().await;
    suspend(&world, platform).await;
    let waiting = world.provision(platform, Environment::Dev).await;
    let removal = world.deprovision(platform, Environment::Prod).await;
    assert!(!world.is_idle().await);
    assert_eq!(world.status(&removal).await, JobStatus::Completed);
    assert!(world.objects(platform).await.is_empty());
    // The held job still waits.
    assert!(world.is_idle().await);
    assert_eq!(world.status(&waiting).await, JobStatus::Queued);
}

#[tokio::test]
async fn a_suspended_platform_can_be_hard_deleted() {
    let world = Platforms::memory().await;
    let done = world.set_up("engines").await;
    suspend(&world, &done.platform_id).await;
    world.hard_delete(&done.platform_id).await;
    world.until_idle().await;
    world
        .assert_nothing_left(&done.platform_id, "removed")
        .await;
}
