//! What the holder of a job reports. Every write is refused once the fence has moved on.

use std::time::Duration;

use serde_json::Value;

use super::claim::{Claimed, HeldJob};
use super::engine::Outcome;
use super::kind::Writing;
use super::kinds::Kinds;
use super::step_error::StepError;
use super::transition::Change;
use super::transition::{TransitionContext, write_transition};
use super::undo;
use crate::access::unowned;
use crate::kernel::{Context, Result, Stored, Timestamp};
use crate::port::UnitOfWork;
use crate::provisioning::{
    Actor, Failure, Job, JobError, JobStatus, Refusal, Report, StepStatus, Trigger,
};

/// Whether the job was still the worker's.
#[derive(Clone, Debug, PartialEq)]
pub enum LeaseState {
    /// It was; this is the job after the write.
    Held(Box<Stored<Job>>),
    /// It was not, and nothing was written: stop.
    Lost,
}

impl LeaseState {
    /// How long after the write the job can go on, if it waits or is to be tried again.
    #[must_use]
    pub fn goes_on_after(&self) -> Option<Duration> {
        let Self::Held(job) = self else { return None };
        let parked = matches!(job.status, JobStatus::Queued | JobStatus::Waiting);
        let pause = job.run_at.millis() - job.updated_at.millis();
        u64::try_from(pause)
            .ok()
            .filter(|_| parked)
            .map(Duration::from_millis)
    }

    /// The job to go on with, or how the work on it has ended.
    ///
    /// # Errors
    /// The [`Outcome`]: it left `RUNNING`, or was taken away. No failure.
    pub fn still_held(self) -> Result<HeldJob, Outcome> {
        match self {
            Self::Held(job) if job.status == JobStatus::Running => Ok(HeldJob::new(*job)),
            Self::Held(job) => Err(Outcome::Left(job.status)),
            Self::Lost => Err(Outcome::LeaseLost),
        }
    }
}

/// A worker that writes: who it is and what it knows.
#[derive(Clone, Copy, Debug)]
pub(super) struct LeaseHolder<'a> {
    /// The worker, by the owner id of its process.
    pub actor: &'a Actor,
    /// The kinds it knows.
    pub kinds: &'a Kinds,
    /// The job it holds.
    pub claimed: &'a Claimed,
}

/// Stores what the worker reports, with all that follows from it, in a unit of its own. The output of a step is written
/// with what it means in the domain, and so is what was `found` by one that waits; reporting the same output twice changes
/// nothing.
///
/// # Errors
/// When the report is about another step than the current one, the domain refused the output, or the store failed.
pub(super) async fn report(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    holder: LeaseHolder<'_>,
    reports: &[Trigger],
    found: Option<&Value>,
) -> Result<LeaseState> {
    let now = uow.now().await?;
    let Some(job) = unowned::<Job>(uow).find(&holder.claimed.job_id).await? else {
        return Ok(LeaseState::Lost);
    };
    let change = match plan(cx, holder.actor, job, holder.claimed, reports, now) {
        Planned::Change(change) => *change,
        Planned::Known(state) => return Ok(state),
        Planned::Refused(refusal) => return Err(refusal.into()),
    };
    let undone = undo::undone_by(uow, &change.before).await?;
    let subject = undone.as_deref().unwrap_or(&change.before);
    for report in reports {
        if let Trigger::Work(_, Report::Advance(step, output)) = report
            && change.after.steps[*step].status == StepStatus::Succeeded
        {
            record(cx, uow, holder.kinds, (&change, subject), *step, output).await?;
        }
    }
    if let Some(found) = found {
        record_wait(cx, uow, holder.kinds, (&change, subject), found).await?;
    }
    let by = TransitionContext::new(holder.actor, holder.kinds);
    let stored = write_transition(cx, uow, change, by).await?;
    Ok(LeaseState::Held(Box::new(stored)))
}

