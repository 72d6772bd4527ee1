//! A worker that dies between any two units of work, and a store that fails any one call.

use core_domain::kernel::JobId;
use core_domain::provisioning::{JobStatus, StepStatus};
use core_domain::use_case::provisioning::NoSupervisor;

use super::audit::assert_invariants;
use crate::world::{Engine, FakeProvider, Fault};

/// Runs a worker that dies after `units` units of work. Returns whether it died before the end of the job.
async fn dies_after(units: i64, fault: Fault, plain: bool) -> bool {
    let world = Engine::memory().await;
    world.provider.script([fault]);
    let id = create(&world, plain).await;
    let died = world.dies_after(units).await;
    let before = world.job(&id).await;
    world.worker().recover().await.unwrap();
    assert_invariants(&world).await;
    world.until_idle().await;
    let job = world.job(&id).await;
    let context = format!("died after {units} units: {job:?}");
    assert_eq!(job.status, JobStatus::Completed, "{context}");
    for (then, now) in before.steps.iter().zip(&job.steps) {
        if then.status == StepStatus::Succeeded {
            assert_eq!(then, now, "I7: a step that was done changed");
        }
    }
    assert_eq!(world.provider.names().len(), 3);
    assert_invariants(&world).await;
    died
}

#[tokio::test]
async fn after_a_crash_anywhere_a_job_completes_with_each_object_once() {
    for fault in [Fault::None, Fault::NoAnswer, Fault::Down] {
        for plain in [false, true] {
            let mut units = 1;
            while dies_after(units, fault, plain).await {
                units += 1;
            }
            assert!(units > 2, "{fault:?} ended after {units} units");
        }
    }
}

/// Queues a job whose kind has hooks, or a plain job whose outcomes are committed together with others.
async fn create(world: &Engine, plain: bool) -> JobId {
    if plain {
        return world.create_plain(0).await;
    }
    world.create(0).await
}

#[tokio::test]
async fn any_one_call_of_the_store_may_fail() {
    for plain in [false, true] {
        any_one_call_may_fail(plain).await;
    }
}

async fn any_one_call_may_fail(plain: bool) {
    for call in 1.. {
        let (world, store, _) = Engine::faulty(FakeProvider::default());
        let id = create(&world, plain).await;
        store.fail_call(call);
        // The failure ends the work on the job; the checks below read its state.
        let _ = world.worker().run_one(&NoSupervisor).await;
        if !store.has_failed() {
            assert!(call > 30, "a run has only {call} calls");
            return;
        }
        world.restart().await;
        assert_eq!(world.status(&id).await, JobStatus::Completed, "call {call}");
        assert_invariants(&world).await;
    }
}
