//! The daily comparison of invoices with the payment provider (contract: "Reconcile"). It finds differences about which no
//! event was received.

use std::time::Duration;

use super::provider::ChargeFailure;
use super::provider_run::ProviderRun;
use super::{Billing, feed_position, sync};
use crate::access::{Batches, unowned_records};
use crate::billing::{FeedCursor, Invoice, InvoiceQuery, PaymentProvider};
use crate::kernel::{Code, Context, Result, Timestamp};
use crate::port::{Mode, Store};

/// How old an invoice is that is still compared.
const MAX_AGE: Duration = Duration::from_secs(35 * 24 * 60 * 60);

/// The length of a day in seconds.
const DAY_SECONDS: i64 = 24 * 60 * 60;

/// Compares the invoices of the last 35 days with the provider, once a day. An invoice that was paid there is paid here, and
/// every other difference is recorded. Compares none if the comparison of the day was made. Call it every few minutes; a
/// comparison that was interrupted by an outage begins again. The embedded provider needs none.
///
/// # Errors
/// `PAYMENT_PROVIDER_UNAVAILABLE` if the provider cannot be reached.
pub async fn compare_invoices(
    cx: &Context,
    store: &dyn Store,
    billing: &Billing,
) -> Result<ProviderRun> {
    if billing.payments.provider() == PaymentProvider::Ledger {
        return Ok(ProviderRun::default());
    }
    let mut uow = store.begin(Mode::Read).await?;
    let now = uow.now().await;
    uow.rollback().await;
    let now = now?;
    let today = now.seconds() / DAY_SECONDS;
    let last = feed_position::position(store, FeedCursor::COMPARED).await?;
    if last.is_some_and(|last| last >= today) {
        return Ok(ProviderRun::default());
    }
    let compared = compare_since(cx, store, billing, now.minus(MAX_AGE)).await?;
    feed_position::advance(store, FeedCursor::COMPARED, today).await?;
    Ok(compared)
}

async fn compare_since(
    cx: &Context,
    store: &dyn Store,
    billing: &Billing,
    since: Timestamp,
) -> Result<ProviderRun> {
    let mut batches = Batches::<Invoice>::of(InvoiceQuery::PushedSince(since));
    let mut run = ProviderRun::default();
    loop {
        let mut uow = store.begin(Mode::Read).await?;
        let batch = batches.next(unowned_records(uow.as_mut())).await;
        uow.rollback().await;
        let Some(batch) = batch? else {
            return Ok(run);
        };
        for invoice in &batch {
            match compare(cx, store, billing, invoice).await {
                Err(ChargeFailure::Provider(error)) if !error.concerns_all() => {
                    run.fail(invoice.id.as_str(), &error);
                }
                compared => {
                    compared?;
                    run.done += 1;
                }
            }
        }
    }
}

/// Compares one invoice. One whose charge is running is left to that charge.
async fn compare(
    cx: &Context,
    store: &dyn Store,
    billing: &Billing,
    invoice: &Invoice,
) -> Result<(), ChargeFailure> {
    let Some(provider_id) = &invoice.provider_id else {
        return Ok(());
    };
    match sync::sync_invoice(cx, store, billing, provider_id).await {
        Err(ChargeFailure::Store(error)) if error.code() == Code::OperationInProgress => Ok(()),
        Err(ChargeFailure::Unknown) => Ok(()),
        compared => compared,
    }
}
