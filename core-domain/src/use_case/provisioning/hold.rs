//! Creating, listing and lifting holds. A hold prevents jobs from being claimed; running jobs are not interrupted.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::kinds::Kinds;
use super::lane::{MAX_HOLDS, holds_on, refresh_lane};
use crate::access::{Covers, OperatorScope, PlatformWriter, audited, authorize, unowned_records};
use crate::kernel::{
    Code, Context, Effect, Error, HoldId, Line, ListQuery, Page, PlatformId, Reason, Result,
    StoreError, Stored, Timestamp, Unowned, permission, text_enum,
};
use crate::port::UnitOfWork;
use crate::provisioning::{HoldScope, HoldSource, JobHold, JobHoldQuery, LaneKey};

text_enum! {
    /// The jobs that a hold applies to.
    pub enum HoldScopeType {
        /// All jobs of the installation.
        All = "all",
        /// The jobs of one kind.
        Kind = "kind",
        /// The jobs of one platform.
        Platform = "platform",
    }
}

/// Creates a hold. Held jobs are not claimed; running jobs are not interrupted.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreateHold {
    /// The jobs to hold: all, those of a kind, or those of a platform.
    pub scope: HoldScopeType,
    /// The job kind to hold. Required if `scope` is `kind`, otherwise not allowed.
    pub kind: Option<Line<1, 100>>,
    /// The platform whose jobs to hold. Required if `scope` is `platform`, otherwise not allowed.
    pub platform_id: Option<PlatformId>,
    /// The reason for the hold, shown in the held jobs. Optional.
    pub reason: Option<Reason>,
}

impl CreateHold {
    /// Returns the scope of the hold.
    ///
    /// # Errors
    /// `VALIDATION_ERROR` if the kind or the platform is missing or does not match the scope, or if the kind is
    /// unknown.
    pub(super) fn to_scope(&self, kinds: &Kinds) -> Result<HoldScope> {
        let (kind, platform) = (self.kind.as_ref(), self.platform_id.as_ref());
        match (self.scope, kind, platform) {
            (HoldScopeType::All, None, None) => Ok(HoldScope::All),
            (HoldScopeType::Kind, Some(kind), None) if kinds.contains(kind.as_str()) => {
                Ok(HoldScope::Kind(kind.to_string()))
            }
            (HoldScopeType::Kind, Some(_), None) => {
                Err(Error::invalid("kind", "unknown", "is not a known job kind"))
            }
            (HoldScopeType::Platform, None, Some(id)) => Ok(HoldScope::Lane(LaneKey::platform(id))),
            (HoldScopeType::Kind, None, _) => Err(missing("kind")),
            (HoldScopeType::Platform, _, None) => Err(missing("platformId")),
            (HoldScopeType::Kind | HoldScopeType::All, _, Some(_)) => {
                Err(not_allowed("platformId"))
            }
            (HoldScopeType::Platform | HoldScopeType::All, Some(_), _) => Err(not_allowed("kind")),
        }
    }
}

fn missing(field: &str) -> Error {
    Error::invalid(field, "required", "is required with this scope")
}

fn not_allowed(field: &str) -> Error {
    Error::invalid(field, "unexpected", "is not allowed with this scope")
}

/// A hold that prevents jobs from being claimed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HoldView {
    /// Unique id of the hold.
    pub id: HoldId,
    /// The jobs that are held: all, those of a kind, or those of a platform.
    pub scope: HoldScopeType,
    /// The job kind that is held. `null` unless `scope` is `kind`.
    pub kind: Option<String>,
    /// The platform whose jobs are held. `null` unless `scope` is `platform`.
    pub platform_id: Option<PlatformId>,
    /// The source of the hold: an operator, or the suspension of the platform. To lift the hold of a suspension, end
    /// the suspension.
    pub source: HoldSource,
    /// The reason for the hold, in words. `null` if none was given.
    pub reason: Option<String>,
    /// The id of the caller that created the hold.
    pub actor: String,
    /// The time at which the hold was created.
    pub created_at: Timestamp,
}

