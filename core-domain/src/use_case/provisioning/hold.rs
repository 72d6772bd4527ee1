//! Setting, showing and lifting holds. A hold keeps jobs from being claimed; steps that run go on.

use serde_json::json;

use super::hold_view::{CreateHold, HoldView};
use super::kinds::Kinds;
use super::lane::{MOST_HOLDS, holds_on, refresh_lane};
use crate::access::{Covers, OperatorScope, PlatformWriter, audited, authorize, unowned};
use crate::kernel::{
    Code, Context, Effect, Error, HoldId, ListQuery, Page, Reason, Result, StoreError, Stored,
    Unowned, grant,
};
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
    let set = set(cx, scope, uow, held, HoldSource::Operator, reason);
    set.await.map(drop)
}

/// A hold that was set.
#[derive(Clone, Debug)]
pub struct SetHold {
    /// The hold.
    pub hold: Stored<JobHold>,
    /// Whether it was not there before.
    pub is_new: bool,
}

/// As [`hold`], on what a command names.
///
/// # Errors
/// `VALIDATION_ERROR` for a kind nobody knows, and fields that do not go with the scope; `NOT_FOUND` for an unknown
/// platform.
pub async fn create_hold(
    cx: &Context,
    scope: &OperatorScope,
    uow: &mut dyn UnitOfWork,
    kinds: &Kinds,
    command: &CreateHold,
) -> Result<SetHold> {
    let held = command.held(kinds)?;
    if let Some(platform) = &command.platform_id {
        authorize::<grant::JobRead>(cx, uow, platform).await?;
    }
    let reason = command.reason.as_ref();
    set(cx, scope, uow, held, HoldSource::Operator, reason).await
}

/// All holds, newest first.
///
/// # Errors
/// `INVALID_CURSOR`.
pub async fn holds(
    _: &OperatorScope,
    uow: &mut dyn UnitOfWork,
    query: &ListQuery,
) -> Result<Page<HoldView>> {
    let wanted = query.page();
    let page = unowned::<JobHold>(uow)
        .page(&JobHoldQuery::All, &wanted)
        .await?;
    Ok(page.map(|hold| HoldView::from(&*hold)))
}

/// A hold.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn get_hold(
    _: &OperatorScope,
    uow: &mut dyn UnitOfWork,
    hold: &HoldId,
) -> Result<Stored<JobHold>> {
    unowned::<JobHold>(uow).get(hold).await
}

/// Lifts an operator's hold.
///
/// # Errors
/// `NOT_FOUND`; `INVALID_STATE` for the hold of a suspension, which ends with it; `VERSION_CONFLICT`.
pub async fn remove_hold(
    cx: &Context,
    scope: &OperatorScope,
    uow: &mut dyn UnitOfWork,
    hold: &HoldId,
) -> Result<()> {
    let hold = get_hold(scope, uow, hold).await?;
    if hold.source != HoldSource::Operator {
        return Err(Error::Refused {
            code: Code::InvalidState,
            message: "The hold of a suspension is lifted with the suspension.".to_owned(),
            details: json!({ "source": hold.source }),
        });
    }
    remove(cx, scope, uow, &hold).await
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
        let set = set(cx, scope, uow, lane, HoldSource::Suspension, reason);
        set.await.map(drop)
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
) -> Result<SetHold> {
    if let Some(hold) = find(uow, &held, source).await? {
        return Ok(SetHold {
            hold,
            is_new: false,
        });
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
    let hold = match audited::insert(cx, scope, uow, hold, "job_hold.set").await {
        // Somebody was faster: run again, theirs is the answer.
        Err(Error::Store(StoreError::Conflict { .. })) => {
            return Err(StoreError::retry("the hold was set elsewhere").into());
        }
        stored => stored?,
    };
    refresh(uow, &held).await?;
    Ok(SetHold { hold, is_new: true })
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
    remove(&cx.consequence(), scope, uow, &hold).await
}

async fn remove(
    cx: &Context,
    scope: &impl Covers<Unowned>,
    uow: &mut dyn UnitOfWork,
    hold: &Stored<JobHold>,
) -> Result<()> {
    audited::remove(cx, scope, uow, hold, "job_hold.lifted").await?;
    uow.effects().add(Effect::JobReady);
    refresh(uow, &hold.scope).await
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
