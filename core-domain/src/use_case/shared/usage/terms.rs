//! The terms of the plans that apply in a usage period.

use super::Metering;
use super::period::current_period;
use crate::access::unowned_records;
use crate::billing::usage::{IncludedTerms, PriceList, PricedUsage, UsagePeriod, UsageTerms};
use crate::billing::{Metric, PlanCatalog, PlanTerms, PlanTier, PlanVersion};
use crate::kernel::{Error, PlatformId, Result};
use crate::port::UnitOfWork;

/// Returns a version of the terms of a tier. Version 0 is the newest one.
///
/// # Errors
/// `INTERNAL_ERROR` if the version is neither configured nor stored.
pub async fn plan_terms(
    uow: &mut dyn UnitOfWork,
    plans: &PlanCatalog,
    tier: PlanTier,
    version: u32,
) -> Result<PlanTerms> {
    let found = find_plan_terms(uow, plans, tier, version).await?;
    let id = PlanVersion::id_of(tier, version);
    found.ok_or_else(|| Error::Internal(format!("the plan version {id} is missing")))
}

/// Returns a version of the terms of a tier. Version 0 is the newest one. Returns `None` if the version is neither configured
/// nor stored.
///
/// # Errors
/// Only those of the store.
pub async fn find_plan_terms(
    uow: &mut dyn UnitOfWork,
    plans: &PlanCatalog,
    tier: PlanTier,
    version: u32,
) -> Result<Option<PlanTerms>> {
    if let Some(newest) = plans.terms(tier)
        && (version == 0 || newest.version == version)
    {
        return Ok(Some(newest.clone()));
    }
    let id = PlanVersion::id_of(tier, version);
    let stored = unowned_records::<PlanVersion>(uow).find(&id).await?;
    Ok(stored.and_then(|stored| stored.terms()))
}

/// Returns the prices of a usage period.
///
/// # Errors
/// `INTERNAL_ERROR` if the terms of a plan are missing.
pub async fn price_list(
    uow: &mut dyn UnitOfWork,
    plans: &PlanCatalog,
    period: &UsagePeriod,
) -> Result<PriceList> {
    let free = [UsageTerms::free(period.period_start)];
    let terms = match period.terms.is_empty() {
        true => &free[..],
        false => &period.terms,
    };
    let mut of_plans = Vec::with_capacity(terms.len());
    for terms in terms {
        of_plans.push(plan_terms(uow, plans, terms.tier, terms.plan_version).await?);
    }
    let included = terms.iter().zip(&of_plans);
    let included: Vec<_> = included
        .map(|(terms, plan)| IncludedTerms {
            from: terms.from,
            plan,
        })
        .collect();
    Ok(PriceList::new(period.period()?, &included)?)
}

/// Returns the requests of a platform in its current period if its plan includes no more of them. A plan that charges for
/// further requests is never exhausted, so the platform is in a trial or has the tier `free`.
///
/// # Errors
/// `INTERNAL_ERROR` if the terms of a plan are missing.
pub async fn exhausted_requests(
    uow: &mut dyn UnitOfWork,
    metering: Metering<'_>,
    platform: &PlatformId,
) -> Result<Option<PricedUsage>> {
    let now = metering.clock.now(uow).await?;
    let (plans, currency) = (metering.plans, metering.plans.currency());
    let current = current_period(uow, platform, now, currency).await?;
    if current.period.is_billed() {
        return Ok(None);
    }
    let prices = price_list(uow, plans, &current.period).await?;
    let priced = prices.price(&current.total.sums)?;
    Ok(priced.into_iter().find(|usage| {
        usage.price.metric == Metric::Requests && usage.quantity >= usage.price.included
    }))
}
