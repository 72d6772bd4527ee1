//! A worker that dies between any two units of work, a store that fails any call, a provider that does not answer.

use std::sync::Arc;

use core_domain::kernel::PlatformId;
use core_domain::provisioning::JobStatus;
use core_domain::use_case::provisioning::Unsupervised;
use core_local::Moment;

use super::removal::hard_delete;
use super::world::World;
use crate::dying_store::DyingStore;

/// Works until the process dies after so many units; then another process goes on. Tells whether it died.
async fn dies_after(units: i64, world: &mut World) -> bool {
    let alive = Arc::clone(&world.store);
    world.store = DyingStore::after(units, Arc::clone(&alive));
    let died = world.worker().run_one(&Unsupervised).await.is_err();
    world.store = alive;
    world.worker().recover().await.unwrap();
    world.until_idle().await;
    died
}

#[tokio::test]
async fn wherever_the_worker_dies_a_platform_has_its_six_resources_once() {
    let mut units = 1;
    loop {
        let mut world = World::memory().await;
        let done = world.set_up("engines").await;
        let died = dies_after(units, &mut world).await;
        assert_eq!(
            world.status(&done.job_id).await,
            JobStatus::Completed,
            "{units} units"
        );
        world
            .has_exactly_six(&done.platform_id, &format!("{units} units"))
            .await;
        if !died {
            break;
        }
        units += 1;
    }
    assert!(units > 12, "a run has only {units} units");
}

/// A platform that is to be removed for good.
async fn doomed() -> (World, PlatformId) {
    let world = World::memory().await;
    let done = world.set_up("engines").await;
    world.until_idle().await;
    hard_delete(&world, &done.platform_id).await;
    (world, done.platform_id)
}

async fn is_gone(world: &World, platform: &PlatformId, context: &str) {
    assert!(world.things(platform).await.is_empty(), "{context}");
    assert!(world.entries(platform, true).await.is_empty(), "{context}");
    let row = world
        .unit()
        .await
        .platforms()
        .get(platform.as_str())
        .await
        .unwrap();
    assert!(row.is_none(), "{context}");
}

#[tokio::test]
async fn wherever_the_worker_dies_a_removed_platform_is_gone_in_the_end() {
    let mut units = 1;
    loop {
        let (mut world, platform) = doomed().await;
        let died = dies_after(units, &mut world).await;
        is_gone(&world, &platform, &format!("{units} units")).await;
        if !died {
            break;
        }
        units += 1;
    }
    assert!(units > 12, "a run has only {units} units");
}

#[tokio::test]
async fn any_one_call_of_the_store_may_fail_while_a_platform_is_made() {
    for call in 1.. {
        let (world, store) = World::faulty().await;
        let done = world.set_up("engines").await;
        store.fail_call(call);
        let _ = world.worker().run_one(&Unsupervised).await;
        if !store.has_failed() {
            assert!(call > 100, "a run has only {call} calls");
            return;
        }
        world.worker().recover().await.unwrap();
        world.until_idle().await;
        assert_eq!(
            world.status(&done.job_id).await,
            JobStatus::Completed,
            "call {call}"
        );
        world
            .has_exactly_six(&done.platform_id, &format!("call {call}"))
            .await;
    }
}

#[tokio::test]
async fn a_provider_that_does_not_answer_makes_nothing_twice() {
    for moment in [Moment::Before, Moment::Staged, Moment::Done] {
        for number in 0..6 {
            let world = World::memory().await;
            let done = world.set_up("engines").await;
            *world.trap.lock().unwrap() = Some(("create", number, moment));
            world.until_idle().await;
            let context = format!("{moment:?} of thing {number}");
            assert_eq!(*world.trap.lock().unwrap(), None, "{context} was not met");
            assert_eq!(
                world.status(&done.job_id).await,
                JobStatus::Completed,
                "{context}"
            );
            world.has_exactly_six(&done.platform_id, &context).await;
        }
    }
}

#[tokio::test]
async fn a_provider_that_does_not_answer_keeps_nothing_of_a_removed_platform() {
    for moment in [Moment::Before, Moment::Done] {
        for number in 0..6 {
            let (world, platform) = doomed().await;
            *world.trap.lock().unwrap() = Some(("remove", number, moment));
            world.until_idle().await;
            let context = format!("{moment:?} of thing {number}");
            assert_eq!(*world.trap.lock().unwrap(), None, "{context} was not met");
            is_gone(&world, &platform, &context).await;
        }
    }
}
