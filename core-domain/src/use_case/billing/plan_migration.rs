//! Moves the subscriptions of one version of a plan to another, each at its first boundary 30 days or more after its
//! customer has been notified. Without it, a subscription keeps its version through all renewals.

use super::news::{self, News};
use super::{Billing, plan, subscription_state};
use crate::access::{Batches, OperatorScope, audited, unowned_records};
use crate::billing::{
    Customer, PlanTerms, PlanVersionName, Price, Subscription, SubscriptionQuery,
    SubscriptionStatus,
};
use crate::kernel::{Context, Error, Result, SubscriptionId, Timestamp};
use crate::port::{Mode, Store, UnitOfWork, transact};
use crate::use_case::shared::usage;

/// The counts of a migration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MigrationSummary {
    /// Subscriptions that will move. Their customers are notified.
    pub planned: u64,
    /// Subscriptions for which the move was planned before.
    pub known: u64,
}

/// Plans the move of all subscriptions of a version of a plan to another version, each in its own unit of work, and queues
/// a mail to each customer. Call it again after an interruption: no customer is notified twice. A subscription that begins
/// with the old version later is not moved.
///
/// # Errors
/// `VALIDATION_ERROR` names the version that does not exist, or that cannot be the target.
pub async fn migrate_plan(
    cx: &Context,
    scope: &OperatorScope,
    store: &dyn Store,
    billing: &Billing,
    from: PlanVersionName,
    to: PlanVersionName,
) -> Result<MigrationSummary> {
    let plans = transact(store, |uow, _| {
        Box::pin(async move { check(uow, billing, from, to).await })
    });
    let plans = &plans.await?;
    let mut summary = MigrationSummary::default();
    for status in SubscriptionStatus::LIVE {
        for id in subscriptions_of(store, *status, from).await? {
            let planned = transact(store, |uow, _| {
                let id = &id;
                Box::pin(async move { plan_move(cx, scope, uow, billing, id, plans).await })
            });
            match planned.await? {
                Some(true) => summary.planned += 1,
                Some(false) => summary.known += 1,
                None => {}
            }
        }
    }
    Ok(summary)
}

/// The terms before and after a move.
struct Plans {
    from: PlanTerms,
    to: PlanTerms,
}

async fn check(
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    from: PlanVersionName,
    to: PlanVersionName,
) -> Result<Plans> {
    let plans = Plans {
        from: terms_of(uow, billing, from, "from").await?,
        to: terms_of(uow, billing, to, "to").await?,
    };
    let problem = if from == to {
        "The versions are the same."
    } else if !plans.to.selectable {
        "Customers cannot subscribe to this plan."
    } else if plans.from.currency != plans.to.currency {
        "The plans have different currencies."
    } else {
        return Ok(plans);
    };
    Err(Error::invalid("to", "invalid", problem))
}

async fn terms_of(
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    name: PlanVersionName,
    field: &str,
) -> Result<PlanTerms> {
    let (tier, version) = (name.tier, name.version);
    let found = usage::find_plan_terms(uow, &billing.plans, tier, version).await?;
    found.ok_or_else(|| {
        let message = format!("The plan {name} was never configured for this database.");
        Error::invalid(field, "invalid", message)
    })
}

/// Returns the subscriptions with a status that have a version of a plan.
async fn subscriptions_of(
    store: &dyn Store,
    status: SubscriptionStatus,
    version: PlanVersionName,
) -> Result<Vec<SubscriptionId>> {
    let with_status = SubscriptionQuery::WithStatus(status);
    let mut batches = Batches::<Subscription>::of(with_status);
    let mut found = Vec::new();
    loop {
        let mut uow = store.begin(Mode::Read).await?;
        let batch = batches.next(unowned_records(uow.as_mut())).await;
        uow.rollback().await;
        let Some(batch) = batch? else {
            return Ok(found);
        };
        let items = batch.iter();
        let of_version = items.filter(|subscription| subscription.plan_version_name() == version);
        found.extend(of_version.map(|subscription| subscription.id.clone()));
    }
}

/// Plans the move of one subscription. Returns whether it was planned now; `None` if the subscription has ended or has
/// another plan by now.
async fn plan_move(
    cx: &Context,
    scope: &OperatorScope,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    id: &SubscriptionId,
    plans: &Plans,
) -> Result<Option<bool>> {
    let Some(seen) = subscription_state::find(uow, id).await? else {
        return Ok(None);
    };
    let version = seen.plan_version_name();
    if !seen.status.is_live() || version != plans.from.version_name() {
        return Ok(None);
    }
    let mut next = seen.edit();
    let now = billing.now(uow).await?;
    if !next.migrate_later(plans.to.version_name(), now) {
        return Ok(Some(false));
    }
    let customer = unowned_records::<Customer>(uow)
        .get(&seen.customer_id)
        .await?;
    let news = News::PlanMoves {
        subscription: &next,
        plans: [&plans.from, &plans.to],
    };
    news::tell(cx, uow, billing, &customer, news).await?;
    let action = "subscription.migration_planned";
    audited::replace(cx, scope, uow, &seen, next, action).await?;
    Ok(Some(true))
}

/// Gives a subscription the plan to which it moves with a period that begins at an instant. Does nothing if no move is due.
/// Call it before the period begins.
///
/// # Errors
/// `INTERNAL_ERROR` if the terms of the plan are missing.
pub(super) async fn apply_due(
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    next: &mut Subscription,
    at: Timestamp,
) -> Result<()> {
    let Some(to) = next.due_migration(at) else {
        return Ok(());
    };
    let terms = plan::version(uow, billing, to.tier, to.version).await?;
    let price = Price {
        terms: &terms,
        interval: next.interval,
        quantity: next.quantity,
    };
    let planned = (next.pending_change.take(), next.pending_plan_version.take());
    next.set_price(&price, at)?;
    // A change that is planned for a later boundary stays planned.
    (next.pending_change, next.pending_plan_version) = planned;
    Ok(())
}
