//! Undoing the steps of a cancelled job.

use std::sync::Arc;
use std::time::Duration;

use core_domain::kernel::{Error, JobId};
use core_domain::provisioning::{
    DEFAULT_LEASE, FailureKind, FirstObservation, Job, JobEvent, JobEventQuery, JobStatus,
    JobTransition, Report, StepStatus,
};
use core_domain::use_case::provisioning::{Claim, JobKind, NoSupervisor, Outcome, Worker};
use futures_util::future::join_all;
use serde_json::json;

use super::audit::assert_invariants;
use crate::world::{Engine, Fault, JobCommand, Undoable, on_every_store};

on_every_store! {
    Engine:
        a_cancelled_job_is_undone_in_reverse_order_and_can_be_retried,
        a_job_that_is_being_undone_refuses_all_commands,
        only_one_of_several_concurrent_cancels_succeeds,
        a_failed_undo_can_be_retried_unless_its_job_was_retried,
}

/// How long after the end of a lease a request of its holder may still arrive.
const MAX_STEP_DURATION: Duration = Duration::from_secs(60);

pub(super) async fn create(world: &Engine) -> JobId {
    world.enqueue::<Undoable>(0, None).await.unwrap()
}

/// Creates a job with `done` completed steps, while the next step is in progress.
async fn start_undoable(world: &Engine, done: usize) -> (JobId, Worker, Claim) {
    let id = create(world).await;
    let worker = world.worker();
    let claimed = worker.claim(1).await.unwrap().remove(0);
    let look = async |step| {
        let look = Report::Look(step, FirstObservation::Absent);
        worker.report(&claimed, look).await.unwrap();
    };
    look(0).await;
    for step in 0..done {
        let name = world.job(&id).await.steps[step].name.clone();
        world.provider.put(&format!("{id}-{name}"));
        let output = json!({ "id": name });
        worker
            .report(&claimed, Report::Advance(step, output))
            .await
            .unwrap();
        worker
            .report(&claimed, Report::Start(step + 1))
            .await
            .unwrap();
        look(step + 1).await;
    }
    (id, worker, claimed)
}

/// The jobs that undo this one, newest first.
async fn undoing(world: &Engine, id: &JobId) -> Vec<Job> {
    let mut jobs = world.jobs().await;
    jobs.retain(|job| job.parent_job_id.as_ref() == Some(id));
    jobs
}

pub(super) async fn only_undoing(world: &Engine, id: &JobId) -> Job {
    let [undo] = <[Job; 1]>::try_from(undoing(world, id).await).unwrap();
    undo
}

async fn statuses(world: &Engine, id: &JobId) -> Vec<StepStatus> {
    let job = world.job(id).await;
    job.steps.iter().map(|step| step.status).collect()
}

/// Lets enough time pass for the undo of a running job to start.
pub(super) fn let_stale_effects_land(world: &Engine) {
    world.tick((DEFAULT_LEASE + MAX_STEP_DURATION).as_secs());
}

