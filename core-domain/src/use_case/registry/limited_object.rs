//! The objects whose number the plan of a platform limits. They are counted in the unit of work that creates the object,
//! so that concurrent requests see each other.

use crate::access::{PlatformAccess, SystemScope};
use crate::billing::PlanLimits;
use crate::billing::usage::{LimitUse, LimitedObject};
use crate::kernel::{Context, PlatformId, Result};
use crate::port::UnitOfWork;
use crate::registry::{
    CustomDomain, CustomDomainQuery, Entity, EntityFilter, EntityQuery, WorkspaceStack,
    WorkspaceStackFilter, WorkspaceStackQuery,
};
use crate::use_case::shared::quota::{enforced_limit, max_of, quota_error};

/// Checks that the plan of a platform allows one more object. Does nothing unless quotas are enforced, and nothing for
/// operators.
///
/// # Errors
/// `QUOTA_EXCEEDED` if the platform has as many objects as its plan allows.
pub(in crate::use_case) async fn ensure_room(
    cx: &Context,
    platform: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    object: LimitedObject,
) -> Result<()> {
    let Some(max) = enforced_limit(cx, uow, platform.id(), object).await? else {
        return Ok(());
    };
    let used = count(platform, uow, object).await?;
    if used < u64::from(max) {
        return Ok(());
    }
    Err(quota_error(object, used, max))
}

/// Returns the numbers of objects that a platform has, with the limits of a plan. All numbers of a removed platform
/// are 0.
///
/// # Errors
/// Only those of the store.
pub(in crate::use_case) async fn limit_uses(
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
    limits: PlanLimits,
) -> Result<Vec<LimitUse>> {
    let access = SystemScope::new().platform(uow, platform).await?;
    let mut uses = Vec::with_capacity(LimitedObject::ALL.len());
    for object in LimitedObject::ALL {
        let used = match &access {
            Some(access) => count(access, uow, *object).await?,
            None => 0,
        };
        uses.push(LimitUse {
            limit: *object,
            used,
            max: max_of(limits, *object),
        });
    }
    Ok(uses)
}

/// Returns the uses that are above the limits of a plan.
///
/// # Errors
/// Only those of the store.
pub(in crate::use_case) async fn exceeded_limits(
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
    limits: PlanLimits,
) -> Result<Vec<LimitUse>> {
    let mut uses = limit_uses(uow, platform, limits).await?;
    uses.retain(|object| object.used > u64::from(object.max));
    Ok(uses)
}

async fn count(
    platform: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    object: LimitedObject,
) -> Result<u64> {
    match object {
        LimitedObject::Stacks => {
            let all = WorkspaceStackQuery::Listed(WorkspaceStackFilter::default());
            platform.records::<WorkspaceStack>(uow).count(&all).await
        }
        LimitedObject::CustomDomains => {
            let all = CustomDomainQuery::All { deleted: false };
            platform.records::<CustomDomain>(uow).count(&all).await
        }
        LimitedObject::Entities => {
            let all = EntityQuery::Listed(EntityFilter::default());
            platform.records::<Entity>(uow).count(&all).await
        }
    }
}
