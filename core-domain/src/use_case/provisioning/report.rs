//! What the holder of a job reports. Every write is refused once the fence has moved on.

use std::time::Duration;

use serde_json::Value;

use super::claim::Claimed;
use super::kinds::Kinds;
use super::step_error::StepError;
use super::transition::{TransitionContext, apply_transition};
use crate::access::{unaudited, unowned};
use crate::kernel::{Context, Result, Stored};
use crate::port::UnitOfWork;
use crate::provisioning::{
    Actor, Failure, Job, JobError, JobLease, LEASE, Refusal, Report, StepStatus, Trigger, apply,
};

/// Whether the job was still the worker's.
#[derive(Clone, Debug, PartialEq)]
pub enum LeaseState {
    /// It was; this is the job after the write.
    Held(Box<Stored<Job>>),
    /// It was not, and nothing was written: stop.
    Lost,
}

/// A worker that writes: who it is and what it knows.
#[derive(Clone, Copy, Debug)]
pub(super) struct LeaseHolder<'a> {
    /// The owner id of the process.
    pub owner: &'a str,
    /// The kinds it knows.
    pub kinds: &'a Kinds,
    /// The job it holds.
    pub claimed: &'a Claimed,
}

/// Stores what the worker reports, with all that follows from it. The output of a step is written with what it means in
/// the domain; reporting the same output twice changes nothing.
///
/// # Errors
/// When the report is about another step than the current one, the domain refused the output, or the store failed.
pub(super) async fn report(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    holder: LeaseHolder<'_>,
    report: Report,
) -> Result<LeaseState> {
    let now = uow.now().await?;
    let Some(job) = unowned::<Job>(uow).find(&holder.claimed.job_id).await? else {
        return Ok(LeaseState::Lost);
    };
    if let Report::Advance(step, output) = &report
        && already_advanced(&job, holder.claimed.fence, *step, output)
    {
        return Ok(LeaseState::Held(Box::new(job)));
    }
    let trigger = Trigger::Work(holder.claimed.fence, report);
    let moved = match apply(&job, &trigger, now, cx.entropy.as_ref()) {
        Err(Refusal::LeaseLost) => return Ok(LeaseState::Lost),
        outcome => outcome?,
    };
    if let Trigger::Work(_, Report::Advance(step, output)) = &trigger
        && moved.job.steps[*step].status == StepStatus::Succeeded
        && let Some(kind) = holder.kinds.get(&job.kind)
    {
        let opened = kind.open(&job)?;
        opened
            .record(&job.steps[*step].name, cx, uow, output)
            .await?;
    }
    let actor = Actor::worker(holder.owner);
    let by = TransitionContext {
        actor: &actor,
        kinds: holder.kinds,
        holder_is_gone: false,
    };
    let stored = apply_transition(cx, uow, &job, moved, by).await?;
    Ok(LeaseState::Held(Box::new(stored)))
}

/// The same report once more, after a commit whose answer was lost: the same fence finds its own step done.
fn already_advanced(job: &Job, fence: i64, step: usize, output: &Value) -> bool {
    job.fence == fence
        && job
            .steps
            .get(step)
            .is_some_and(|s| s.status == StepStatus::Succeeded && s.output.as_ref() == Some(output))
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
        StepError::Wait { until, reason } => Report::Wait { until, reason },
        StepError::LeaseLost => return None,
    })
}

/// Prolongs the leases of these jobs and answers those that are no longer the owner's. Touches no job.
///
/// # Errors
/// When the store failed; nothing was prolonged.
pub(super) async fn heartbeat(
    uow: &mut dyn UnitOfWork,
    owner: &str,
    held: &[Claimed],
) -> Result<Vec<Claimed>> {
    let now = uow.now().await?;
    let mut lost = Vec::new();
    for claimed in held {
        let lease = unowned::<JobLease>(uow).find(&claimed.job_id).await?;
        match lease {
            Some(lease) if lease.fence == claimed.fence && lease.owner == owner => {
                let mut next = lease.clone().into_inner();
                next.lease_until = now.plus(LEASE);
                unaudited::replace(uow, &lease, next).await?;
            }
            _ => lost.push(claimed.clone()),
        }
    }
    Ok(lost)
}