/// What becomes of a report.
pub(super) enum Planned {
    /// This is to be written.
    Change(Box<Change>),
    /// Nothing is to be written.
    Known(LeaseState),
    /// It is none that the job can take.
    Refused(Refusal),
}

/// Decides what becomes of a report about the job.
pub(super) fn plan(
    cx: &Context,
    actor: &Actor,
    job: Stored<Job>,
    claimed: &Claimed,
    reports: &[Trigger],
    now: Timestamp,
) -> Planned {
    let advance = reports.iter().find_map(|report| match report {
        Trigger::Work(_, Report::Advance(step, output)) => Some((*step, output)),
        _ => None,
    });
    if let Some((step, output)) = advance
        && already_advanced(&job, claimed.fence, step, output)
    {
        return Planned::Known(LeaseState::Held(Box::new(job)));
    }
    match Change::plan(cx, actor, job, reports, now) {
        Ok(change) => Planned::Change(Box::new(change)),
        Err(Refusal::LeaseLost) => Planned::Known(LeaseState::Lost),
        Err(refusal) => Planned::Refused(refusal),
    }
}

/// Writes what the output of a step means in the domain. The subject is the job whose step it is: the one that is undone,
/// if the job undoes one.
async fn record(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    kinds: &Kinds,
    (change, subject): (&Change, &Job),
    step: usize,
    output: &Value,
) -> Result<()> {
    let job = &change.before;
    let name = &job.steps[step].name;
    match kinds.get(&job.kind).filter(|kind| kind.records(name)) {
        Some(kind) => {
            kind.open(subject)?
                .record(
                    name,
                    Writing {
                        cx,
                        canceller: kinds,
                    },
                    uow,
                    output,
                )
                .await
        }
        None => Ok(()),
    }
}

/// Writes what was found by the current step, which waits or has done a part.
async fn record_wait(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    kinds: &Kinds,
    (change, subject): (&Change, &Job),
    found: &Value,
) -> Result<()> {
    let job = &change.before;
    let step = job.current_step().map(|step| &job.steps[step].name);
    match kinds.get(&job.kind).zip(step) {
        Some((kind, step)) => {
            let opened = kind.open(subject)?;
            opened
                .record_wait(
                    step,
                    Writing {
                        cx,
                        canceller: kinds,
                    },
                    uow,
                    found,
                )
                .await
        }
        None => Ok(()),
    }
}

/// The same report once more, after a commit whose answer was lost: the same fence finds its own step done.
fn already_advanced(job: &Job, fence: i64, step: usize, output: &Value) -> bool {
    job.fence == fence
        && job
            .steps
            .get(step)
            .filter(|done| done.status == StepStatus::Succeeded)
            // An output that is null is stored as none.
            .is_some_and(|done| done.output.as_ref().unwrap_or(&Value::Null) == output)
}

/// What a step's error means for its job; `None` when the job is somebody else's and nothing is to be written.
#[must_use]
pub(super) fn report_of(error: StepError) -> Option<Report> {
    let transient = |error, retry_after, unknown| {
        Report::Fail(Failure::Transient {
            error,
            retry_after,
            unknown,
        })
    };
    Some(match error {
        StepError::Transient(error, _) => transient(error, Duration::ZERO, false),
        StepError::Throttled { retry_after } => {
            let message = format!("the provider asks to wait {} s", retry_after.as_secs());
            transient(
                JobError::new("PROVIDER_THROTTLED", message),
                retry_after,
                false,
            )
        }
        StepError::OutcomeUnknown(error, _) => transient(error, Duration::ZERO, true),
        StepError::Permanent(error, _) => Report::Fail(Failure::Permanent(error)),
        StepError::Precondition(missing) => Report::Fail(Failure::Permanent(JobError::new(
            "PRECONDITION_FAILED",
            missing,
        ))),
        StepError::Wait { until, reason, .. } => Report::Wait { until, reason },
        StepError::Unfinished { .. } => Report::Progress,
        StepError::LeaseLost => return None,
    })
}
