//! Undoing what a cancelled job has done: by a job of its own, its child, in the same lane. The child takes back one step
//! after another, the newest first, and writes with the end of each what it means for the job it undoes.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;

use super::enqueue::insert_jobs;
use super::kind::{JobKind, StepPorts, Writing};
use super::kinds::{AnyKind, Kinds, OpenJob, Opened, Registered};
use super::step_error::{Observation, StepError, Undone};
use super::transition::Change;
use crate::access::unowned;
use crate::kernel::{Context, Error, IllegalMove, JobId, Machine, Record, Result, Stored};
use crate::port::{Mode, Store, UnitOfWork};
use crate::provisioning::{
    Actor, FailureKind, Job, JobLane, JobMove, JobQuery, JobStatus, LanePlace, Step, Trigger,
    effects_landed_at, undo_job, undo_of, undone_steps,
};

/// Queues the job that undoes a cancelled one, unless there is nothing to undo. It begins when whatever a former holder
/// may have sent has arrived. `before` is the job before it was cancelled.
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
    let Some(undo) = undo_job(cancelled, |step| kind.undoes(step)) else {
        return Ok(());
    };
    let now = uow.now().await?;
    let lane = unowned::<JobLane>(uow).get(&cancelled.lane).await?;
    let run_at = effects_landed_at(before, &lane, kind.longest_timeout()).max(now);
    let undo = Job {
        id: JobId::generate(now, cx.entropy.as_ref()),
        run_at,
        deadline_at: run_at.plus(kind.deadline()),
        request_id: cx.request.request_id.clone(),
        trace_id: cx.request.trace_id.clone(),
        created_by: Actor::caller(cx),
        created_at: now,
        updated_at: now,
        ..undo
    };
    // What comes later may make the same objects again: an undoing behind it would take them.
    insert_jobs(cx, uow, vec![undo], LanePlace::Front, now).await?;
    Ok(())
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
        !is_being_undone(uow, job).await?
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
    let Some(undone) = undone.filter(|job| is_as_cancelled(job, undo)) else {
        return Ok(false);
    };
    let newest = newest_undoing(uow, &undone.id, &undone.kind).await?;
    Ok(newest.is_some_and(|newest| newest.id == undo.id))
}

/// Whether the job is still the cancelled one: it may have gone on since, and have failed by itself.
fn is_as_cancelled(undone: &Job, undo: &Job) -> bool {
    undone.status == JobStatus::Failed
        && undone.failure_kind == Some(FailureKind::Cancelled)
        && undone.finished_at.is_some_and(|at| at <= undo.created_at)
}

/// Returns `true` if the job has an unfinished undo job.
pub(super) async fn is_being_undone(uow: &mut dyn UnitOfWork, job: &Job) -> Result<bool> {
    let newest = newest_undoing(uow, &job.id, &job.kind).await?;
    Ok(newest.is_some_and(|undo| !undo.status.is_terminal()))
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

/// As [`undone_by`], for an attempt: only a job that was cancelled, and stayed so, is undone.
pub(super) async fn read_undone(
    store: &dyn Store,
    job: &Job,
) -> Result<Option<Stored<Job>>, StepError> {
    if !job.is_undo() {
        return Ok(None);
    }
    let mut uow = store.begin(Mode::Auto).await?;
    let undone = undone_by(uow.as_mut(), job).await?;
    if undone
        .as_ref()
        .is_some_and(|undone| is_as_cancelled(undone, job))
    {
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
    let Some(undone) = undone.filter(|job| is_as_cancelled(job, &undo.after)) else {
        return Ok(None);
    };
    let triggers = undone_steps(&undone, &undo.after);
    if triggers.is_empty() {
        return Ok(None);
    }
    let now = uow.now().await?;
    Ok(Some(Change::plan(cx, actor, undone, &triggers, now)?))
}

/// Undoes the jobs of a kind: its steps are those that can be undone.
#[derive(Debug)]
pub(super) struct UndoKind<K>(pub(super) Arc<Registered<K>>);

impl<K: JobKind> AnyKind for UndoKind<K> {
    /// What comes later may make the same objects again: it would lose them to an undoing that comes after it.
    fn place(&self) -> LanePlace {
        LanePlace::Front
    }

    fn deadline(&self) -> Duration {
        K::DEADLINE
    }

    fn has_step(&self, name: &str) -> bool {
        self.0.undoes(name)
    }

    fn has_hooks(&self) -> bool {
        false
    }

    fn records(&self, _step: &str) -> bool {
        true
    }

    fn undoes(&self, _step: &str) -> bool {
        false
    }

    fn longest_timeout(&self) -> Duration {
        self.0.longest_timeout()
    }

    fn open<'a>(&'a self, job: &'a Job) -> Result<Box<dyn OpenJob + 'a>> {
        Ok(Box::new(OpenUndo(Opened::new(&self.0, job)?)))
    }
}

/// A job that is undone, with its input.
struct OpenUndo<'a, K: JobKind>(Opened<'a, K>);

impl<K: JobKind> OpenUndo<'_, K> {
    /// Returns a step of the undone job, unless another undo job has taken it back: after a clock was set back, an older undo
    /// job can be taken for the newest and be retried.
    fn done(&self, step: &str) -> Option<&Step> {
        let stored = self.0.stored(step);
        stored.filter(|step| step.status.may_have_happened())
    }
}

#[async_trait]
impl<K: JobKind> OpenJob for OpenUndo<'_, K> {
    fn timeout(&self, step: &str) -> Duration {
        self.0.timeout(step)
    }

    /// The undoing looks for itself.
    async fn observe(
        &self,
        _step: &str,
        _ports: StepPorts<'_>,
    ) -> Result<Observation<Value>, StepError> {
        Ok(Observation::Absent)
    }

    /// Undoes the step if its first observation found no object; otherwise keeps the object.
    async fn apply(&self, step: &str, ports: StepPorts<'_>) -> Result<Value, StepError> {
        let Some(done) = self.done(step) else {
            return Ok(Undone::left("another undoing took it back").output());
        };
        if let Some(why) = done.stays_because() {
            return Ok(Undone::left(why).output());
        }
        let cx = self.0.step_context(step, ports);
        cx.guard().await?;
        Ok(self.0.step(step)?.undo(&cx).await?.output())
    }

    async fn record(
        &self,
        step: &str,
        cx: Writing<'_>,
        uow: &mut dyn UnitOfWork,
        output: &Value,
    ) -> Result<()> {
        let Some(undone) = self.0.find(step).filter(|_| self.done(step).is_some()) else {
            return Ok(());
        };
        let cx = self.0.job_context(Some(step), cx);
        let outcome = Undone::of_output(output);
        undone.record_undo(&cx, uow, &outcome).await
    }

    /// Nothing: how far an undoing is, it finds out by looking.
    async fn record_wait(
        &self,
        _step: &str,
        _cx: Writing<'_>,
        _uow: &mut dyn UnitOfWork,
        _found: &Value,
    ) -> Result<()> {
        Ok(())
    }

    async fn completed(&self, _cx: Writing<'_>, _uow: &mut dyn UnitOfWork) -> Result<()> {
        Ok(())
    }

    async fn failed(&self, _cx: Writing<'_>, _uow: &mut dyn UnitOfWork) -> Result<()> {
        Ok(())
    }

    async fn resumed(&self, _cx: Writing<'_>, _uow: &mut dyn UnitOfWork) -> Result<()> {
        Ok(())
    }
}
