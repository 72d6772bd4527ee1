//! Quotas: the numbers of objects that the plan of a platform allows.

use serde_json::json;

use crate::access::unowned_records;
use crate::billing::usage::LimitedObject;
use crate::billing::{
    PlanLimits, PlanTier, PlanVersion, PlanVersionQuery, Subscription, SubscriptionQuery,
};
use crate::kernel::{Code, Context, Error, PlatformId, Result};
use crate::port::UnitOfWork;

/// Maximum number of stored versions of plans that are looked at.
const MAX_VERSIONS: u32 = 1_000;

/// Returns how many objects the plan of a platform allows. Returns `None` unless quotas are enforced, and for operators.
/// The limits are those of the subscription while it is in its trial, active or past due, and otherwise those of the tier
/// `free`.
pub(in crate::use_case) async fn enforced_limit(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
    object: LimitedObject,
) -> Result<Option<u32>> {
    if !cx.limits.enforce_quotas || cx.caller.is_operator() {
        return Ok(None);
    }
    let limits = plan_limits(uow, platform).await?;
    Ok(limits.map(|limits| max_of(limits, object)))
}

/// Returns the refusal of one more object.
pub(in crate::use_case) fn quota_error(object: LimitedObject, used: u64, limit: u32) -> Error {
    Error::Refused {
        code: Code::QuotaExceeded,
        message: format!("The plan allows {limit} {object}. Delete one or choose a higher plan."),
        details: json!({ "metric": object.as_str(), "used": used, "limit": limit }),
    }
}

/// Returns the limit of a plan for an object.
pub(in crate::use_case) const fn max_of(limits: PlanLimits, object: LimitedObject) -> u32 {
    match object {
        LimitedObject::Stacks => limits.stacks,
        LimitedObject::CustomDomains => limits.custom_domains,
        LimitedObject::Entities => limits.entities,
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
