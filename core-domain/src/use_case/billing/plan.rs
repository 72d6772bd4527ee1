//! Plans: the configured ones, and the versions that subscriptions keep.

use super::Billing;
use crate::access::{SignedInScope, unaudited, unowned_records};
use crate::billing::{
    Interval, Plan, PlanCatalog, PlanError, PlanTerms, PlanTier, PlanVersion, ensure_unchanged,
};
use crate::kernel::{Error, Result};
use crate::port::UnitOfWork;
use crate::use_case::shared::usage;

/// The kind of record that a missing price is reported as.
const PRICE: &str = "price";

/// Returns the plans, by rank, the month before the year.
#[must_use]
pub fn list(_: &SignedInScope, billing: &Billing) -> Vec<Plan> {
    billing.plans.plans()
}

/// Stores the configured versions of all plans that are not stored yet. Call it before the first request.
///
/// # Errors
/// `INVALID_STATE` with the reason if the terms of a stored version have changed.
pub async fn store_versions(uow: &mut dyn UnitOfWork, plans: &PlanCatalog) -> Result<()> {
    check_versions(uow, plans).await?;
    let now = uow.now().await?;
    for terms in plans.by_rank() {
        let version = PlanVersion::of(terms, now);
        let stored = unowned_records::<PlanVersion>(uow)
            .find(&version.id)
            .await?;
        if stored.is_none() {
            // Two processes can start at once. The unit of the later one runs again.
            unaudited::append(uow, version).await?;
        }
    }
    Ok(())
}

/// Checks that no stored version of a plan has other terms than the configured one.
///
/// # Errors
/// `INVALID_STATE` names the first plan whose terms have changed.
pub async fn check_versions(uow: &mut dyn UnitOfWork, plans: &PlanCatalog) -> Result<()> {
    for terms in plans.by_rank() {
        let id = PlanVersion::id_of(terms.tier, terms.version);
        if let Some(stored) = unowned_records::<PlanVersion>(uow).find(&id).await? {
            ensure_unchanged(terms, &stored.digest).map_err(change_error)?;
        }
    }
    Ok(())
}

fn change_error(error: PlanError) -> Error {
    Error::refused(crate::kernel::Code::InvalidState, error.to_string())
}

/// Returns the newest terms of a tier.
pub(super) fn newest(billing: &Billing, tier: PlanTier) -> Result<PlanTerms> {
    let terms = billing.plans.terms(tier);
    terms.cloned().ok_or(Error::NotFound(PRICE))
}

/// Returns a version of the terms of a tier.
pub(super) async fn version(
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    tier: PlanTier,
    version: u32,
) -> Result<PlanTerms> {
    usage::plan_terms(uow, &billing.plans, tier, version).await
}

/// Returns the newest terms with this price, which customers can choose, and the interval of the price. The price of an
/// older version is valid only for the subscriptions that have it.
///
/// # Errors
/// `NOT_FOUND` if there is no such price.
pub(super) fn find_price(billing: &Billing, price_id: &str) -> Result<(PlanTerms, Interval)> {
    find(billing, |terms, interval| {
        terms.price_id(interval) == price_id
    })
    .ok_or(Error::NotFound(PRICE))
}

/// Returns the newest terms and the interval of a plan, which customers can choose.
///
/// # Errors
/// `NOT_FOUND` if there is no such plan.
pub(super) fn find_plan(billing: &Billing, plan_id: &str) -> Result<(PlanTerms, Interval)> {
    find(billing, |terms, interval| {
        terms.plan_id(interval) == plan_id
    })
    .ok_or(Error::NotFound("plan"))
}

fn find(
    billing: &Billing,
    matches: impl Fn(&PlanTerms, Interval) -> bool,
) -> Option<(PlanTerms, Interval)> {
    let selectable = billing.plans.by_rank().into_iter();
    let mut selectable = selectable.filter(|terms| terms.selectable);
    selectable.find_map(|terms| {
        let mut intervals = Interval::ALL.iter().copied();
        let interval = intervals.find(|interval| matches(terms, *interval))?;
        Some((terms.clone(), interval))
    })
}
