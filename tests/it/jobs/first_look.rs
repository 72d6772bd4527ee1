//! The first observation of a step that can be undone. It is stored before the first effect, never changes, and decides
//! whether the step is undone.

use core_domain::kernel::JobId;
use core_domain::provisioning::{
    FirstObservation, Job, JobEvent, JobEventQuery, JobStatus, JobTransition, Report, StepStatus,
};
use core_domain::use_case::provisioning::NoSupervisor;
use serde_json::json;

use super::audit::assert_invariants;
use super::undo::{create, let_stale_effects_land, only_undoing};
use crate::world::{Engine, FakeProvider, Fault, JobCommand, on_every_store};

on_every_store! {
    Engine:
        a_step_without_a_stored_observation_is_not_undone,
        a_later_observation_never_changes_the_first_one,
        steps_that_cannot_be_undone_store_no_observation,
}

async fn first_looks(world: &Engine, id: &JobId) -> Vec<Option<FirstObservation>> {
    let job = world.job(id).await;
    job.steps.iter().map(|step| step.first_look).collect()
}

async fn history(world: &Engine, id: &JobId) -> Vec<JobEvent> {
    world.list(JobEventQuery::After(id.clone(), 0)).await
}

async fn cancel_and_undo(world: &Engine, id: &JobId) -> Job {
    world.operate(JobCommand::Cancel, id).await.unwrap();
    let_stale_effects_land(world);
    world.until_idle().await;
    let undo = only_undoing(world, id).await;
    assert_eq!(undo.status, JobStatus::Completed, "{undo:?}");
    undo
}

const UNKNOWN: &str = "it is unknown whether it existed before the job";

async fn a_step_without_a_stored_observation_is_not_undone(world: Engine) {
    let id = create(&world).await;
    let worker = world.worker();
    let claimed = worker.claim(1).await.unwrap().remove(0);
    // Earlier versions of the engine stored no observations.
    world.provider.put(&format!("{id}-db"));
    for report in [Report::Advance(0, json!({})), Report::Start(1)] {
        worker.report(&claimed, report).await.unwrap();
    }
    let undo = cancel_and_undo(&world, &id).await;
    assert_eq!(world.provider.names(), [format!("{id}-db")]);
    assert_eq!(undo.output, Some(json!({ "db": { "left": UNKNOWN } })));
    let told = history(&world, &id).await.pop().unwrap();
    assert_eq!(told.event_type, JobTransition::Undo.as_str());
    assert_eq!(told.reason, Some(format!("left: {UNKNOWN}")));
    assert_invariants(&world).await;
    // The retry observes an object that existed before it.
    world.operate(JobCommand::Retry, &id).await.unwrap();
    world.until_idle().await;
    assert_eq!(world.status(&id).await, JobStatus::Completed);
    assert_eq!(
        first_looks(&world, &id).await[0],
        Some(FirstObservation::Present)
    );
    assert_invariants(&world).await;
}

async fn a_later_observation_never_changes_the_first_one(world: Engine) {
    let id = create(&world).await;
    world.provider.script([Fault::NoAnswer]);
    world.run_one().await;
    let looked = [Some(FirstObservation::Absent), None, None];
    assert_eq!(first_looks(&world, &id).await, looked);
    world.tick(60);
    world.until_idle().await;
    assert_eq!(world.status(&id).await, JobStatus::Completed);
    // The second attempt found it, but the first observation shows that the job created it.
    let looked = [
        Some(FirstObservation::Absent),
        None,
        Some(FirstObservation::Absent),
    ];
    assert_eq!(first_looks(&world, &id).await, looked);
    let history = history(&world, &id).await;
    let looks = history
        .iter()
        .filter(|event| event.event_type == JobTransition::Look.as_str());
    assert_eq!(looks.count(), 2);
    let (other, worker) = (create(&world).await, world.worker());
    let claimed = worker.claim(1).await.unwrap().remove(0);
    for found in [FirstObservation::Present, FirstObservation::Absent] {
        let look = Report::Look(0, found);
        worker.report(&claimed, look).await.unwrap();
        let stays = Some(FirstObservation::Present);
        assert_eq!(first_looks(&world, &other).await[0], stays);
    }
    assert_invariants(&world).await;
}

async fn steps_that_cannot_be_undone_store_no_observation(world: Engine) {
    let id = world.create_plain(0).await;
    world.until_idle().await;
    assert_eq!(first_looks(&world, &id).await, [None; 3]);
    // Created, claimed, started; then three steps, of which two are followed by the intent for the next step.
    assert_eq!(history(&world, &id).await.len(), 3 + 3 + 2);
    assert_invariants(&world).await;
}

/// Kills the worker after every unit of work.
#[tokio::test]
async fn objects_that_existed_before_a_job_remain_after_its_undo() {
    for fault in [Fault::None, Fault::NoAnswer] {
        for units in 1.. {
            let world = Engine::memory().await;
            let id = create(&world).await;
            let older = format!("{id}-db");
            world.provider.put(&older);
            world.provider.script([Fault::None, fault]);
            let died = world.dies_after(units).await;
            if world.status(&id).await == JobStatus::Completed {
                assert!(units > 6, "a run has only {units} units");
                break;
            }
            world.worker().recover().await.unwrap();
            world.operate(JobCommand::Cancel, &id).await.unwrap();
            let_stale_effects_land(&world);
            world.until_idle().await;
            let left = world.provider.names();
            assert!(left.contains(&older), "{fault:?} after {units} units");
            let site = format!("{id}-site");
            assert!(!left.contains(&site), "{fault:?} after {units} units");
            assert_invariants(&world).await;
            if !died {
                assert!(units > 3, "{fault:?} ended after {units} units");
                break;
            }
        }
    }
}

#[tokio::test]
async fn no_effect_is_sent_before_the_first_observation_is_stored() {
    for call in 1.. {
        let (world, store, _) = Engine::faulty(FakeProvider::default());
        let id = create(&world).await;
        store.fail_call(call);
        // The failure interrupts the job; the checks below read its state.
        let _ = world.worker().run_one(&NoSupervisor).await;
        if !store.has_failed() {
            assert!(call > 40, "a run has only {call} calls");
            return;
        }
        let (job, made) = (world.job(&id).await, world.provider.names());
        for step in &job.steps {
            let is_made = made.contains(&format!("{id}-{}", step.name));
            if is_made && step.name != "bucket" {
                let looked = step.first_look;
                assert_eq!(
                    looked,
                    Some(FirstObservation::Absent),
                    "call {call}: {job:?}"
                );
            }
            let is_done = step.status == StepStatus::Succeeded;
            assert!(is_made || !is_done, "call {call}: {job:?}");
        }
        assert_invariants(&world).await;
    }
}
