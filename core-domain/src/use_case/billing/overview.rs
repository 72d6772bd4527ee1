//! The numbers of the whole book, for operators.

use std::time::Duration;

use super::Billing;
use crate::access::{Batches, OperatorScope, unowned_records};
use crate::billing::{
    Account, AttemptStatus, CreditGrant, CreditGrantQuery, Customer, CustomerQuery, Invoice,
    InvoiceQuery, JournalEntry, JournalEntryQuery, Money, Overview, PaymentAttempt,
    PaymentAttemptQuery, ReceivedEvent, ReceivedEventQuery, Subscription, SubscriptionQuery,
    SubscriptionStatus,
};
use crate::kernel::{Record, Result, Stored, Timestamp, Unowned};
use crate::port::{Persisted, UnitOfWork};

/// The time that `revenue30d` is about.
const REVENUE_TIME: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The time after which an event of the provider that is not applied has failed.
const EVENT_TIMEOUT: Duration = Duration::from_secs(60 * 60);

/// The most charges with an open outcome that are looked at.
const MAX_ATTEMPTS: u32 = 10_000;

/// Returns the numbers of the whole book. Reads every subscription that has not ended and every open invoice, in batches.
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
    count_subscriptions(uow, &mut overview).await?;
    for_each(uow, InvoiceQuery::Open, |invoice: &Invoice| {
        overview.add_open(invoice);
        Ok(())
    })
    .await?;
    overview.revenue30d = revenue(uow, billing, now).await?;
    overview.credits_outstanding = credits(uow, billing).await?;
    let (store_now, open) = (uow.now().await?, PaymentAttemptQuery::OpenSince);
    let open = unowned_records::<PaymentAttempt>(uow)
        .list(&open(store_now), MAX_ATTEMPTS)
        .await?;
    let is_unknown = |attempt: &&Stored<PaymentAttempt>| attempt.status == AttemptStatus::Unknown;
    overview.attempts_unknown = open.iter().filter(is_unknown).count() as u64;
    overview.reconcile_differences = unowned_records::<Invoice>(uow)
        .count(&InvoiceQuery::Contradicted)
        .await?;
    let last = unowned_records::<ReceivedEvent>(uow)
        .first(&ReceivedEventQuery::Latest)
        .await?;
    overview.webhooks.last_event_at = last.map(|event| event.received_at);
    let failed = ReceivedEventQuery::UnappliedSince(store_now.minus(EVENT_TIMEOUT));
    overview.webhooks.failed = unowned_records::<ReceivedEvent>(uow).count(&failed).await?;
    Ok(overview)
}

async fn count_subscriptions(uow: &mut dyn UnitOfWork, overview: &mut Overview) -> Result<()> {
    for status in SubscriptionStatus::ALL.iter().copied() {
        let with_status = SubscriptionQuery::WithStatus(status);
        let count = unowned_records::<Subscription>(uow)
            .count(&with_status)
            .await?;
        overview.subscriptions.insert(status, count);
        if status.is_live() {
            for_each(uow, with_status, |live: &Subscription| {
                Ok(overview.add_live(live)?)
            })
            .await?;
        }
    }
    Ok(())
}

/// Returns the revenue of the last 30 days in minor units. Credits of the account are revenue.
async fn revenue(uow: &mut dyn UnitOfWork, billing: &Billing, now: Timestamp) -> Result<i64> {
    let of_time = JournalEntryQuery::Between {
        from: now.minus(REVENUE_TIME),
        before: None,
    };
    let mut sum = 0_i128;
    for_each(uow, of_time, |entry: &JournalEntry| {
        let postings = entry.postings.iter();
        let of_revenue = postings.filter(|posting| posting.account == Account::Revenue);
        sum -= of_revenue
            .map(|posting| i128::from(posting.amount))
            .sum::<i128>();
        Ok(())
    })
    .await?;
    Ok(Money::new(sum, billing.currency())?.minor())
}

/// Returns what is left of all credits in minor units.
async fn credits(uow: &mut dyn UnitOfWork, billing: &Billing) -> Result<i64> {
    let mut sum = 0_i128;
    for_each(uow, CreditGrantQuery::Active, |credit: &CreditGrant| {
        sum += i128::from(credit.remaining);
        Ok(())
    })
    .await?;
    Ok(Money::new(sum, billing.currency())?.minor())
}

/// Calls a function for each record that matches a query, which are read in batches.
async fn for_each<R>(
    uow: &mut dyn UnitOfWork,
    query: R::Query,
    mut call: impl FnMut(&R) -> Result<()> + Send,
) -> Result<()>
where
    R: Persisted + Record<Owner = Unowned>,
{
    let mut batches = Batches::<R>::of(query);
    while let Some(batch) = batches.next(unowned_records(uow)).await? {
        for record in &batch {
            call(record)?;
        }
    }
    Ok(())
}
