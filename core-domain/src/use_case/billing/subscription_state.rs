//! Changes of a subscription's status, and what follows from them for the platform.

use super::book::CustomerBook;
use super::usage_period;
use crate::access::{Covers, audited, unowned_records};
use crate::billing::{
    Invoice, InvoiceQuery, InvoiceStatus, PlanTier, Subscription, SubscriptionEvent,
    SubscriptionStatus,
};
use crate::kernel::{
    Context, CustomerId, Machine, Result, Stored, SubscriptionId, Timestamp, Unowned,
};
use crate::port::UnitOfWork;
use crate::use_case::registry::platform::{BilledPlatform, follow_subscription};

/// The most open invoices of a customer that are looked at.
const MAX_OPEN: u32 = 100;

/// Stores a new subscription, and gives its platform the tier.
pub(super) async fn insert(
    cx: &Context,
    scope: &impl Covers<Unowned>,
    uow: &mut dyn UnitOfWork,
    book: &CustomerBook,
    mut subscription: Subscription,
) -> Result<Stored<Subscription>> {
    subscription.plan_trial_notice(book.now);
    subscription.due_at = subscription.next_due();
    let stored = audited::insert(cx, scope, uow, subscription, "subscription.created").await?;
    follow(cx, scope, uow, book, &stored).await?;
    Ok(stored)
}

/// Stores a changed subscription without a change of its status, and gives its platform the tier.
pub(super) async fn replace(
    cx: &Context,
    scope: &impl Covers<Unowned>,
    uow: &mut dyn UnitOfWork,
    book: &CustomerBook,
    seen: &Stored<Subscription>,
    mut next: Subscription,
    action: &'static str,
) -> Result<Stored<Subscription>> {
    if trial_of(&next) != trial_of(seen) {
        next.plan_trial_notice(book.now);
    }
    next.due_at = next.next_due();
    let stored = audited::replace(cx, scope, uow, seen, next, action).await?;
    follow(cx, scope, uow, book, &stored).await?;
    Ok(stored)
}

/// Returns the end of the trial, if the current period is one.
fn trial_of(subscription: &Subscription) -> Option<Timestamp> {
    let end = subscription.trial_ends_at;
    end.filter(|_| subscription.is_in_trial())
}

/// Applies an event to a changed subscription and stores it.
///
/// # Errors
/// `INVALID_STATE` if the status does not allow the event.
pub(super) async fn apply(
    cx: &Context,
    scope: &impl Covers<Unowned>,
    uow: &mut dyn UnitOfWork,
    book: &CustomerBook,
    seen: &Stored<Subscription>,
    mut next: Subscription,
    event: SubscriptionEvent,
) -> Result<Stored<Subscription>> {
    next.status = event.next(seen.status)?;
    let action = event.transition().action;
    replace(cx, scope, uow, book, seen, next, action).await
}

/// Removes a subscription that was not kept, and takes the tier from its platform.
pub(super) async fn discard(
    cx: &Context,
    scope: &impl Covers<Unowned>,
    uow: &mut dyn UnitOfWork,
    book: &CustomerBook,
    seen: &Stored<Subscription>,
) -> Result<()> {
    let cx = &cx.without_conditions();
    audited::remove(cx, scope, uow, seen, "subscription.discarded").await?;
    let mut gone = seen.edit();
    gone.status = SubscriptionStatus::Canceled;
    follow(cx, scope, uow, book, &gone).await?;
    usage_period::forget(uow, &gone).await
}

/// Makes the platform's record follow its subscription.
async fn follow(
    cx: &Context,
    scope: &impl Covers<Unowned>,
    uow: &mut dyn UnitOfWork,
    book: &CustomerBook,
    subscription: &Subscription,
) -> Result<()> {
    let Some(platform) = &subscription.platform_id else {
        return Ok(());
    };
    usage_period::follow(uow, subscription, book.now).await?;
    let tier = match subscription.status.grants_tier() {
        true => subscription.tier,
        false => PlanTier::Free,
    };
    let is_trial = subscription.status == SubscriptionStatus::Trialing;
    let billed = BilledPlatform {
        tier: tier.of_platform(),
        trial_ends_at: subscription.trial_ends_at.filter(|_| is_trial),
        payment_customer_id: book.customer.provider_id.clone(),
    };
    follow_subscription(cx, scope, uow, platform, billed).await
}

/// Returns the subscription with this id, without a check of permissions. Returns `None` if it was not kept.
pub(super) async fn find(
    uow: &mut dyn UnitOfWork,
    id: &SubscriptionId,
) -> Result<Option<Stored<Subscription>>> {
    unowned_records::<Subscription>(uow).find(id).await
}

/// Returns the open invoices of a customer, newest first.
pub(super) async fn open_invoices(
    uow: &mut dyn UnitOfWork,
    customer: &CustomerId,
) -> Result<Vec<Stored<Invoice>>> {
    let open = InvoiceQuery::Of {
        customer_id: customer.clone(),
        status: Some(InvoiceStatus::Open),
    };
    unowned_records::<Invoice>(uow).list(&open, MAX_OPEN).await
}

/// Returns the invoices of a customer that are not paid: open and written-off ones, newest first.
pub(super) async fn owed_invoices(
    uow: &mut dyn UnitOfWork,
    customer: &CustomerId,
) -> Result<Vec<Stored<Invoice>>> {
    let mut owed = open_invoices(uow, customer).await?;
    let written_off = InvoiceQuery::Of {
        customer_id: customer.clone(),
        status: Some(InvoiceStatus::Uncollectible),
    };
    let invoices = unowned_records::<Invoice>(uow);
    owed.extend(invoices.list(&written_off, MAX_OPEN).await?);
    Ok(owed)
}

/// Returns the open invoices of a subscription, newest first.
pub(super) async fn open_invoices_of(
    uow: &mut dyn UnitOfWork,
    subscription: &SubscriptionId,
) -> Result<Vec<Stored<Invoice>>> {
    let open = InvoiceQuery::OpenOf(subscription.clone());
    unowned_records::<Invoice>(uow).list(&open, MAX_OPEN).await
}
