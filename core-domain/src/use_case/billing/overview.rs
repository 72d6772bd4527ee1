//! The numbers of the whole book, for operators.

use std::time::Duration;

use super::Billing;
use crate::access::{OperatorScope, unowned_records};
use crate::billing::{
    CreditGrant, CreditGrantQuery, Customer, CustomerQuery, Invoice, InvoiceQuery, InvoiceSum,
    JournalEntry, JournalEntryQuery, Money, Overview, PaymentAttempt, PaymentAttemptQuery,
    ReceivedEvent, ReceivedEventQuery, Subscription, SubscriptionGroup, SubscriptionQuery,
};
use crate::kernel::{Record, Result, Timestamp, Unowned};
use crate::port::{Persisted, UnitOfWork};

/// The time that `revenue30d` is about.
const REVENUE_TIME: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The time after which an event of the provider that is not applied has failed.
const EVENT_TIMEOUT: Duration = Duration::from_secs(60 * 60);

/// Returns the numbers of the whole book. The store counts and sums, so the number of statements is constant.
///
/// # Errors
/// `INTERNAL_ERROR` if a sum is too large.
pub async fn overview(
    _: &OperatorScope,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
) -> Result<Overview> {
    let now = billing.now(uow).await?;
    let mut overview = Overview::empty(now, billing.currency());
    overview.customers = unowned_records::<Customer>(uow)
        .count(&CustomerQuery::All)
        .await?;
    add_subscriptions(uow, &mut overview).await?;
    add_open_invoices(uow, &mut overview).await?;
    overview.revenue30d = revenue(uow, billing, now).await?;
    overview.credits_outstanding = credits(uow, billing).await?;
    overview.attempts_unknown = unowned_records::<PaymentAttempt>(uow)
        .count(&PaymentAttemptQuery::Unknown)
        .await?;
    overview.reconcile_differences = unowned_records::<Invoice>(uow)
        .count(&InvoiceQuery::Contradicted)
        .await?;
    let last = unowned_records::<ReceivedEvent>(uow)
        .first(&ReceivedEventQuery::Latest)
        .await?;
    overview.webhooks.last_event_at = last.map(|event| event.received_at);
    let failed = ReceivedEventQuery::UnappliedSince(uow.now().await?.minus(EVENT_TIMEOUT));
    overview.webhooks.failed = unowned_records::<ReceivedEvent>(uow).count(&failed).await?;
    Ok(overview)
}

/// Adds the subscriptions. Few of them differ in their price, so the groups are few.
async fn add_subscriptions(uow: &mut dyn UnitOfWork, overview: &mut Overview) -> Result<()> {
    let by = ["status", "tier", "interval", "amount"];
    let groups = unowned_records::<Subscription>(uow)
        .sum_by(&SubscriptionQuery::All, "amount", &by)
        .await?;
    for group in groups {
        overview.add_subscriptions(SubscriptionGroup {
            status: group.text(0)?,
            tier: group.text(1)?,
            interval: group.text(2)?,
            amount: group.int(3)?,
            count: group.count,
        })?;
    }
    Ok(())
}

async fn add_open_invoices(uow: &mut dyn UnitOfWork, overview: &mut Overview) -> Result<()> {
    let groups = unowned_records::<Invoice>(uow)
        .sum_by(&InvoiceQuery::Open, "amount_remaining", &["attempt_count"])
        .await?;
    for group in groups {
        let invoices = InvoiceSum {
            count: group.count,
            amount: group.sum,
        };
        overview.add_open_invoices(group.int(0)?, invoices);
    }
    Ok(())
}

/// Returns the revenue of the last 30 days in minor units.
async fn revenue(uow: &mut dyn UnitOfWork, billing: &Billing, now: Timestamp) -> Result<i64> {
    let of_time = JournalEntryQuery::RevenueSince(now.minus(REVENUE_TIME));
    sum::<JournalEntry>(uow, billing, &of_time, "revenue").await
}

/// Returns the remaining amount of all credits in minor units.
async fn credits(uow: &mut dyn UnitOfWork, billing: &Billing) -> Result<i64> {
    sum::<CreditGrant>(uow, billing, &CreditGrantQuery::Active, "remaining").await
}

/// Returns the sum of an amount over the records of a query, in minor units.
async fn sum<R>(
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    query: &R::Query,
    amount: &'static str,
) -> Result<i64>
where
    R: Persisted + Record<Owner = Unowned>,
{
    let groups = unowned_records::<R>(uow).sum_by(query, amount, &[]).await?;
    let minor = groups.iter().map(|group| i128::from(group.sum)).sum();
    Ok(Money::new(minor, billing.currency())?.minor())
}
