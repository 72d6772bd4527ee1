//! What the holder of a job reports. Every write is refused once the fence has moved on.

use std::time::Duration;

use serde_json::Value;

use super::Claimed;
use super::carry::{By, carry_out};
use crate::kernel::{Context, Result};
use crate::port::{Stored, UnitOfWork};
use crate::provisioning::{
    Actor, Failure, Job, JobError, Kinds, LEASE, Refusal, Report, StepError, StepStatus, Trigger,
    apply,
};

/// Whether the job was still the worker's.
#[derive(Clone, Debug, PartialEq)]
pub enum Grip {
    /// It was; this is the job after the write.
    Kept(Box<Stored<Job>>),
    /// It was not, and nothing was written: stop.
    Lost,
}

/// A worker that writes: who it is and what it knows.
#[derive(Clone, Copy, Debug)]
pub struct Holder<'a> {
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
pub async fn report(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    holder: Holder<'_>,
    report: Report,
) -> Result<Grip> {
    let now = uow.now().await?;
    let Some(job) = uow.jobs().get(holder.claimed.job_id.as_str()).await? else {
        return Ok(Grip::Lost);
    };
    if let Report::Advance(step, output) = &report
        && already_advanced(&job, holder.claimed.fence, *step, output)
    {
        return Ok(Grip::Kept(Box::new(job)));
    }
    let trigger = Trigger::Work(holder.claimed.fence, report);
    let moved = match apply(&job, &trigger, now, cx.entropy.as_ref()) {
        Err(Refusal::LeaseLost) => return Ok(Grip::Lost),
        outcome => outcome?,
    };
    if let Trigger::Work(_, Report::Advance(step, output)) = &trigger
        && moved.job.steps[*step].status == StepStatus::Succeeded
        && let Some(kind) = holder.kinds.get(&job.kind)
        && let Some(code) = kind.step(&job.steps[*step].name)
    {
        code.record(cx, uow, &job, output).await?;
    }
    let actor = Actor::worker(holder.owner);
    let by = By {
        actor: &actor,
        kinds: holder.kinds,
        holder_is_gone: false,
    };
    let stored = carry_out(cx, uow, &job, moved, by).await?;
    Ok(Grip::Kept(Box::new(stored)))
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
        StepError::Transient(error) => transient(error, Duration::ZERO, false),
        StepError::Throttled { retry_after } => {
            let message = format!("the provider asks to wait {} s", retry_after.as_secs());
            transient(
                JobError::new("PROVIDER_THROTTLED", message),
                retry_after,
                false,
            )
        }
        StepError::OutcomeUnknown(error) => transient(error, Duration::ZERO, true),
        StepError::Permanent(error) => Report::Fail(Failure::Permanent(error)),
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
pub async fn heartbeat(
    uow: &mut dyn UnitOfWork,
    owner: &str,
    held: &[Claimed],
) -> Result<Vec<Claimed>> {
    let now = uow.now().await?;
    let mut lost = Vec::new();
    for claimed in held {
        let lease = uow.job_leases().get(claimed.job_id.as_str()).await?;
        match lease {
            Some(lease) if lease.fence == claimed.fence && lease.owner == owner => {
                let mut next = lease.clone().into_inner();
                next.lease_until = now.plus(LEASE);
                uow.job_leases().replace(&lease, next).await?;
            }
            _ => lost.push(claimed.clone()),
        }
    }
    Ok(lost)
}
