//! Quotas: the numbers of objects that the plan of a platform allows. They are counted in the unit of work that creates
//! the object, so that concurrent requests see each other.

use serde_json::json;

use crate::access::{PlatformAccess, SystemScope, unowned_records};
use crate::billing::usage::{LimitUse, LimitedObject};
use crate::billing::{
    PlanLimits, PlanTier, PlanVersion, PlanVersionQuery, Subscription, SubscriptionQuery,
};
use crate::kernel::{Code, Context, Error, PlatformId, Result};
use crate::port::UnitOfWork;
use crate::registry::{
    CustomDomain, CustomDomainQuery, Entity, EntityFilter, EntityQuery, WorkspaceStack,
    WorkspaceStackFilter, WorkspaceStackQuery,
};

/// Maximum number of stored versions of plans that are looked at.
const MAX_VERSIONS: u32 = 1_000;

/// Checks that the plan of a platform allows one more object. Does nothing unless quotas are enforced, and
/// nothing for operators. The limits are
/// those of the subscription while it is in its trial, active or past due, and otherwise those of the tier `free`.
///
/// # Errors
/// `QUOTA_EXCEEDED` if the platform has as many objects as its plan allows.
pub(in crate::use_case) async fn ensure_room(
    cx: &Context,
    platform: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    object: LimitedObject,
) -> Result<()> {
    if !cx.limits.enforce_quotas || cx.caller.is_operator() {
        return Ok(());
    }
    let Some(limits) = plan_limits(uow, platform.id()).await? else {
        return Ok(());
    };
    let used = count(platform, uow, object).await?;
    let max = max_of(limits, object);
    if used < u64::from(max) {
        return Ok(());
    }
    Err(exceeded(object, used, max))
}

fn exceeded(object: LimitedObject, used: u64, limit: u32) -> Error {
    Error::Refused {
        code: Code::QuotaExceeded,
        message: format!("The plan allows {limit} {object}. Delete one or choose a higher plan."),
        details: json!({ "metric": object.as_str(), "used": used, "limit": limit }),
    }
}

/// Returns the numbers of objects that a platform has, with the limits of a plan. All numbers of a removed platform
/// are 0.
///
/// # Errors
/// Only those of the store.
pub async fn limit_uses(
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
pub async fn exceeded_limits(
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
    limits: PlanLimits,
) -> Result<Vec<LimitUse>> {
    let mut uses = limit_uses(uow, platform, limits).await?;
    uses.retain(|object| object.used > u64::from(object.max));
    Ok(uses)
}

const fn max_of(limits: PlanLimits, object: LimitedObject) -> u32 {
    match object {
        LimitedObject::Stacks => limits.stacks,
        LimitedObject::CustomDomains => limits.custom_domains,
        LimitedObject::Entities => limits.entities,
    }
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

/// Returns the limits of a platform's plan, as it is stored. Returns `None` if no plan is stored, because the
/// installation has no billing.
async fn plan_limits(
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
) -> Result<Option<PlanLimits>> {
    let live = SubscriptionQuery::LiveOfPlatform(platform.clone());
    let live = unowned_records::<Subscription>(uow).first(&live).await?;
    let version = match live.filter(|live| live.status.grants_tier()) {
        Some(live) => {
            let id = PlanVersion::id_of(live.tier, live.plan_version);
            unowned_records::<PlanVersion>(uow).find(&id).await?
        }
        None => {
            let all = unowned_records::<PlanVersion>(uow)
                .list(&PlanVersionQuery::All, MAX_VERSIONS)
                .await?;
            let free = all.into_iter().filter(|plan| {
                let terms = plan.terms();
                terms.is_some_and(|terms| terms.tier == PlanTier::Free)
            });
            free.max_by_key(|plan| plan.terms().map(|terms| terms.version))
        }
    };
    let terms = version.and_then(|version| version.terms());
    Ok(terms.map(|terms| terms.limits))
}
