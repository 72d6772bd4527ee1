//! The boundaries of usage periods: they follow the subscription, end, and are priced 24 hours later (contract: "Usage").
//!
//! The periods follow every change of their subscription. Usage is invoiced in `usage_invoice`.

use std::collections::BTreeMap;

use super::Billing;
use super::book::CustomerBook;
use crate::access::{unaudited, unowned_records};
use crate::billing::usage::{
    PricedUsage, RenewingTerm, UsagePeriod, UsagePeriodEvent, UsagePeriodQuery, UsagePeriodStatus,
    UsageTerms, UsageTotal,
};
use crate::billing::{
    InvoiceLine, LineTax, LineType, Metric, Money, Period, Subscription, SubscriptionQuery, TaxRate,
};
use crate::kernel::{
    Context, Error, InvoiceId, InvoiceLineId, Result, Stored, SubscriptionId, Timestamp,
};
use crate::port::UnitOfWork;
use crate::use_case::shared::usage;

/// Maximum number of periods of a platform or a subscription that one call reads.
const MAX_PERIODS: u32 = 200;

/// Makes the usage periods of a platform follow a change of its subscription at an instant: the period that contains it gets its bounds
/// and its plan, and earlier ones end before it. Does nothing for a subscription of no platform.
///
/// # Errors
/// Only those of the store.
pub(super) async fn follow(
    uow: &mut dyn UnitOfWork,
    subscription: &Subscription,
    now: Timestamp,
) -> Result<()> {
    let Some(platform) = &subscription.platform_id else {
        return Ok(());
    };
    let now = Timestamp::from_seconds(now.seconds());
    let current = current_span(subscription, now);
    let from = match current {
        Some(period) => period.start(),
        None => subscription.ended_at.unwrap_or(now),
    };
    let from = Timestamp::from_seconds(from.seconds());
    let ending = UsagePeriodQuery::EndingAfter(platform.clone(), from);
    let stored = unowned_records::<UsagePeriod>(uow)
        .list(&ending, MAX_PERIODS)
        .await?;
    let mut end = current.map(Period::end);
    let mut existing = None;
    for period in stored {
        if period.period_start == from {
            existing = Some(period);
        } else if period.period_start < from {
            cut(uow, &period, from).await?;
        } else if let Some(end) = end.as_mut() {
            *end = period.period_start.min(*end);
        }
    }
    let Some((period, end)) = current.zip(end) else {
        return release(uow, existing, subscription).await;
    };
    let mut next = match &existing {
        Some(stored) => stored.edit(),
        None => usage::new_period(platform, period, subscription.currency)?,
    };
    next.end_at(end);
    next.set_subscription(Some(subscription));
    next.apply_terms(present_terms(subscription, now));
    store(uow, existing, next).await
}

/// Returns the usage period that contains the present or, of a subscription whose boundary is late, the last one of its
/// current period. Returns `None` if the subscription has ended.
fn current_span(subscription: &Subscription, now: Timestamp) -> Option<Period> {
    let term = RenewingTerm::of(subscription)?;
    let last = Timestamp::from_seconds(term.period.end().seconds().saturating_sub(1));
    term.usage_period_at(now.clamp(term.period.start(), last))
}

/// Returns the terms of a subscription. A plan applies from the instant to which its price was prorated.
fn present_terms(subscription: &Subscription, now: Timestamp) -> UsageTerms {
    let from = match subscription.status.grants_tier() {
        true => subscription.price_changed_at,
        false => now,
    };
    UsageTerms::of(subscription, from)
}

/// Ends a period at an instant within it.
async fn cut(uow: &mut dyn UnitOfWork, period: &Stored<UsagePeriod>, at: Timestamp) -> Result<()> {
    if period.status == UsagePeriodStatus::Closed {
        return Ok(());
    }
    let mut next = period.edit();
    next.end_at(at);
    unaudited::replace(uow, period, next).await.map(drop)
}

/// Removes an ended subscription from a period.
async fn release(
    uow: &mut dyn UnitOfWork,
    existing: Option<Stored<UsagePeriod>>,
    subscription: &Subscription,
) -> Result<()> {
    let of_ended =
        |period: &Stored<UsagePeriod>| period.subscription_id.as_ref() == Some(&subscription.id);
    let Some(seen) = existing.filter(of_ended) else {
        return Ok(());
    };
    let mut next = seen.edit();
    next.set_subscription(None);
    next.terms.clear();
    unaudited::replace(uow, &seen, next).await.map(drop)
}

