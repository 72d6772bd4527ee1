//! Plans of deployments: the caller lists all files of a site, and uploads only those that the provider does not have.

use crate::access::{PlatformScope, SystemScope, ensure_room, unaudited};
use crate::cli::{DeployPlan, DeployPlanQuery};
use crate::kernel::{Context, DeployPlanId, Error, Record, Result, permission};
use crate::port::UnitOfWork;
use crate::use_case::shared::MAX_SLICE;

type Creates = PlatformScope<permission::DeploymentCreate>;

/// Refuses another plan if the platform has its maximum number. Call it before the list of files is stored.
///
/// # Errors
/// `LIMIT_REACHED` if too many plans of the platform are valid.
pub async fn ensure_room_for_plan(
    cx: &Context,
    scope: &Creates,
    uow: &mut dyn UnitOfWork,
) -> Result<()> {
    let valid = DeployPlanQuery::ValidAt(uow.now().await?);
    let plans = scope.records::<DeployPlan>(uow);
    let limit = cx.limits.deploy_plans_per_platform;
    let message = "Too many plans of the platform are valid. They expire after 15 minutes.";
    ensure_room(plans, &valid, limit, message).await
}

/// Creates the record of a plan whose list of files is stored, see [`plan_key`](super::plan_key).
///
/// # Errors
/// `LIMIT_REACHED` as for [`ensure_room_for_plan`].
pub async fn create_plan(
    cx: &Context,
    scope: &Creates,
    uow: &mut dyn UnitOfWork,
    id: &DeployPlanId,
) -> Result<DeployPlan> {
    ensure_room_for_plan(cx, scope, uow).await?;
    let now = uow.now().await?;
    let plan = DeployPlan::create(id.clone(), scope.id(), cx.caller.actor_id(), now);
    Ok(unaudited::insert(uow, plan).await?.into_inner())
}

/// Returns a plan of the caller.
///
/// # Errors
/// `NOT_FOUND` if the plan does not exist, has expired, or belongs to another caller.
pub async fn find_plan(
    cx: &Context,
    scope: &Creates,
    uow: &mut dyn UnitOfWork,
    id: &DeployPlanId,
) -> Result<DeployPlan> {
    let now = uow.now().await?;
    let found = scope.records::<DeployPlan>(uow).find(id).await?;
    let own = found.filter(|plan| plan.can_be_used_by(cx.caller.actor_id(), now));
    let missing = || Error::NotFound(DeployPlan::KIND);
    Ok(own.ok_or_else(missing)?.into_inner())
}

/// Returns whether a plan exists on any platform.
pub(super) async fn exists(uow: &mut dyn UnitOfWork, id: &DeployPlanId) -> Result<bool> {
    let found = SystemScope::new()
        .records::<DeployPlan>(uow)
        .find(id)
        .await?;
    Ok(found.is_some())
}

/// Removes at most `limit` expired plans, and returns their number.
///
/// # Errors
/// Only those of the store.
pub async fn remove_expired_plans(uow: &mut dyn UnitOfWork, limit: u32) -> Result<u64> {
    let expired = DeployPlanQuery::ExpiredAt(uow.now().await?);
    let plans = SystemScope::new().records::<DeployPlan>(uow);
    plans.remove_first(&expired, limit.min(MAX_SLICE)).await
}
