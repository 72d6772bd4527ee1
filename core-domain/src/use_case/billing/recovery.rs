//! Charges whose process has died, and changes that were not paid in time.

use std::time::Duration;

use super::charge;
use super::subscription_state::{self, open_invoices_of};
use super::{Billing, book::CustomerBook, invoice_state};
use crate::access::{SystemScope, unowned_records};
use crate::billing::{
    BillingOperation, BillingOperationQuery, PaymentAttempt, PaymentAttemptQuery, Subscription,
    SubscriptionEvent, SubscriptionQuery, SubscriptionStatus, TIME_TO_PAY,
};
use crate::kernel::{Context, Result, Stored};
use crate::port::{Mode, Store, transact};

/// The time after which the process that runs an attempt is taken for dead. It is longer than any call of a provider.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(60);

/// The most records of a kind that one run looks at.
const MAX_RECORDS: u32 = 100;

/// Finds out the outcome of charges that were interrupted, undoes changes whose invoice was not paid within 23 hours, and
/// ends subscriptions whose first invoice was not. Returns the number of records that were settled. Call it every few
/// minutes; a charge that fails is tried again in the next run.
///
/// # Errors
/// Only those of the store.
pub async fn recover(cx: &Context, store: &dyn Store, billing: &Billing) -> Result<usize> {
    let attempts = run_attempts(cx, store, billing).await?;
    let operations = undo_operations(cx, store, billing).await?;
    let subscriptions = expire_subscriptions(cx, store).await?;
    Ok(attempts + operations + subscriptions)
}

/// Runs attempts whose outcome has been open for too long.
async fn run_attempts(cx: &Context, store: &dyn Store, billing: &Billing) -> Result<usize> {
    let mut uow = store.begin(Mode::Read).await?;
    let before = uow.now().await?.minus(ATTEMPT_TIMEOUT);
    let open = PaymentAttemptQuery::OpenSince(before);
    let open = unowned_records::<PaymentAttempt>(uow.as_mut())
        .list(&open, MAX_RECORDS)
        .await;
    uow.rollback().await;
    let mut settled = 0;
    for attempt in open? {
        let outcome = charge::run(cx, store, billing, &attempt.id).await;
        settled += usize::from(outcome.is_ok());
    }
    Ok(settled)
}

/// Undoes the changes that wait for a charge and have expired.
async fn undo_operations(cx: &Context, store: &dyn Store, billing: &Billing) -> Result<usize> {
    let mut uow = store.begin(Mode::Read).await?;
    let expired = BillingOperationQuery::ExpiredAt(uow.now().await?);
    let operations = unowned_records::<BillingOperation>(uow.as_mut());
    let expired = operations.list(&expired, MAX_RECORDS).await;
    uow.rollback().await;
    let expired = expired?;
    for operation in &expired {
        charge::discard(cx, store, billing, &operation.invoice_id).await?;
    }
    Ok(expired.len())
}

/// Ends the subscriptions whose first invoice was not paid in time.
async fn expire_subscriptions(cx: &Context, store: &dyn Store) -> Result<usize> {
    let mut uow = store.begin(Mode::Read).await?;
    let before = uow.now().await?.minus(TIME_TO_PAY);
    let incomplete = SubscriptionQuery::IncompleteSince(before);
    let subscriptions = unowned_records::<Subscription>(uow.as_mut());
    let found = subscriptions.list(&incomplete, MAX_RECORDS).await;
    uow.rollback().await;
    let found = found?;
    for subscription in &found {
        expire(cx, store, subscription).await?;
    }
    Ok(found.len())
}

async fn expire(cx: &Context, store: &dyn Store, subscription: &Subscription) -> Result<()> {
    transact(store, |uow, _| {
        Box::pin(async move {
            let seen = subscription_state::find(uow, &subscription.id).await?;
            let is_incomplete =
                |seen: &Stored<Subscription>| seen.status == SubscriptionStatus::Incomplete;
            let Some(seen) = seen.filter(is_incomplete) else {
                return Ok(());
            };
            let scope = &SystemScope::new();
            let mut book = CustomerBook::open(uow, &seen.customer_id).await?;
            for invoice in open_invoices_of(uow, &seen.id).await? {
                if invoice_state::has_open_attempt(uow, &invoice.id).await? {
                    return Ok(());
                }
                invoice_state::void(cx, scope, uow, &mut book, &invoice).await?;
            }
            let mut next = seen.edit();
            next.end(None, uow.now().await?);
            let event = SubscriptionEvent::Expire;
            subscription_state::apply(cx, scope, uow, &book, &seen, next, event).await?;
            book.store(uow).await?;
            Ok(())
        })
    })
    .await
}