/// Removes a subscription that is discarded from all its usage periods: nothing is owed for them.
///
/// # Errors
/// Only those of the store.
pub(super) async fn forget(uow: &mut dyn UnitOfWork, discarded: &Subscription) -> Result<()> {
    let Some(platform) = &discarded.platform_id else {
        return Ok(());
    };
    let since = UsagePeriodQuery::EndingAfter(platform.clone(), discarded.current_period_start);
    let stored = unowned_records::<UsagePeriod>(uow)
        .list(&since, MAX_PERIODS)
        .await?;
    for period in stored {
        release(uow, Some(period), discarded).await?;
    }
    Ok(())
}

async fn store(
    uow: &mut dyn UnitOfWork,
    existing: Option<Stored<UsagePeriod>>,
    next: UsagePeriod,
) -> Result<()> {
    match existing {
        Some(seen) if *seen == next => Ok(()),
        Some(seen) => unaudited::replace(uow, &seen, next).await.map(drop),
        None => unaudited::append(uow, next).await,
    }
}

/// Moves an open period that has ended to `collecting`. If the subscription goes on, as a yearly one does, the next period
/// begins with the same plan.
///
/// # Errors
/// `INVALID_STATE` if the period is not open.
pub(super) async fn end(uow: &mut dyn UnitOfWork, seen: &Stored<UsagePeriod>) -> Result<()> {
    let mut next = seen.edit();
    next.apply(UsagePeriodEvent::End)?;
    unaudited::replace(uow, seen, next).await?;
    begin_next(uow, seen).await
}

/// Stores the usage period after one that has ended, if it is in the same period of the subscription.
async fn begin_next(uow: &mut dyn UnitOfWork, ended: &UsagePeriod) -> Result<()> {
    let Some(subscription) = live_subscription(uow, ended).await? else {
        return Ok(());
    };
    let term = RenewingTerm::of(&subscription);
    let term = term.filter(|term| term.period.contains(ended.period_end));
    let Some(period) = term.and_then(|term| term.usage_period_at(ended.period_end)) else {
        return Ok(());
    };
    let mut next = usage::new_period(&ended.platform_id, period, subscription.currency)?;
    next.set_subscription(Some(&subscription));
    next.apply_terms(UsageTerms::of(&subscription, period.start()));
    unaudited::insert_or_lock(uow, vec![next]).await.map(drop)
}

async fn live_subscription(
    uow: &mut dyn UnitOfWork,
    period: &UsagePeriod,
) -> Result<Option<Stored<Subscription>>> {
    let live = SubscriptionQuery::LiveOfPlatform(period.platform_id.clone());
    let live = unowned_records::<Subscription>(uow).first(&live).await?;
    let is_same = |live: &Stored<Subscription>| Some(&live.id) == period.subscription_id.as_ref();
    Ok(live.filter(is_same))
}

/// Prices one period that collects events, and closes it. Events that arrive later are charged as adjustments. Use it
/// for a period that must be invoiced before its 24 hours have ended.
///
/// # Errors
/// `INVALID_STATE` if the period has not ended or is closed.
pub(super) async fn close(
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    seen: &Stored<UsagePeriod>,
) -> Result<Stored<UsagePeriod>> {
    // The lock makes concurrent events wait, so that they find the period closed.
    let locked = unaudited::insert_or_lock(uow, vec![seen.edit()]).await?;
    let locked = locked.into_iter().next().ok_or_else(missing)?;
    let mut next = locked.edit();
    next.apply(UsagePeriodEvent::Close)?;
    next.billed = usage_with_prices(uow, billing, &locked)
        .await?
        .iter()
        .map(PricedUsage::to_billed)
        .collect();
    next.is_invoice_due = next.is_billed() && next.billed.iter().any(|metric| metric.amount != 0);
    if !next.is_billed() {
        next.billed.iter_mut().for_each(|metric| metric.amount = 0);
    }
    let changes = vec![(locked, next)];
    let stored = unaudited::replace_locked(uow, changes).await?;
    stored.into_iter().next().ok_or_else(missing)
}

fn missing() -> Error {
    Error::Internal("a usage period is missing".to_owned())
}

/// Returns the usage of a period so far with its prices, whether it is charged or not.
pub(super) async fn usage_with_prices(
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    period: &UsagePeriod,
) -> Result<Vec<PricedUsage>> {
    let id = UsageTotal::id_of(&period.platform_id, period.period_start);
    let total = unowned_records::<UsageTotal>(uow).find(&id).await?;
    let sums = total.map(|total| total.sums.clone()).unwrap_or_default();
    let prices = usage::price_list(uow, &billing.plans, period).await?;
    Ok(prices.price(&sums)?)
}

/// The lines of an invoice for usage that is closed and not invoiced.
#[derive(Clone, Debug)]
pub(super) struct PendingUsage {
    /// A line for each metric of each period with an amount: `usage`, or `usage_adjustment` for late usage. Their amounts
    /// are never 0.
    pub(super) lines: Vec<InvoiceLine>,
    /// The periods of the lines, as they are after the invoice is made.
    changes: Vec<(Stored<UsagePeriod>, UsagePeriod)>,
}

