//! Operations on jobs for operators: retry, cancel, force-complete and replay. They commit without waiting for the
//! worker that executes the job. The worker notices at its next write or heartbeat.

use async_trait::async_trait;
use serde_json::json;

use super::kind::JobCanceller;
use super::kinds::Kinds;
use super::transition::{TransitionContext, transition};
use super::undo;
use crate::access::{
    AuditEvent, Batches, Covers, OperatorScope, PlatformWriter, audited, unowned_records,
};
use crate::kernel::{
    Code, Context, DlqEntryId, Error, JobId, PlatformId, Reason, Result, Stored, Unowned,
};
use crate::port::UnitOfWork;
use crate::provisioning::{Actor, DeadLetter, DlqStatus, Job, JobQuery, JobStatus, Trigger};

/// Retries a failed job from its first unfinished step, or makes a queued or waiting job run now.
///
/// # Errors
/// - `NOT_FOUND` if the job does not exist.
/// - `VERSION_CONFLICT` if `If-Match` names another version of the job.
/// - `INVALID_STATE` if the job runs, has completed or is being undone, or if it undoes a job that was continued since.
pub async fn retry(
    cx: &Context,
    scope: &OperatorScope,
    uow: &mut dyn UnitOfWork,
    kinds: &Kinds,
    job: &JobId,
) -> Result<Stored<Job>> {
    apply_operation(cx, scope, uow, kinds, job, Trigger::Retry, "job.retried").await
}

/// Cancels a job. If its kind declares steps that can be undone, an undo job is created for them. Default of `reason`:
/// `cancelled by operator`.
///
/// # Errors
/// - `NOT_FOUND` if the job does not exist.
/// - `VERSION_CONFLICT` if `If-Match` names another version of the job.
/// - `INVALID_STATE` if the job has ended.
pub async fn cancel(
    cx: &Context,
    scope: &OperatorScope,
    uow: &mut dyn UnitOfWork,
    kinds: &Kinds,
    job: &JobId,
    reason: Option<&Reason>,
) -> Result<Stored<Job>> {
    let reason = reason
        .map_or("cancelled by operator", Reason::as_str)
        .to_owned();
    let before = unowned_records::<Job>(uow).get(job).await?;
    let trigger = Trigger::Cancel { reason };
    let after = apply_operation(cx, scope, uow, kinds, job, trigger, "job.cancelled").await?;
    undo::queue(cx, uow, kinds, &before, &after).await?;
    Ok(after)
}

/// Completes a job by force, with the outputs it has so far.
///
/// # Errors
/// - `NOT_FOUND` if the job does not exist.
/// - `VERSION_CONFLICT` if `If-Match` names another version of the job.
/// - `INVALID_STATE` if the job has completed or is being undone.
pub async fn force_complete(
    cx: &Context,
    scope: &OperatorScope,
    uow: &mut dyn UnitOfWork,
    kinds: &Kinds,
    job: &JobId,
) -> Result<Stored<Job>> {
    let trigger = Trigger::ForceComplete;
    apply_operation(cx, scope, uow, kinds, job, trigger, "job.force_completed").await
}

/// Queues the failed job of a dead letter again and increases its replay count.
///
/// # Errors
/// - `NOT_FOUND` if the dead letter or its job does not exist.
/// - `VERSION_CONFLICT` if `If-Match` names another version of the dead letter.
/// - `INVALID_STATE` as for [`retry`].
/// - `DLQ_ENTRY_NOT_REPLAYABLE` if the dead letter is not pending or its job has not failed.
pub async fn replay(
    cx: &Context,
    scope: &OperatorScope,
    uow: &mut dyn UnitOfWork,
    kinds: &Kinds,
    dead_letter: &DlqEntryId,
) -> Result<Stored<Job>> {
    let dead_letter = unowned_records::<DeadLetter>(uow).get(dead_letter).await?;
    cx.check_if_match(&dead_letter)?;
    let job = unowned_records::<Job>(uow).get(&dead_letter.job_id).await?;
    if dead_letter.status != DlqStatus::Pending || job.status != JobStatus::Failed {
        return Err(Error::Refused {
            code: Code::DlqEntryNotReplayable,
            message: "Only a pending dead letter of a failed job can be replayed.".to_owned(),
            details: serde_json::json!({ "status": dead_letter.status, "allowedFrom": [DlqStatus::Pending] }),
        });
    }
    undo::ensure_can_continue(uow, &job, &Trigger::Replay).await?;
    let (cx, id) = (&cx.without_conditions(), job.id.clone());
    apply_operation(cx, scope, uow, kinds, &id, Trigger::Replay, "job.replayed").await
}