async fn a_cancelled_job_is_undone_in_reverse_order_and_can_be_retried(world: Engine) {
    let (id, worker, claimed) = start_undoable(&world, 2).await;
    let later = world.create(0).await;
    let running = world.job(&id).await;
    world.operate(JobCommand::Cancel, &id).await.unwrap();
    let undo = only_undoing(&world, &id).await;
    let kind = format!("{}.undo", Undoable::NAME);
    assert_eq!((undo.kind, undo.status), (kind, JobStatus::Queued));
    assert_eq!(undo.lane, running.lane);
    assert_eq!(
        undo.run_at,
        running.updated_at.plus(DEFAULT_LEASE + MAX_STEP_DURATION)
    );
    let names: Vec<_> = undo.steps.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(names, ["site", "db"]);
    let keys = undo.steps.iter().map(|step| step.effect_key.clone());
    let undone_keys = [2, 0].map(|at: usize| running.steps[at].effect_key.clone());
    assert!(keys.eq(undone_keys));
    assert_invariants(&world).await;
    // A request of the former holder arrives before the undo observes the object. Neither the undo nor later jobs start
    // before that.
    world.provider.put(&format!("{id}-site"));
    world.tick((DEFAULT_LEASE + MAX_STEP_DURATION).as_secs() - 1);
    assert_eq!(world.run_one().await, Outcome::Idle);
    let stale = worker.run(&claimed, &NoSupervisor).await.unwrap();
    assert_eq!(stale, Outcome::LeaseLost);
    world.operate(JobCommand::Retry, &undo.id).await.unwrap();
    assert_eq!(
        world.run_one().await,
        Outcome::Idle,
        "a reschedule does not start the undo early"
    );
    world.tick(1);
    assert_eq!(world.run_one().await, Outcome::Left(JobStatus::Completed));
    assert_eq!(world.provider.names(), [format!("{id}-bucket")]);
    let undone = [
        StepStatus::Undone,
        StepStatus::Succeeded,
        StepStatus::Undone,
    ];
    assert_eq!(statuses(&world, &id).await, undone);
    assert_eq!(world.status(&later).await, JobStatus::Queued);
    let history: Vec<JobEvent> = world.list(JobEventQuery::After(id.clone(), 0)).await;
    let of_undo = history
        .iter()
        .filter(|e| e.event_type == JobTransition::Undo.as_str());
    let of_undo: Vec<_> = of_undo.map(|e| e.step.clone().unwrap()).collect();
    assert_eq!(of_undo, ["site", "db"]);
    assert_invariants(&world).await;
    let stopped = world.job(&id).await;
    world.operate(JobCommand::Retry, &id).await.unwrap();
    world.until_idle().await;
    let done = world.job(&id).await;
    assert_eq!(done.status, JobStatus::Completed);
    assert_eq!(
        world.provider.names().len(),
        6,
        "both jobs have created all objects"
    );
    let kept = stopped.steps[1].clone();
    assert_eq!(
        done.steps[1], kept,
        "I7: a step that was not undone stays unchanged"
    );
    assert_invariants(&world).await;
}

async fn assert_refused(world: &Engine, command: JobCommand, id: &JobId, allowed: &[&str]) {
    let before = world.job(id).await;
    match world.operate(command, id).await.unwrap_err() {
        Error::InvalidState {
            status,
            allowed_from,
        } => assert!(status == before.status.as_str() && allowed_from == allowed),
        other => panic!("{other:?}"),
    }
    assert_eq!(world.job(id).await, before);
}

async fn a_job_that_is_being_undone_refuses_all_commands(world: Engine) {
    // Creates a dead letter first, because one is replayed below.
    world.provider.script([Fault::Permanent, Fault::None]);
    let id = create(&world).await;
    world.run_one().await;
    let entry = world.job(&id).await.dlq_entry_id.unwrap();
    world.replay(&world.kinds, &entry).await.unwrap();
    world.operate(JobCommand::Cancel, &id).await.unwrap();
    let undo = only_undoing(&world, &id).await;
    let still = async || {
        assert_refused(&world, JobCommand::Retry, &id, &["QUEUED", "WAITING"]).await;
        let forced = ["QUEUED", "WAITING", "RUNNING"];
        assert_refused(&world, JobCommand::ForceComplete, &id, &forced).await;
        let replayed = world.replay(&world.kinds, &entry).await.unwrap_err();
        assert_eq!(replayed.code().as_str(), "DLQ_ENTRY_NOT_REPLAYABLE");
        assert_refused(
            &world,
            JobCommand::Cancel,
            &id,
            &["QUEUED", "WAITING", "RUNNING"],
        )
        .await;
    };
    still().await;
    world.tick(60);
    let claimed = world.worker().claim(1).await.unwrap().remove(0);
    assert_eq!(claimed.job_id, undo.id);
    still().await;
    world.worker().run(&claimed, &NoSupervisor).await.unwrap();
    assert_eq!(world.status(&undo.id).await, JobStatus::Completed);
    world.operate(JobCommand::ForceComplete, &id).await.unwrap();
    let forced = world.job(&id).await;
    assert_eq!(forced.steps[0].status, StepStatus::Skipped);
    assert_eq!(
        forced.output,
        Some(json!({})),
        "an undone step has no output"
    );
    assert_invariants(&world).await;
}

