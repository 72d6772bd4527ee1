//! Setting and lifting holds. A hold keeps jobs from being claimed; steps that run go on.

use super::lane::{MOST_HOLDS, holds_on, refresh_lane};
use crate::access::{Covers, OperatorScope, PlatformWriter, audited, unowned};
use crate::kernel::{Context, Effect, HoldId, Reason, Result, Stored, Unowned};
use crate::port::UnitOfWork;
use crate::provisioning::{HoldScope, HoldSource, JobHold, JobHoldQuery, LaneKey};

/// Sets an operator's hold; fine when there is one on this scope. No claim of what it holds begins after the commit.
///
/// # Errors
/// When the store failed.
pub async fn hold(
    cx: &Context,
    scope: &OperatorScope,
    uow: &mut dyn UnitOfWork,
    held: HoldScope,
    reason: Option<&Reason>,
) -> Result<()> {
    set(cx, scope, uow, held, HoldSource::Operator, reason).await
}

/// Lifts an operator's hold; fine when there is none.
///
/// # Errors
/// When the store failed.
pub async fn release_hold(
    cx: &Context,
    scope: &OperatorScope,
    uow: &mut dyn UnitOfWork,
    held: HoldScope,
) -> Result<()> {
    lift(cx, scope, uow, held, HoldSource::Operator).await
}

/// Holds or releases the lane of a platform with its suspension.
pub(in crate::use_case) async fn follow_suspension(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    suspended: bool,
    reason: Option<&Reason>,
) -> Result<()> {
    let lane = HoldScope::Lane(LaneKey::platform(scope.id()));
    if suspended {
        set(cx, scope, uow, lane, HoldSource::Suspension, reason).await
    } else {
        lift(cx, scope, uow, lane, HoldSource::Suspension).await
    }
}

async fn set(
    cx: &Context,
    scope: &impl Covers<Unowned>,
    uow: &mut dyn UnitOfWork,
    held: HoldScope,
    source: HoldSource,
    reason: Option<&Reason>,
) -> Result<()> {
    if find(uow, &held, source).await?.is_some() {
        return Ok(());
    }
    let now = uow.now().await?;
    let hold = JobHold {
        id: HoldId::generate(now, cx.entropy.as_ref()),
        scope: held.clone(),
        source,
        reason: reason.map(|r| r.as_str().to_owned()),
        actor: cx.caller.actor_id().to_owned(),
        created_at: now,
    };
    audited::insert(cx, scope, uow, hold, "job_hold.set").await?;
    refresh(uow, &held).await
}

async fn lift(
    cx: &Context,
    scope: &impl Covers<Unowned>,
    uow: &mut dyn UnitOfWork,
    held: HoldScope,
    source: HoldSource,
) -> Result<()> {
    let Some(hold) = find(uow, &held, source).await? else {
        return Ok(());
    };
    let cx = cx.consequence();
    audited::remove(&cx, scope, uow, &hold, "job_hold.lifted").await?;
    uow.effects().add(Effect::JobReady);
    refresh(uow, &held).await
}

async fn find(
    uow: &mut dyn UnitOfWork,
    held: &HoldScope,
    source: HoldSource,
) -> Result<Option<Stored<JobHold>>> {
    let holds = match held {
        HoldScope::Lane(_) => holds_on(uow, vec![held.clone()]).await?,
        HoldScope::All | HoldScope::Kind(_) => wide(uow).await?,
    };
    let mut holds = holds.into_iter();
    Ok(holds.find(|hold| hold.scope == *held && hold.source == source))
}

/// The holds on everything or on a kind.
pub(super) async fn wide(uow: &mut dyn UnitOfWork) -> Result<Vec<Stored<JobHold>>> {
    let wide = JobHoldQuery::Wide;
    unowned::<JobHold>(uow).list(&wide, MOST_HOLDS).await
}

async fn refresh(uow: &mut dyn UnitOfWork, held: &HoldScope) -> Result<()> {
    if let HoldScope::Lane(lane) = held {
        refresh_lane(uow, lane).await?;
    }
    Ok(())
}
