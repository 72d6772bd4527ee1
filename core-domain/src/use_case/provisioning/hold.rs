//! Setting, showing and lifting holds. A hold keeps jobs from being claimed; steps that run go on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::kinds::Kinds;
use super::lane::{MOST_HOLDS, holds_on, refresh_lane};
use crate::access::{Covers, OperatorScope, PlatformWriter, audited, authorize, unowned};
use crate::kernel::{
    Code, Context, Effect, Error, HoldId, Line, ListQuery, Page, PlatformId, Reason, Result,
    StoreError, Stored, Timestamp, Unowned, grant, text_enum,
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

text_enum! {
    /// What a hold is on.
    pub enum HoldOn {
        /// Every job.
        All = "all",
        /// The jobs of a kind.
        Kind = "kind",
        /// The jobs of a platform.
        Platform = "platform",
    }
}

/// Keeps jobs from being claimed.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreateHold {
    /// What shall be held.
    pub scope: HoldOn,
    /// The kind; with `kind` alone.
    pub kind: Option<Line<1, 100>>,
    /// The platform; with `platform` alone.
    pub platform_id: Option<PlatformId>,
    /// Why, in words; jobs show it.
    pub reason: Option<Reason>,
}

impl CreateHold {
    /// What is to be held.
    ///
    /// # Errors
    /// `VALIDATION_ERROR` when kind or platform are missing, do not go with the scope, or no kind is called so.
    pub(super) fn held(&self, kinds: &Kinds) -> Result<HoldScope> {
        let (kind, platform) = (self.kind.as_ref(), self.platform_id.as_ref());
        match (self.scope, kind, platform) {
            (HoldOn::All, None, None) => Ok(HoldScope::All),
            (HoldOn::Kind, Some(kind), None) if kinds.knows(kind.as_str()) => {
                Ok(HoldScope::Kind(kind.to_string()))
            }
            (HoldOn::Kind, Some(_), None) => Err(Error::invalid(
                "kind",
                "unknown",
                "no kind of jobs is called so",
            )),
            (HoldOn::Platform, None, Some(id)) => Ok(HoldScope::Lane(LaneKey::platform(id))),
            (HoldOn::Kind, None, _) => Err(missing("kind")),
            (HoldOn::Platform, _, None) => Err(missing("platformId")),
            (HoldOn::Kind | HoldOn::All, _, Some(_)) => Err(contradiction("platformId")),
            (HoldOn::Platform | HoldOn::All, Some(_), _) => Err(contradiction("kind")),
        }
    }
}

fn missing(field: &str) -> Error {
    Error::invalid(field, "required", "is required with this scope")
}

fn contradiction(field: &str) -> Error {
    Error::invalid(field, "unexpected", "does not go with this scope")
}

/// A hold as the interface shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HoldView {
    /// The hold's id.
    pub id: HoldId,
    /// What it is on.
    pub scope: HoldOn,
    /// The kind that is held.
    pub kind: Option<String>,
    /// The platform whose jobs are held.
    pub platform_id: Option<PlatformId>,
    /// Why there is a hold: one of a suspension is lifted with it alone.
    pub source: HoldSource,
    /// Why, in words.
    pub reason: Option<String>,
    /// Who set it.
    pub actor: String,
    /// When.
    pub created_at: Timestamp,
}

impl From<&JobHold> for HoldView {
    fn from(hold: &JobHold) -> Self {
        let (scope, kind, platform_id) = match &hold.scope {
            HoldScope::All => (HoldOn::All, None, None),
            HoldScope::Kind(kind) => (HoldOn::Kind, Some(kind.clone()), None),
            HoldScope::Lane(lane) => (HoldOn::Platform, None, lane.platform_id()),
        };
        Self {
            id: hold.id.clone(),
            scope,
            kind,
            platform_id,
            source: hold.source,
            reason: hold.reason.clone(),
            actor: hold.actor.clone(),
            created_at: hold.created_at,
        }
    }
}