async fn only_one_of_several_concurrent_cancels_succeeds(world: Engine) {
    let world = Arc::new(world);
    let (id, ..) = start_undoable(&world, 1).await;
    let attempts = (0..12).map(|_| {
        let (world, id) = (Arc::clone(&world), id.clone());
        tokio::spawn(async move { world.operate(JobCommand::Cancel, &id).await })
    });
    let attempts = join_all(attempts).await.into_iter();
    let counted = attempts.filter(|attempt| attempt.as_ref().unwrap().is_ok());
    assert_eq!(counted.count(), 1);
    only_undoing(&world, &id).await;
    assert_invariants(&world).await;
}

async fn a_failed_undo_can_be_retried_unless_its_job_was_retried(world: Engine) {
    let (id, ..) = start_undoable(&world, 2).await;
    world.operate(JobCommand::Cancel, &id).await.unwrap();
    let undo = only_undoing(&world, &id).await;
    // The last step created nothing, so its undo sends no request.
    world.provider.script([Fault::Permanent]);
    let_stale_effects_land(&world);
    assert_eq!(world.run_one().await, Outcome::Left(JobStatus::Failed));
    let failed = world.job(&undo.id).await;
    assert_eq!(failed.failure_kind, Some(FailureKind::PermanentError));
    let entry = failed.dlq_entry_id.unwrap();
    // It is unknown whether the first step is still done.
    let left = [
        StepStatus::Abandoned,
        StepStatus::Succeeded,
        StepStatus::Undone,
    ];
    assert_eq!(statuses(&world, &id).await, left);
    assert_invariants(&world).await;
    world.replay(&world.kinds, &entry).await.unwrap();
    world.until_idle().await;
    assert_eq!(world.status(&undo.id).await, JobStatus::Completed);
    assert_eq!(statuses(&world, &id).await[0], StepStatus::Undone);
    assert_eq!(world.provider.names(), [format!("{id}-bucket")]);
    // Once more, but this time the job is retried before its undo is.
    world.operate(JobCommand::Retry, &id).await.unwrap();
    let worker = world.worker();
    let again = worker.claim(1).await.unwrap();
    assert_eq!(again[0].job_id, id);
    let look = Report::Look(0, FirstObservation::Absent);
    worker.report(&again[0], look).await.unwrap();
    world.provider.put(&format!("{id}-db"));
    world.operate(JobCommand::Cancel, &id).await.unwrap();
    let second = undoing(&world, &id).await.remove(0);
    assert_ne!(second.id, undo.id);
    world.provider.script([Fault::Permanent]);
    let_stale_effects_land(&world);
    assert_eq!(world.run_one().await, Outcome::Left(JobStatus::Failed));
    world.operate(JobCommand::Retry, &id).await.unwrap();
    assert_refused(
        &world,
        JobCommand::Retry,
        &second.id,
        &["QUEUED", "WAITING"],
    )
    .await;
    let entry = world.job(&second.id).await.dlq_entry_id.unwrap();
    assert!(world.replay(&world.kinds, &entry).await.is_err());
    // The undo cannot be retried either after the job was retried and failed, because it is no longer a cancelled job.
    world.provider.script([Fault::Permanent]);
    assert_eq!(world.run_one().await, Outcome::Left(JobStatus::Failed));
    assert_refused(
        &world,
        JobCommand::Retry,
        &second.id,
        &["QUEUED", "WAITING"],
    )
    .await;
    assert!(world.replay(&world.kinds, &entry).await.is_err());
    world.operate(JobCommand::Retry, &id).await.unwrap();
    world
        .operate(JobCommand::ForceComplete, &second.id)
        .await
        .unwrap();
    world.until_idle().await;
    assert_eq!(world.status(&id).await, JobStatus::Completed);
    assert_eq!(world.provider.names().len(), 3);
    assert_invariants(&world).await;
}

