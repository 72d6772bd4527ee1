//! The operators' grip on jobs: retry, cancel, force-complete, replay. They commit at once, whatever a worker is doing;
//! the worker finds out at its next write or heartbeat.

use super::carry::{By, carry_out};
use crate::kernel::{Code, Context, DlqEntryId, Error, JobId, Reason, Result};
use crate::port::{Record, Stored, UnitOfWork};
use crate::provisioning::{Actor, DlqEntry, DlqStatus, Job, JobStatus, Kinds, Trigger, apply};
use crate::shared::{Happening, audited};

/// Lets a failed job go on at its first unfinished step, or makes a queued or waiting one run now.
///
/// # Errors
/// `NOT_FOUND`; `INVALID_STATE` when it runs or has completed; `FORBIDDEN` for anybody but operators.
pub async fn retry(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    kinds: &Kinds,
    job: &JobId,
) -> Result<Stored<Job>> {
    operate(cx, uow, kinds, job, Trigger::Retry, "job.retried").await
}

/// Stops a job.
///
/// # Errors
/// `NOT_FOUND`; `INVALID_STATE` when it has ended; `FORBIDDEN` for anybody but operators.
pub async fn cancel(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    kinds: &Kinds,
    job: &JobId,
    reason: Option<&Reason>,
) -> Result<Stored<Job>> {
    let reason = reason
        .map_or("cancelled by operator", Reason::as_str)
        .to_owned();
    operate(
        cx,
        uow,
        kinds,
        job,
        Trigger::Cancel { reason },
        "job.cancelled",
    )
    .await
}

/// Declares a job done, with the outputs it has.
///
/// # Errors
/// `NOT_FOUND`; `INVALID_STATE` when it has completed; `FORBIDDEN` for anybody but operators.
pub async fn force_complete(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    kinds: &Kinds,
    job: &JobId,
) -> Result<Stored<Job>> {
    let trigger = Trigger::ForceComplete;
    operate(cx, uow, kinds, job, trigger, "job.force_completed").await
}

/// Queues the job of a dead letter again; the same job, with one more replay on its record.
///
/// # Errors
/// `NOT_FOUND`; `DLQ_ENTRY_NOT_REPLAYABLE` when the entry does not wait or its job has not stopped; `FORBIDDEN` for
/// anybody but operators.
pub async fn replay(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    kinds: &Kinds,
    entry: &DlqEntryId,
) -> Result<Stored<Job>> {
    cx.caller.operator()?;
    let entry = uow.dlq_entries().get(entry.as_str()).await?;
    let entry = entry.ok_or(Error::NotFound(DlqEntry::KIND))?;
    let job = uow.jobs().get(entry.job_id.as_str()).await?;
    let job = job.ok_or(Error::NotFound(Job::KIND))?;
    if entry.status != DlqStatus::Pending || job.status != JobStatus::Failed {
        return Err(Error::Refused {
            code: Code::DlqEntryNotReplayable,
            message: "Only a pending entry of a failed job can be replayed.".to_owned(),
            details: serde_json::json!({ "status": entry.status, "allowedFrom": [DlqStatus::Pending] }),
        });
    }
    let id = job.id.clone();
    operate(cx, uow, kinds, &id, Trigger::Replay, "job.replayed").await
}

async fn operate(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    kinds: &Kinds,
    job: &JobId,
    trigger: Trigger,
    action: &'static str,
) -> Result<Stored<Job>> {
    cx.caller.operator()?;
    let now = uow.now().await?;
    let job = uow.jobs().get(job.as_str()).await?;
    let job = job.ok_or(Error::NotFound(Job::KIND))?;
    let moved = apply(&job, &trigger, now, cx.entropy.as_ref())?;
    let actor = Actor::caller(cx);
    let by = By {
        actor: &actor,
        kinds,
        holder_is_gone: false,
    };
    let after = carry_out(cx, uow, &job, moved, by).await?;
    let what = Happening {
        platform_id: after.platform_id.clone(),
        action,
        entity_id: after.id.as_str().to_owned(),
        before: Some(serde_json::json!({ "status": job.status })),
        after: Some(serde_json::json!({ "status": after.status, "reason": after.reason })),
    };
    audited(cx, uow, what).await?;
    Ok(after)
}
