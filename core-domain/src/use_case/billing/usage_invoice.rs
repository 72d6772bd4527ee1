//! Invoices for metered usage: 24 hours after a usage period has ended, it is priced and invoiced (contract: "Usage").

use super::Billing;
use super::book::CustomerBook;
use super::invoice_state::{self, Collection, NewInvoice};
use super::subscription_state;
use super::usage_period::{self, mark_invoiced, pending_lines};
use crate::access::{Batches, SystemScope, unowned_records};
use crate::billing::usage::{UsagePeriod, UsagePeriodQuery, UsagePeriodStatus};
use crate::billing::{BillingReason, Period, Subscription, SubscriptionStatus};
use crate::kernel::{Context, Result, Stored, Timestamp, UsagePeriodId};
use crate::port::{Mode, Store, UnitOfWork, transact};

/// Ends and closes the usage periods of no customer whose time has come. Returns their number. Those of customers are due
/// changes of the customer; see [`advance_job`](super::advance_job).
///
/// # Errors
/// Only those of the store.
pub async fn close_usage(cx: &Context, store: &dyn Store, billing: &Billing) -> Result<usize> {
    let mut uow = store.begin(Mode::Read).await?;
    let by = billing.now(uow.as_mut()).await;
    uow.rollback().await;
    let by = by?;
    let mut batches = Batches::<UsagePeriod>::of(UsagePeriodQuery::Due { of: None, by });
    let mut passed = 0;
    loop {
        let mut uow = store.begin(Mode::Read).await?;
        let batch = batches.next(unowned_records(uow.as_mut())).await;
        uow.rollback().await;
        let Some(batch) = batch? else {
            return Ok(passed);
        };
        let of_no_customer = batch.iter().filter(|due| due.customer_id.is_none());
        for period in of_no_customer {
            while let Some(at) = due_at(store, &period.id, by).await? {
                transact(store, |uow, _| {
                    Box::pin(async move { pass(cx, uow, billing, &period.id, at, None).await })
                })
                .await?;
                passed += 1;
            }
        }
    }
}

/// Returns when time changes a period next, if that is by an instant.
async fn due_at(
    store: &dyn Store,
    period: &UsagePeriodId,
    by: Timestamp,
) -> Result<Option<Timestamp>> {
    let mut uow = store.begin(Mode::Read).await?;
    let period = unowned_records::<UsagePeriod>(uow.as_mut())
        .find(period)
        .await;
    uow.rollback().await;
    let due_at = period?.and_then(|period| period.due_at);
    Ok(due_at.filter(|at| *at <= by))
}

/// Makes the change of a period that is due at an instant: an open one ends, and one that collects events is priced. Its
/// usage is invoiced to the customer of the book, if there is one. Does nothing if the change was made.
pub(super) async fn pass(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    period: &UsagePeriodId,
    at: Timestamp,
    book: Option<CustomerBook>,
) -> Result<()> {
    let seen = unowned_records::<UsagePeriod>(uow).find(period).await?;
    let Some(seen) = seen.filter(|seen| seen.due_at == Some(at)) else {
        return Ok(());
    };
    match seen.status {
        UsagePeriodStatus::Open => usage_period::end(uow, &seen).await,
        UsagePeriodStatus::Collecting => close(cx, uow, billing, &seen, book).await,
        UsagePeriodStatus::Closed => Ok(()),
    }
}

/// Prices a period and invoices it.
async fn close(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    seen: &Stored<UsagePeriod>,
    book: Option<CustomerBook>,
) -> Result<()> {
    let closed = usage_period::close(uow, billing, seen).await?;
    let subscription = match &closed.subscription_id {
        Some(id) => subscription_state::find(uow, id).await?,
        None => None,
    };
    let Some((mut book, subscription)) = book.zip(subscription) else {
        return Ok(());
    };
    invoice(cx, uow, billing, &mut book, &subscription).await?;
    book.store(uow).await?;
    Ok(())
}

/// Returns whether the closed usage of a subscription is not invoiced now.
pub(super) fn waits(subscription: &Subscription) -> bool {
    matches!(
        subscription.status,
        SubscriptionStatus::Unpaid | SubscriptionStatus::Paused
    )
}

/// Invoices the closed usage of a subscription. Usage that closes while the subscription is unpaid or paused waits until
/// it is active again, or has ended.
pub(super) async fn invoice(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    book: &mut CustomerBook,
    subscription: &Subscription,
) -> Result<()> {
    if waits(subscription) {
        return Ok(());
    }
    let pending = pending_lines(cx, uow, billing, &subscription.id, book).await?;
    let Some(period) = span(&pending.lines) else {
        return Ok(());
    };
    let new = NewInvoice {
        subscription: Some(subscription),
        reason: BillingReason::Usage,
        period,
        lines: pending.lines.clone(),
        collection: Collection::Scheduled,
    };
    let scope = &SystemScope::new();
    let invoice = invoice_state::finalize(cx, scope, uow, billing, book, new).await?;
    mark_invoiced(uow, pending, &invoice.id).await
}

/// Returns the span of time that lines are for. Returns `None` if there are none.
pub(super) fn span(lines: &[crate::billing::InvoiceLine]) -> Option<Period> {
    let start: Timestamp = lines.iter().map(|line| line.period_start).min()?;
    let end = lines.iter().map(|line| line.period_end).max()?;
    Period::new(start, end)
}
