//! Invoices for metered usage: 24 hours after a usage period has ended, it is priced and invoiced (contract: "Usage").

use super::Billing;
use super::book::CustomerBook;
use super::invoice_state::{self, Collection, NewInvoice};
use super::subscription_state;
use super::usage_period::{self, end_due, mark_invoiced, pending_lines};
use crate::access::{SystemScope, unowned_records};
use crate::billing::usage::{UsagePeriod, UsagePeriodQuery, UsagePeriodStatus};
use crate::billing::{BillingReason, Period, Subscription, SubscriptionStatus};
use crate::kernel::{Context, Result, Stored, Timestamp};
use crate::port::{Mode, Store, UnitOfWork, transact};

/// The most periods that one unit of work looks at.
const MAX_PERIODS: u32 = 100;

/// Ends the usage periods that have passed, and invoices those whose 24 hours of collection have passed. Returns the number
/// of periods that were invoiced or closed.
///
/// # Errors
/// Only those of the store.
pub async fn close_usage(cx: &Context, store: &dyn Store, billing: &Billing) -> Result<usize> {
    end_periods(store, billing).await?;
    let mut closed = 0;
    loop {
        let mut uow = store.begin(Mode::Read).await?;
        let now = billing.now(uow.as_mut()).await?;
        let closing = UsagePeriodQuery::ClosingAt(now);
        let closing = unowned_records::<UsagePeriod>(uow.as_mut())
            .list(&closing, MAX_PERIODS)
            .await;
        uow.rollback().await;
        let closing = closing?;
        for period in &closing {
            transact(store, |uow, _| {
                Box::pin(async move { close(cx, uow, billing, period).await })
            })
            .await?;
        }
        closed += closing.len();
        if closing.is_empty() {
            return Ok(closed);
        }
    }
}

async fn end_periods(store: &dyn Store, billing: &Billing) -> Result<()> {
    loop {
        let ended = transact(store, |uow, _| {
            Box::pin(async move {
                let now = billing.now(uow).await?;
                end_due(uow, now, MAX_PERIODS).await
            })
        });
        if ended.await? == 0 {
            return Ok(());
        }
    }
}

/// Prices a period and invoices it. Does nothing if another node has done so.
async fn close(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    period: &UsagePeriod,
) -> Result<()> {
    let seen = unowned_records::<UsagePeriod>(uow).find(&period.id).await?;
    let is_collecting = |seen: &Stored<UsagePeriod>| seen.status == UsagePeriodStatus::Collecting;
    let Some(seen) = seen.filter(is_collecting) else {
        return Ok(());
    };
    let closed = usage_period::close(uow, billing, &seen).await?;
    let at = closed.closes_at;
    let subscription = match &closed.subscription_id {
        Some(id) => subscription_state::find(uow, id).await?,
        None => None,
    };
    let Some(subscription) = subscription else {
        return Ok(());
    };
    let mut book = CustomerBook::open(uow, &subscription.customer_id, at).await?;
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
