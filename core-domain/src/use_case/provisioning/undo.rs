//! Undoing what a cancelled job has done: by a job of its own, its child, in the same lane. The child takes back one step
//! after another, the newest first, and writes with the end of each what it means for the job it undoes.

use super::change::Change;
use super::enqueue::insert_jobs;
use super::kinds::{AnyKind, Kinds};
use super::step_error::StepError;
use crate::access::unowned;
use crate::kernel::{
    Context, Error, IllegalMove, JobId, Machine, Record, Result, Stored, Timestamp,
};
use crate::port::{Mode, Store, UnitOfWork};
use crate::provisioning::{
    Actor, Job, JobLease, JobMove, JobQuery, JobStatus, LanePlace, MAX_ATTEMPTS, Step, StepStatus,
    Trigger, undo_of,
};

/// Queues the job that undoes a cancelled one, unless there is nothing to undo. It begins when whatever a former holder
/// may have sent has arrived. `before` is the job before it was cancelled, `lease` what its holder had.
pub(super) async fn queue(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    kinds: &Kinds,
    before: &Job,
    cancelled: &Job,
    lease: Option<&JobLease>,
) -> Result<()> {
    let Some(kind) = kinds.get(&cancelled.kind) else {
        return Ok(());
    };
    let newest_first = cancelled.steps.iter().rev();
    let undone = newest_first.filter(|s| s.status.may_have_happened() && kind.undoes(&s.name));
    let steps: Vec<Step> = undone.map(undo_of_step).collect();
    if steps.is_empty() {
        return Ok(());
    }
    let now = uow.now().await?;
    let run_at = effects_landed_at(kind, before, lease, now);
    let job = Job {
        id: JobId::generate(now, cx.entropy.as_ref()),
        kind: undo_of(&cancelled.kind),
        parent_job_id: Some(cancelled.id.clone()),
        steps,
        run_at,
        deadline_at: run_at.plus(kind.deadline()),
        request_id: cx.request.request_id.clone(),
        trace_id: cx.request.trace_id.clone(),
        created_by: Actor::caller(cx),
        created_at: now,
        updated_at: now,
        ..queued_like(cancelled)
    };
    insert_jobs(cx, uow, vec![job], LanePlace::Front, now).await?;
    Ok(())
}

/// A step that sends the key of the one it undoes.
fn undo_of_step(undone: &Step) -> Step {
    Step {
        effect_key: undone.effect_key.clone(),
        ..Step::new(undone.name.clone())
    }
}

/// From when on nothing can arrive any more that a former holder has sent: as long after the end of its lease as a step
/// may take. Of a lease that has ended before, the last move of the job is the latest end.
fn effects_landed_at(
    kind: &dyn AnyKind,
    before: &Job,
    lease: Option<&JobLease>,
    now: Timestamp,
) -> Timestamp {
    let unknown = |step: &Step| step.status == StepStatus::Abandoned;
    let left = before
        .steps
        .iter()
        .any(unknown)
        .then_some(before.updated_at);
    let held_until = lease.map(|lease| lease.lease_until).or(left);
    held_until.map_or(now, |until| until.plus(kind.longest_timeout()).max(now))
}

/// A job that has not begun, for the same input and owner.
fn queued_like(job: &Job) -> Job {
    Job {
        status: JobStatus::Queued,
        reason: None,
        failure_kind: None,
        error: None,
        output: None,
        attempts: 0,
        max_attempts: MAX_ATTEMPTS,
        lost_leases: 0,
        waiting_for: None,
        forced: false,
        replay_count: 0,
        dlq_entry_id: None,
        idempotency_key: None,
        fence: 0,
        event_count: 1,
        started_at: None,
        finished_at: None,
        ..job.clone()
    }
}

/// Refuses to let a stopped job go on while it is being undone, and undoing whose job has gone on since or is undone by a
/// later one.
///
/// # Errors
/// `INVALID_STATE`.
pub(super) async fn ensure_may_go_on(
    uow: &mut dyn UnitOfWork,
    job: &Job,
    trigger: &Trigger,
) -> Result<()> {
    if job.status != JobStatus::Failed {
        return Ok(());
    }
    let by = match trigger {
        Trigger::Retry => JobMove::Reschedule,
        Trigger::Replay => JobMove::Replay,
        Trigger::ForceComplete => JobMove::ForceComplete,
        _ => return Ok(()),
    };
    let is_free = if job.is_undo() {
        by == JobMove::ForceComplete || is_undone_by(uow, job).await?
    } else {
        let newest = newest_undoing(uow, &job.id, &job.kind).await?;
        newest.is_none_or(|undo| undo.status.is_terminal())
    };
    if is_free {
        return Ok(());
    }
    let allowed = by.of_event().from.iter();
    let allowed = allowed.filter(|status| **status != JobStatus::Failed);
    Err(IllegalMove::new(job.status, allowed.copied()).into())
}