/// Returns the lines for the closed usage of a subscription of the book's customer that is not invoiced, and for usage that
/// was reported after its period had been closed, oldest first. Changes nothing.
///
/// # Errors
/// `INTERNAL_ERROR` if the terms of a plan are missing or an amount is too large.
pub(super) async fn pending_lines(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    subscription: &SubscriptionId,
    book: &CustomerBook,
) -> Result<PendingUsage> {
    let (now, present_rate) = (book.now, billing.taxes.rate(&book.customer.party()));
    let mut periods = BTreeMap::new();
    for query in [
        UsagePeriodQuery::InvoiceDueOf(subscription.clone()),
        UsagePeriodQuery::LateOf(subscription.clone()),
    ] {
        let found = unowned_records::<UsagePeriod>(uow)
            .list(&query, MAX_PERIODS)
            .await?;
        periods.extend(
            found
                .into_iter()
                .map(|period| (period.period_start, period)),
        );
    }
    let mut pending = PendingUsage {
        lines: Vec::new(),
        changes: Vec::new(),
    };
    for seen in periods.into_values() {
        let mut next = seen.edit();
        let tax = *next.tax.get_or_insert(present_rate);
        let usage = usage_with_prices(uow, billing, &seen).await?;
        for usage in usage {
            if seen.is_invoice_due {
                let billed = seen
                    .billed
                    .iter()
                    .find(|billed| billed.metric == usage.price.metric);
                let amount = billed.map_or(0, |billed| billed.amount);
                let of_period = UsageLine {
                    kind: LineType::Usage,
                    amount: Money::new(amount.into(), seen.currency)?,
                    quantity: billed.map_or(0, |billed| billed.overage),
                    tax,
                };
                pending.lines.extend(of_period.line(cx, &seen, &usage, now));
            }
            if seen.has_late_usage && seen.is_billed() {
                let known = seen
                    .billed
                    .iter()
                    .find(|billed| billed.metric == usage.price.metric);
                let adjustment = UsageLine {
                    kind: LineType::UsageAdjustment,
                    amount: usage.adjustment(&seen.billed)?,
                    quantity: usage
                        .quantity
                        .abs_diff(known.map_or(0, |billed| billed.quantity)),
                    tax,
                };
                pending
                    .lines
                    .extend(adjustment.line(cx, &seen, &usage, now));
                next.set_billed(usage.to_billed());
            }
        }
        next.is_invoice_due = false;
        next.has_late_usage = false;
        pending.changes.push((seen, next));
    }
    Ok(pending)
}

/// The amount, the quantity and the tax of a line for usage.
struct UsageLine {
    kind: LineType,
    amount: Money,
    quantity: u64,
    tax: TaxRate,
}

impl UsageLine {
    /// Returns the line. Returns `None` if its amount is 0.
    fn line(
        self,
        cx: &Context,
        period: &UsagePeriod,
        usage: &PricedUsage,
        now: Timestamp,
    ) -> Option<InvoiceLine> {
        let metric = usage.price.metric;
        (self.amount.minor() != 0).then(|| InvoiceLine {
            id: InvoiceLineId::generate(now, cx.entropy.as_ref()),
            kind: self.kind,
            description: describe(self.kind, metric, usage.price.included),
            amount: self.amount.minor(),
            currency: period.currency,
            quantity: self.quantity,
            unit_amount_decimal: usage.price.unit_price.to_string(),
            tier: Some(period.last_terms().tier),
            metric: Some(metric),
            stack_id: None,
            period_start: period.period_start,
            period_end: period.period_end,
            proration: None,
            tax: LineTax {
                rate: self.tax,
                amount: 0,
            },
        })
    }
}

fn describe(kind: LineType, metric: Metric, included: u64) -> String {
    let unit = metric.unit();
    match kind {
        LineType::UsageAdjustment => format!("Late usage: {metric} ({unit})"),
        _ => format!("Usage: {metric} ({unit}) above the included {included}"),
    }
}

/// Records the invoice that contains the pending lines of a subscription. Call it in the unit that makes the invoice.
///
/// # Errors
/// `CONFLICT` if a period has changed since its lines were computed.
pub(super) async fn mark_invoiced(
    uow: &mut dyn UnitOfWork,
    pending: PendingUsage,
    invoice: &InvoiceId,
) -> Result<()> {
    for (seen, mut next) in pending.changes {
        next.invoice_id = next.invoice_id.or_else(|| Some(invoice.clone()));
        unaudited::replace(uow, &seen, next).await?;
    }
    Ok(())
}