impl From<&JobHold> for HoldView {
    fn from(hold: &JobHold) -> Self {
        let (scope, kind, platform_id) = match &hold.scope {
            HoldScope::All => (HoldScopeType::All, None, None),
            HoldScope::Kind(kind) => (HoldScopeType::Kind, Some(kind.clone()), None),
            HoldScope::Lane(lane) => (HoldScopeType::Platform, None, lane.platform_id()),
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

/// Creates an operator's hold. Does nothing if there is one on this scope already. After the commit, no held job is
/// claimed.
///
/// # Errors
/// Only those of the store.
pub async fn set_operator_hold(
    cx: &Context,
    scope: &OperatorScope,
    uow: &mut dyn UnitOfWork,
    held: HoldScope,
    reason: Option<&Reason>,
) -> Result<()> {
    let set = set(cx, scope, uow, held, HoldSource::Operator, reason);
    set.await.map(drop)
}

/// The result of setting a hold.
#[derive(Clone, Debug)]
pub struct HoldResult {
    /// The new or existing hold.
    pub hold: Stored<JobHold>,
    /// `true` if the hold did not exist before.
    pub is_new: bool,
}

/// Works like [`set_operator_hold`], with the scope that the command describes.
///
/// # Errors
/// - `VALIDATION_ERROR` if the kind is unknown, or if the fields do not match the scope.
/// - `NOT_FOUND` if the platform does not exist.
pub async fn create_hold(
    cx: &Context,
    scope: &OperatorScope,
    uow: &mut dyn UnitOfWork,
    kinds: &Kinds,
    command: &CreateHold,
) -> Result<HoldResult> {
    let held = command.to_scope(kinds)?;
    if let Some(platform) = &command.platform_id {
        authorize::<permission::JobRead>(cx, uow, platform).await?;
    }
    let reason = command.reason.as_ref();
    set(cx, scope, uow, held, HoldSource::Operator, reason).await
}

/// Returns all holds, newest first.
///
/// # Errors
/// `INVALID_CURSOR` if the cursor is invalid.
pub async fn holds(
    _: &OperatorScope,
    uow: &mut dyn UnitOfWork,
    query: &ListQuery,
) -> Result<Page<HoldView>> {
    let wanted = query.page();
    let page = unowned_records::<JobHold>(uow)
        .page(&JobHoldQuery::All, &wanted)
        .await?;
    Ok(page.map(|hold| HoldView::from(&*hold)))
}

/// Returns the hold with this id.
///
/// # Errors
/// `NOT_FOUND` if the hold does not exist.
pub async fn get_hold(
    _: &OperatorScope,
    uow: &mut dyn UnitOfWork,
    hold: &HoldId,
) -> Result<Stored<JobHold>> {
    unowned_records::<JobHold>(uow).get(hold).await
}

/// Lifts an operator's hold.
///
/// # Errors
/// - `NOT_FOUND` if the hold does not exist.
/// - `INVALID_STATE` if it is the hold of a suspension, which is lifted with the suspension.
/// - `VERSION_CONFLICT` if `If-Match` names another version of the hold.
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

/// Lifts the operator's hold on this scope. Does nothing if there is none.
///
/// # Errors
/// Only those of the store.
pub async fn lift_operator_hold(
    cx: &Context,
    scope: &OperatorScope,
    uow: &mut dyn UnitOfWork,
    held: HoldScope,
) -> Result<()> {
    lift(cx, scope, uow, held, HoldSource::Operator).await
}

/// Sets or lifts the hold on the lane of a platform when it is suspended or reactivated.
pub(in crate::use_case) async fn sync_suspension_hold(
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
) -> Result<HoldResult> {
    if let Some(hold) = find(uow, &held, source).await? {
        return Ok(HoldResult {
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
        // Another unit of work has set the hold. Running again returns that hold.
        Err(Error::Store(StoreError::Conflict { .. })) => {
            return Err(StoreError::retry("another unit of work has set the hold").into());
        }
        stored => stored?,
    };
    refresh(uow, &held).await?;
    Ok(HoldResult { hold, is_new: true })
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
    remove(&cx.without_conditions(), scope, uow, &hold).await
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
        HoldScope::All | HoldScope::Kind(_) => list_wide_holds(uow).await?,
    };
    let mut holds = holds.into_iter();
    Ok(holds.find(|hold| hold.scope == *held && hold.source == source))
}

/// Returns the holds on all jobs or on a kind.
pub(super) async fn list_wide_holds(uow: &mut dyn UnitOfWork) -> Result<Vec<Stored<JobHold>>> {
    let wide = JobHoldQuery::Wide;
    unowned_records::<JobHold>(uow).list(&wide, MAX_HOLDS).await
}

async fn refresh(uow: &mut dyn UnitOfWork, held: &HoldScope) -> Result<()> {
    if let HoldScope::Lane(lane) = held {
        refresh_lane(uow, lane).await?;
    }
    Ok(())
}