#[tokio::test]
async fn a_job_that_has_done_nothing_is_not_undone() {
    let world = Engine::memory().await;
    let id = create(&world).await;
    world.operate(JobCommand::Cancel, &id).await.unwrap();
    assert!(undoing(&world, &id).await.is_empty());
    let id = world.create(1).await;
    world.worker().claim(1).await.unwrap();
    world.operate(JobCommand::Cancel, &id).await.unwrap();
    assert!(
        undoing(&world, &id).await.is_empty(),
        "its kind cannot be undone"
    );
    assert_invariants(&world).await;
}

/// A waiting step may have done a part of its work.
#[tokio::test]
async fn a_waiting_step_is_undone() {
    let world = Engine::memory().await;
    let (id, worker, claimed) = start_undoable(&world, 0).await;
    let wait = Report::Wait {
        until: world.job(&id).await.updated_at.plus(DEFAULT_LEASE),
        reason: "a certificate".into(),
    };
    worker.report(&claimed, wait).await.unwrap();
    world.provider.put(&format!("{id}-db"));
    world.tick(MAX_STEP_DURATION.as_secs());
    world.operate(JobCommand::Cancel, &id).await.unwrap();
    assert_eq!(
        world.run_one().await,
        Outcome::Left(JobStatus::Completed),
        "at once"
    );
    assert!(world.provider.names().is_empty());
    assert_eq!(statuses(&world, &id).await[0], StepStatus::Undone);
    assert_invariants(&world).await;
}

/// Its holder was lost, and the time of its last request is unknown.
#[tokio::test]
async fn a_step_of_a_lost_worker_is_undone_after_its_request_must_have_arrived() {
    let world = Engine::memory().await;
    let (id, ..) = start_undoable(&world, 0).await;
    world.tick(31);
    world.worker().run_timers().await.unwrap();
    let reaped = world.job(&id).await;
    assert_eq!(reaped.status, JobStatus::Queued);
    world.operate(JobCommand::Cancel, &id).await.unwrap();
    let undo = only_undoing(&world, &id).await;
    assert_eq!(undo.run_at, reaped.updated_at.plus(MAX_STEP_DURATION));
    assert_invariants(&world).await;
}

#[tokio::test]
async fn a_cancelled_undo_is_not_undone_and_its_job_can_be_retried() {
    let world = Engine::memory().await;
    let (id, ..) = start_undoable(&world, 1).await;
    world.operate(JobCommand::Cancel, &id).await.unwrap();
    let undo = only_undoing(&world, &id).await;
    let_stale_effects_land(&world);
    assert_eq!(world.worker().claim(1).await.unwrap()[0].job_id, undo.id);
    world.operate(JobCommand::Cancel, &undo.id).await.unwrap();
    assert!(undoing(&world, &undo.id).await.is_empty());
    let left = [
        StepStatus::Abandoned,
        StepStatus::Abandoned,
        StepStatus::Pending,
    ];
    assert_eq!(statuses(&world, &id).await, left);
    world.operate(JobCommand::Retry, &id).await.unwrap();
    world.tick(31);
    world.until_idle().await;
    assert_eq!(world.status(&id).await, JobStatus::Completed);
    assert_invariants(&world).await;
}

/// An undo that dies between any two units of work still undoes everything, and a retry creates it again.
#[tokio::test]
async fn after_a_crash_anywhere_an_undo_is_completed() {
    for fault in [Fault::None, Fault::NoAnswer, Fault::Lost] {
        for units in 1.. {
            let world = Engine::memory().await;
            let (id, ..) = start_undoable(&world, 2).await;
            world.provider.put(&format!("{id}-site"));
            world.operate(JobCommand::Cancel, &id).await.unwrap();
            let_stale_effects_land(&world);
            world.provider.script([fault]);
            let died = world.dies_after(units).await;
            world.restart().await;
            let undo = only_undoing(&world, &id).await;
            assert_eq!(undo.status, JobStatus::Completed, "{units} units: {undo:?}");
            assert_eq!(world.provider.names(), [format!("{id}-bucket")]);
            assert_invariants(&world).await;
            world.operate(JobCommand::Retry, &id).await.unwrap();
            world.until_idle().await;
            assert_eq!(world.provider.names().len(), 3);
            assert_invariants(&world).await;
            if !died {
                assert!(units > 4, "{fault:?} ended after {units} units");
                break;
            }
        }
    }
}
