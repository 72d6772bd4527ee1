//! A worker that dies between any two units of work, and a store that fails any one call.

use std::sync::Arc;

use core_domain::provisioning::{JobStatus, StepStatus};
use core_domain::use_case::provisioning::Unsupervised;

use super::audit::invariants_hold;
use super::engine::until_idle;
use super::world::{Fault, World};
use crate::dying_store::DyingStore;

/// Dies after `units` units of work; answers whether that was before the job's end.
async fn dies_after(units: i64, fault: Fault) -> bool {
    let mut world = World::memory();
    world.provider.script.lock().unwrap().push(fault);
    let id = world.create(0, "work", false).await;
    let alive = Arc::clone(&world.store);
    world.store = DyingStore::after(units, Arc::clone(&alive));
    let died = world.worker().run_one(&Unsupervised).await.is_err();
    world.store = alive;
    let before = world.job(&id).await;
    world.worker().recover().await.unwrap();
    invariants_hold(&world).await;
    until_idle(&world).await;
    let job = world.job(&id).await;
    assert_eq!(
        job.status,
        JobStatus::Completed,
        "died after {units} units: {job:?}"
    );
    for (then, now) in before.steps.iter().zip(&job.steps) {
        if then.status == StepStatus::Succeeded {
            assert_eq!(then, now, "I7: a step that was done changed");
        }
    }
    assert_eq!(world.provider.objects.lock().unwrap().len(), 3);
    invariants_hold(&world).await;
    died
}

#[tokio::test]
async fn a_worker_that_dies_anywhere_leaves_a_job_that_completes_with_each_thing_once() {
    for fault in [Fault::None, Fault::AfterApply, Fault::Before] {
        let mut units = 1;
        while dies_after(units, fault).await {
            units += 1;
        }
        assert!(units > 2, "{fault:?} ended after {units} units");
    }
}

#[tokio::test]
async fn any_one_call_of_the_store_may_fail() {
    for call in 1.. {
        let (world, store) = World::faulty();
        let id = world.create(0, "work", false).await;
        store.fail_call(call);
        let _ = world.worker().run_one(&Unsupervised).await;
        if !store.has_failed() {
            assert!(call > 50, "a run has only {call} calls");
            return;
        }
        world.worker().recover().await.unwrap();
        until_idle(&world).await;
        assert_eq!(
            world.job(&id).await.status,
            JobStatus::Completed,
            "call {call}"
        );
        invariants_hold(&world).await;
    }
}
