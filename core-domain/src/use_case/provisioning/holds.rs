//! Setting and lifting holds. A hold keeps jobs from being claimed; steps that run go on.

use super::carry::{lane_of, refresh_lane};
use crate::kernel::{Context, HoldId, Reason, Result};
use crate::port::{Stored, UnitOfWork};
use crate::provisioning::{HoldScope, HoldSource, Job, JobHold, JobHoldQuery, JobStatus};

/// Sets a hold; fine when there is one of this source on this scope. No claim of what it holds begins after the commit.
/// The caller of the use case behind it has been asked for permission; nothing is checked here.
///
/// # Errors
/// When the store failed.
pub async fn hold(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    scope: HoldScope,
    source: HoldSource,
    reason: Option<&Reason>,
) -> Result<()> {
    if find(uow, &scope, source).await?.is_some() {
        return Ok(());
    }
    let now = uow.now().await?;
    let hold = JobHold {
        id: HoldId::generate(now, cx.entropy.as_ref()),
        scope: scope.clone(),
        source,
        reason: reason.map(|r| r.as_str().to_owned()),
        actor: cx.caller.actor_id().to_owned(),
        created_at: now,
    };
    uow.job_holds().insert(hold).await?;
    refresh(uow, &scope).await
}

/// Lifts a hold; fine when there is none. Wake the workers after the commit.
///
/// # Errors
/// When the store failed.
pub async fn release_hold(
    uow: &mut dyn UnitOfWork,
    scope: HoldScope,
    source: HoldSource,
) -> Result<()> {
    if let Some(hold) = find(uow, &scope, source).await? {
        uow.job_holds().remove(&hold).await?;
        refresh(uow, &scope).await?;
    }
    Ok(())
}

/// Why a queued job is not being claimed, if something holds it: the words of the hold, or its source.
///
/// # Errors
/// When the store failed.
pub async fn hold_reason(uow: &mut dyn UnitOfWork, job: &Job) -> Result<Option<String>> {
    if job.status != JobStatus::Queued {
        return Ok(None);
    }
    let on_lane = JobHoldQuery::OnLane(job.lane.clone());
    let mut holds = uow.job_holds().list(&on_lane, 10).await?;
    holds.extend(uow.job_holds().list(&JobHoldQuery::Wide, 1_000).await?);
    let held = holds.iter().find(|hold| hold.holds(&job.lane, &job.kind));
    Ok(held.map(|hold| {
        hold.reason
            .clone()
            .unwrap_or_else(|| hold.source.as_str().to_owned())
    }))
}

async fn find(
    uow: &mut dyn UnitOfWork,
    scope: &HoldScope,
    source: HoldSource,
) -> Result<Option<Stored<JobHold>>> {
    let query = match scope {
        HoldScope::Lane(lane) => JobHoldQuery::OnLane(lane.clone()),
        HoldScope::All | HoldScope::Kind(_) => JobHoldQuery::Wide,
    };
    let holds = uow.job_holds().list(&query, 1_000).await?;
    Ok(holds
        .into_iter()
        .find(|hold| hold.scope == *scope && hold.source == source))
}

async fn refresh(uow: &mut dyn UnitOfWork, scope: &HoldScope) -> Result<()> {
    if let HoldScope::Lane(lane) = scope {
        let lane = lane_of(uow, lane).await?;
        refresh_lane(uow, lane).await?;
    }
    Ok(())
}
