//! Writes the reports of a worker about the jobs it holds. A report under an old fence is refused.

use std::time::Duration;

use serde_json::Value;

use super::job_change::JobChange;
use super::kind::{StepResult, WriteCall};
use super::kinds::Kinds;
use super::step_error::StepError;
use super::transition::{TransitionContext, write_transition};
use super::undo;
use super::worker::{Claim, HeldJob, Outcome};
use crate::access::unowned_records;
use crate::kernel::{Context, Result, Stored, Timestamp};
use crate::port::UnitOfWork;
use crate::provisioning::{
    Actor, Failure, Job, JobError, JobStatus, Refusal, Report, StepStatus, Trigger,
};

/// Whether the worker still held the job when it reported.
#[derive(Clone, Debug, PartialEq)]
pub enum LeaseState {
    /// The worker held the job; contains the job after the write.
    Held(Box<Stored<Job>>),
    /// The worker had lost the job, so nothing was written. It must stop working on the job.
    Lost,
}

impl LeaseState {
    /// Returns the time from the write to `run_at` if the job is queued or waiting. `None` for any other status, if the
    /// time is negative, or if the lease was lost.
    #[must_use]
    pub fn resume_delay(&self) -> Option<Duration> {
        let Self::Held(job) = self else { return None };
        let parked = matches!(job.status, JobStatus::Queued | JobStatus::Waiting);
        let pause = job.run_at.millis() - job.updated_at.millis();
        u64::try_from(pause)
            .ok()
            .filter(|_| parked)
            .map(Duration::from_millis)
    }

    /// Returns the job if the worker still holds it.
    ///
    /// # Errors
    /// Not a failure: returns how the work ended, as an [`Outcome`]. The job left `RUNNING`, or was taken from the
    /// worker.
    pub fn into_held(self) -> Result<HeldJob, Outcome> {
        match self {
            Self::Held(job) if job.status == JobStatus::Running => Ok(HeldJob::new(*job)),
            Self::Held(job) => Err(Outcome::Left(job.status)),
            Self::Lost => Err(Outcome::LeaseLost),
        }
    }
}

/// A worker that reports about a job it holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct LeaseHolder<'a> {
    /// The actor for the worker, with the owner id of its leases.
    pub actor: &'a Actor,
    /// The kinds that the worker has registered.
    pub kinds: &'a Kinds,
    /// The job that the worker holds, with its fence.
    pub claimed: &'a Claim,
}

/// Writes a worker's reports about one job and all their consequences, in the given unit of work. Also writes what the
/// output of a step, or the intermediate output `found`, means in the domain. Reporting the same output twice changes
/// nothing.
///
/// # Errors
/// Returns an error if a report is not about the current step, or if recording an output is refused.
pub(super) async fn report(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    holder: LeaseHolder<'_>,
    reports: &[Trigger],
    found: Option<&Value>,
) -> Result<LeaseState> {
    let now = uow.now().await?;
    let Some(job) = unowned_records::<Job>(uow)
        .find(&holder.claimed.job_id)
        .await?
    else {
        return Ok(LeaseState::Lost);
    };
    let change = match plan(cx, holder.actor, job, holder.claimed, reports, now) {
        ReportPlan::Change(change) => *change,
        ReportPlan::NoChange(state) => return Ok(state),
        ReportPlan::Refused(refusal) => return Err(refusal.into()),
    };
    let undone = undo::find_undone_job(uow, &change.before).await?;
    let subject = undone.as_deref().unwrap_or(&change.before);
    for report in reports {
        if let Trigger::Work(_, Report::Advance(step, output)) = report
            && change.after.steps[*step].status == StepStatus::Succeeded
        {
            let result = StepResult::Output(output);
            record(cx, uow, holder.kinds, &change, subject, *step, result).await?;
        }
    }
    if let Some((found, step)) = found.zip(change.before.current_step()) {
        let result = StepResult::Found(found);
        record(cx, uow, holder.kinds, &change, subject, step, result).await?;
    }
    let by = TransitionContext::new(holder.actor, holder.kinds);
    let stored = write_transition(cx, uow, change, by).await?;
    Ok(LeaseState::Held(Box::new(stored)))
}

/// The planned handling of a report.
pub(super) enum ReportPlan {
    /// The change has to be written.
    Change(Box<JobChange>),
    /// Nothing has to be written; the result is known.
    NoChange(LeaseState),
    /// The state machine refused the report.
    Refused(Refusal),
}

/// Decides how to handle the reports about a job.
pub(super) fn plan(
    cx: &Context,
    actor: &Actor,
    job: Stored<Job>,
    claimed: &Claim,
    reports: &[Trigger],
    now: Timestamp,
) -> ReportPlan {
    let advance = reports.iter().find_map(|report| match report {
        Trigger::Work(_, Report::Advance(step, output)) => Some((*step, output)),
        _ => None,
    });
    if let Some((step, output)) = advance
        && already_advanced(&job, claimed.fence, step, output)
    {
        return ReportPlan::NoChange(LeaseState::Held(Box::new(job)));
    }
    match JobChange::plan(cx, actor, job, reports, now) {
        Ok(change) => ReportPlan::Change(Box::new(change)),
        Err(Refusal::LeaseLost) => ReportPlan::NoChange(LeaseState::Lost),
        Err(refusal) => ReportPlan::Refused(refusal),
    }
}

/// Writes what the result of a step means in the domain. `subject` is the undone job if the job undoes one, otherwise
/// the job itself.
async fn record(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    kinds: &Kinds,
    change: &JobChange,
    subject: &Job,
    step: usize,
    result: StepResult<'_>,
) -> Result<()> {
    let job = &change.before;
    let name = &job.steps[step].name;
    let known = kinds.get(&job.kind).and_then(|kind| kind.step(name));
    let records = |has_record| has_record || matches!(result, StepResult::Found(_));
    let Some(known) = known.filter(|step| records(step.has_record())) else {
        return Ok(());
    };
    let call = WriteCall {
        job: subject,
        step: Some(name),
        cx,
        canceller: kinds,
    };
    known.record(call, uow, result).await
}

/// Returns whether this report was already written, which happens if the reply to a commit is lost. The fence is
/// unchanged and the step has succeeded with the same output.
fn already_advanced(job: &Job, fence: i64, step: usize, output: &Value) -> bool {
    job.fence == fence
        && job
            .steps
            .get(step)
            .filter(|done| done.status == StepStatus::Succeeded)
            // A `null` output is stored as `None`.
            .is_some_and(|done| done.output.as_ref().unwrap_or(&Value::Null) == output)
}

/// Returns the report for the error of a step. `None` if the lease was lost, so that nothing must be written.
#[must_use]
pub(super) fn report_of(error: StepError) -> Option<Report> {
    let transient = |error, retry_after, unknown| {
        Report::Fail(Failure::Transient {
            error,
            retry_after,
            may_have_effect: unknown,
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
