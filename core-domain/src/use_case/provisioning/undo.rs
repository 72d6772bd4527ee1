//! Undoing cancelled jobs. Cancelling a job creates an undo job: a child in the same lane. It takes back one step after
//! another, newest first. The end of each undo step is also recorded in the undone job.

use super::enqueue::insert_jobs;
use super::job_change::JobChange;
use super::kind::ErasedStep;
use super::kinds::Kinds;
use super::step_error::StepError;
use crate::access::unowned_records;
use crate::kernel::{Context, Error, IllegalTransition, JobId, Machine, Record, Result, Stored};
use crate::port::{Mode, Store, UnitOfWork};
use crate::provisioning::{
    Actor, FailureKind, Job, JobLane, JobQuery, JobStatus, JobTransition, LanePlace, Trigger,
    effects_settled_at, undo_job, undo_kind_of, undo_triggers,
};

/// Queues the undo job of a cancelled job, unless there is nothing to undo. It starts after every request of an earlier
/// holder has arrived. `before` is the job before it was cancelled.
pub(super) async fn queue(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    kinds: &Kinds,
    before: &Job,
    cancelled: &Job,
) -> Result<()> {
    let Some(kind) = kinds.get(&cancelled.kind) else {
        return Ok(());
    };
    let Some(undo) = undo_job(cancelled, |step| {
        kind.step(step).is_some_and(ErasedStep::can_undo)
    }) else {
        return Ok(());
    };
    let now = uow.now().await?;
    let lane = unowned_records::<JobLane>(uow).get(&cancelled.lane).await?;
    let run_at = effects_settled_at(before, &lane, kind.longest_timeout).max(now);
    let undo = Job {
        id: JobId::generate(now, cx.entropy.as_ref()),
        run_at,
        deadline_at: run_at.plus(kind.deadline),
        request_id: cx.request.request_id.clone(),
        trace_id: cx.request.trace_id.clone(),
        created_by: Actor::caller(cx),
        created_at: now,
        updated_at: now,
        ..undo
    };
    // The undo job goes first. Jobs created later may create the same objects again, and a later undo would remove
    // them.
    insert_jobs(cx, uow, vec![undo], LanePlace::Front, now).await?;
    Ok(())
}

/// Checks that a failed job can be continued. A job must not continue while it is being undone. An undo job must not
/// continue if its job has continued since, or has a newer undo job.
///
/// # Errors
/// `INVALID_STATE` if the job cannot be continued.
pub(super) async fn ensure_can_continue(
    uow: &mut dyn UnitOfWork,
    job: &Job,
    trigger: &Trigger,
) -> Result<()> {
    if job.status != JobStatus::Failed {
        return Ok(());
    }
    let by = match trigger {
        Trigger::Retry => JobTransition::Reschedule,
        Trigger::Replay => JobTransition::Replay,
        Trigger::ForceComplete => JobTransition::ForceComplete,
        _ => return Ok(()),
    };
    let is_free = if job.is_undo() {
        by == JobTransition::ForceComplete || is_current_undo(uow, job).await?
    } else {
        !is_being_undone(uow, job).await?
    };
    if is_free {
        return Ok(());
    }
    let allowed = by.transition().from.iter();
    let allowed = allowed.filter(|status| **status != JobStatus::Failed);
    Err(IllegalTransition::new(job.status, allowed.copied()).into())
}

/// Returns whether the undone job is still cancelled and this is its newest undo job.
async fn is_current_undo(uow: &mut dyn UnitOfWork, undo: &Job) -> Result<bool> {
    let Some(undone) = &undo.parent_job_id else {
        return Ok(false);
    };
    let undone = unowned_records::<Job>(uow).find(undone).await?;
    let Some(undone) = undone.filter(|job| is_still_cancelled(job, undo)) else {
        return Ok(false);
    };
    let newest = newest_undoing(uow, &undone).await?;
    Ok(newest.is_some_and(|newest| newest.id == undo.id))
}

/// Returns whether the job is still in the state that `undo` was created for. It may have been retried and have failed
/// again since.
fn is_still_cancelled(undone: &Job, undo: &Job) -> bool {
    undone.status == JobStatus::Failed
        && undone.failure_kind == Some(FailureKind::Cancelled)
        && undone.finished_at.is_some_and(|at| at <= undo.created_at)
}

/// Returns `true` if the job has an unfinished undo job.
pub(super) async fn is_being_undone(uow: &mut dyn UnitOfWork, job: &Job) -> Result<bool> {
    let newest = newest_undoing(uow, job).await?;
    Ok(newest.is_some_and(|undo| !undo.status.is_terminal()))
}

async fn newest_undoing(uow: &mut dyn UnitOfWork, job: &Job) -> Result<Option<Stored<Job>>> {
    let undoing = JobQuery::Undoing {
        parent: job.id.clone(),
        kind: undo_kind_of(&job.kind),
        lane: job.lane.clone(),
    };
    unowned_records::<Job>(uow).first(&undoing).await
}

/// Returns the job that this job undoes; `None` if it is not an undo job.
///
/// # Errors
/// `NOT_FOUND` if the undone job does not exist.
pub(super) async fn find_undone_job(
    uow: &mut dyn UnitOfWork,
    job: &Job,
) -> Result<Option<Stored<Job>>> {
    if !job.is_undo() {
        return Ok(None);
    }
    let Some(undone) = &job.parent_job_id else {
        return Err(Error::NotFound(Job::KIND));
    };
    unowned_records::<Job>(uow).get(undone).await.map(Some)
}

/// Works like [`find_undone_job`], for an attempt of a step. Returns an error if the undone job is not cancelled any
/// more.
pub(super) async fn read_undone(
    store: &dyn Store,
    job: &Job,
) -> Result<Option<Stored<Job>>, StepError> {
    if !job.is_undo() {
        return Ok(None);
    }
    let mut uow = store.begin(Mode::Auto).await?;
    let undone = find_undone_job(uow.as_mut(), job).await?;
    if undone
        .as_ref()
        .is_some_and(|undone| is_still_cancelled(undone, job))
    {
        return Ok(undone);
    }
    let gone_on = "the job to be undone was continued";
    Err(StepError::Precondition(gone_on.to_owned()))
}

/// Returns the change of the undone job that follows from the change of its undo job. A step becomes `UNDONE` if its
/// undo succeeded, or `ABANDONED` if its undo did not finish.
pub(super) async fn plan_undone_change(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    undo: &JobChange,
    actor: &Actor,
) -> Result<Option<JobChange>> {
    let parent = undo.after.parent_job_id.as_ref();
    let Some(parent) = parent.filter(|_| undo.after.is_undo()) else {
        return Ok(None);
    };
    let moved = undo.before.steps != undo.after.steps || undo.after.status.is_terminal();
    if !moved {
        return Ok(None);
    }
    let undone = unowned_records::<Job>(uow).find(parent).await?;
    let Some(undone) = undone.filter(|job| is_still_cancelled(job, &undo.after)) else {
        return Ok(None);
    };
    let triggers = undo_triggers(&undone, &undo.after);
    if triggers.is_empty() {
        return Ok(None);
    }
    let now = uow.now().await?;
    Ok(Some(JobChange::plan(cx, actor, undone, &triggers, now)?))
}