async fn apply_operation(
    cx: &Context,
    scope: &impl Covers<Unowned>,
    uow: &mut dyn UnitOfWork,
    kinds: &Kinds,
    job: &JobId,
    trigger: Trigger,
    action: &'static str,
) -> Result<Stored<Job>> {
    let _ = scope;
    let job = unowned_records::<Job>(uow).get(job).await?;
    cx.check_if_match(&job)?;
    undo::ensure_can_continue(uow, &job, &trigger).await?;
    let after = move_job(cx, uow, kinds, &job, &trigger).await?;
    record(cx, uow, &job, &after, action).await?;
    Ok(after)
}

/// Maximum number of jobs that one unit of work cancels.
const MAX_CANCELLED: usize = 100;

/// Cancels a batch of the unfinished jobs of a platform as the caller, oldest first, except the job `own`. Returns
/// `true` if there are more. Does not undo them: the removal of the platform deletes everything. For the same reason,
/// skips the hooks of jobs of unknown kinds.
pub(in crate::use_case) async fn cancel_batch(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    kinds: &Kinds,
    own: Option<&JobId>,
    reason: &str,
) -> Result<bool> {
    let mut unfinished = other_unfinished(uow, scope.id(), own).await?;
    let more = unfinished.len() > MAX_CANCELLED;
    unfinished.truncate(MAX_CANCELLED);
    let trigger = Trigger::Cancel {
        reason: reason.to_owned(),
    };
    let actor = Actor::caller(cx);
    let by = TransitionContext {
        skips_unknown_hooks: true,
        ..TransitionContext::new(&actor, kinds)
    };
    for job in unfinished {
        let after = transition(cx, uow, job.clone(), std::slice::from_ref(&trigger), by).await?;
        record(cx, uow, &job, &after, "job.cancelled").await?;
    }
    Ok(more)
}

/// Returns the oldest unfinished jobs of a platform except `own`; at least [`MAX_CANCELLED`] + 1 if that many exist.
async fn other_unfinished(
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
    own: Option<&JobId>,
) -> Result<Vec<Stored<Job>>> {
    let mut jobs = Batches::<Job>::of(JobQuery::Unfinished(platform.clone()));
    let mut found = Vec::new();
    while found.len() <= MAX_CANCELLED
        && let Some(batch) = jobs.next(unowned_records(uow)).await?
    {
        found.extend(batch.into_iter().filter(|job| Some(&job.id) != own));
    }
    Ok(found)
}

#[async_trait]
impl JobCanceller for Kinds {
    async fn cancel_some(
        &self,
        cx: &Context,
        platform: &PlatformWriter,
        uow: &mut dyn UnitOfWork,
        own: &JobId,
        reason: &str,
    ) -> Result<bool> {
        cancel_batch(cx, platform, uow, self, Some(own), reason).await
    }
}

/// Makes one transition of a job with the caller as its actor.
pub(super) async fn move_job(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    kinds: &Kinds,
    job: &Stored<Job>,
    trigger: &Trigger,
) -> Result<Stored<Job>> {
    let actor = Actor::caller(cx);
    let by = TransitionContext::new(&actor, kinds);
    transition(cx, uow, job.clone(), std::slice::from_ref(trigger), by).await
}

/// Records an operation on a job in the audit log. The job's history has the details.
pub(super) async fn record(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    before: &Job,
    after: &Job,
    action: &'static str,
) -> Result<()> {
    let event = AuditEvent {
        platform_id: after.platform_id.clone(),
        action,
        entity_id: after.id.to_string(),
        details: Some(json!({ "from": before.status, "to": after.status, "reason": after.reason })),
    };
    audited::record_event(cx, uow, event).await
}