/// Whether what the job undoes is still to be undone by it.
async fn is_undone_by(uow: &mut dyn UnitOfWork, undo: &Job) -> Result<bool> {
    let Some(undone) = &undo.parent_job_id else {
        return Ok(false);
    };
    let undone = unowned::<Job>(uow).find(undone).await?;
    let Some(undone) = undone.filter(|job| job.status == JobStatus::Failed) else {
        return Ok(false);
    };
    let newest = newest_undoing(uow, &undone.id, &undone.kind).await?;
    Ok(newest.is_some_and(|newest| newest.id == undo.id))
}

async fn newest_undoing(
    uow: &mut dyn UnitOfWork,
    job: &JobId,
    kind: &str,
) -> Result<Option<Stored<Job>>> {
    let undoing = JobQuery::Undoing(job.clone(), undo_of(kind));
    unowned::<Job>(uow).first(&undoing).await
}

/// The job that this one undoes, if it undoes one.
///
/// # Errors
/// `NOT_FOUND` when that job is gone, or the store failed.
pub(super) async fn undone_by(uow: &mut dyn UnitOfWork, job: &Job) -> Result<Option<Stored<Job>>> {
    if !job.is_undo() {
        return Ok(None);
    }
    let Some(undone) = &job.parent_job_id else {
        return Err(Error::NotFound(Job::KIND));
    };
    unowned::<Job>(uow).get(undone).await.map(Some)
}

/// As [`undone_by`], for an attempt: only a job that has stopped is undone.
pub(super) async fn read_undone(
    store: &dyn Store,
    job: &Job,
) -> Result<Option<Stored<Job>>, StepError> {
    if !job.is_undo() {
        return Ok(None);
    }
    let mut uow = store.begin(Mode::Auto).await?;
    let undone = undone_by(uow.as_mut(), job).await?;
    let stopped = |job: &Stored<Job>| job.status == JobStatus::Failed;
    if undone.as_ref().is_some_and(stopped) {
        return Ok(undone);
    }
    let gone_on = "the job to be undone has gone on";
    Err(StepError::Precondition(gone_on.to_owned()))
}

/// What the change of a job that undoes another one means for that one: a step that is undone is so there, and one whose
/// undoing stopped midway may or may not still be done.
pub(super) async fn change_of_undone(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    undo: &Change,
    actor: &Actor,
) -> Result<Option<Change>> {
    let parent = undo.after.parent_job_id.as_ref();
    let Some(parent) = parent.filter(|_| undo.after.is_undo()) else {
        return Ok(None);
    };
    let moved = undo.before.steps != undo.after.steps || undo.after.status.is_terminal();
    if !moved {
        return Ok(None);
    }
    let undone = unowned::<Job>(uow).find(parent).await?;
    let Some(undone) = undone.filter(|job| job.status == JobStatus::Failed) else {
        return Ok(None);
    };
    let triggers: Vec<Trigger> = undone
        .steps
        .iter()
        .filter_map(|step| fate_of(step, undo))
        .collect();
    if triggers.is_empty() {
        return Ok(None);
    }
    let now = uow.now().await?;
    Ok(Some(Change::plan(cx, actor, undone, &triggers, now)?))
}

/// What becomes of a step of a job that is undone.
fn fate_of(step: &Step, undo: &Change) -> Option<Trigger> {
    let mut undoing = undo.after.steps.iter();
    let undoing = undoing.find(|undoing| undoing.name == step.name)?;
    if undoing.status == StepStatus::Succeeded {
        let is_there = step.status.may_have_happened();
        return is_there.then(|| Trigger::Undone(step.name.clone()));
    }
    let stopped = undo.after.status.is_terminal() && undoing.started_at.is_some();
    (stopped && step.status == StepStatus::Succeeded)
        .then(|| Trigger::UndoStopped(step.name.clone()))
}
