//! Paused subscriptions, which begin a new period when the customer adds a payment method.

use super::book::CustomerBook;
use super::invoice_state::{self, Collection, NewInvoice};
use super::operation::{self, PaidPrice};
use super::period_invoice::period_invoice;
use super::{Billing, charge, plan, plan_migration, subscription_state};
use crate::access::{SystemScope, unowned_records};
use crate::billing::{
    OperationKind, Subscription, SubscriptionEvent, SubscriptionQuery, SubscriptionStatus,
};
use crate::kernel::{Context, CustomerId, InvoiceId, Result, Stored, SubscriptionId, Timestamp};
use crate::port::{Mode, Store, UnitOfWork, transact};

/// The most paused subscriptions of a customer that are resumed at once.
const MAX_PAUSED: u32 = 100;

/// Begins new periods of the paused subscriptions of a customer, and charges them to a payment method. A subscription
/// whose charge fails stays paused, and its invoice is cancelled.
///
/// # Errors
/// Only those of the store.
pub(super) async fn resume_paused(
    cx: &Context,
    store: &dyn Store,
    billing: &Billing,
    customer: &CustomerId,
    method: &str,
) -> Result<()> {
    let mut uow = store.begin(Mode::Read).await?;
    let paused = SubscriptionQuery::PausedOf(customer.clone());
    let subscriptions = unowned_records::<Subscription>(uow.as_mut());
    let paused = subscriptions.list(&paused, MAX_PAUSED).await;
    uow.rollback().await;
    for subscription in paused? {
        let id = &subscription.id;
        let invoice = transact(store, |uow, _| {
            Box::pin(async move { begin(cx, uow, billing, id).await })
        });
        let Some(invoice) = invoice.await? else {
            continue;
        };
        let charged = charge::charge(cx, store, billing, &invoice, method).await;
        if charged.is_err() {
            // Keeps the invoice if the outcome of the charge is unknown.
            charge::discard(cx, store, billing, &invoice).await?;
        }
    }
    Ok(())
}

/// Invoices a new period of a paused subscription. Returns the invoice to charge; `None` if nothing is due.
async fn begin(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    id: &SubscriptionId,
) -> Result<Option<InvoiceId>> {
    let is_paused = |seen: &Stored<Subscription>| seen.status == SubscriptionStatus::Paused;
    let seen = subscription_state::find(uow, id).await?.filter(is_paused);
    let Some(seen) = seen else {
        return Ok(None);
    };
    if operation::open_of(uow, id).await?.is_some() {
        return Ok(None);
    }
    let now = Timestamp::from_seconds(billing.now(uow).await?.seconds());
    let mut book = CustomerBook::open(uow, &seen.customer_id, now).await?;
    let mut waiting = seen.edit();
    plan_migration::apply_due(uow, billing, &mut waiting, now).await?;
    let mut next = waiting.clone();
    next.restart_period(now)?;
    let scope = &SystemScope::new();
    let new = NewInvoice {
        collection: Collection::Requested,
        ..period_invoice(cx, uow, billing, &next).await?
    };
    let invoice = invoice_state::finalize(cx, scope, uow, billing, &mut book, new).await?;
    next.latest_invoice_id = Some(invoice.id.clone());
    if invoice.amount_due == 0 {
        next.set_billed(next.amount, &invoice);
        let event = SubscriptionEvent::Pay;
        subscription_state::apply(cx, scope, uow, &book, &seen, next, event).await?;
        book.store(uow).await?;
        return Ok(None);
    }
    let terms = plan::version(uow, billing, waiting.tier, waiting.plan_version).await?;
    let price = PaidPrice {
        terms: &terms,
        interval: waiting.interval,
        quantity: waiting.quantity,
        billed: waiting.recurring()?.amount,
        at: now,
        restarts_period: true,
    };
    let kind = OperationKind::Resume;
    operation::begin(cx, uow, &seen, kind, &invoice.id, &price, now).await?;
    waiting.latest_invoice_id = Some(invoice.id.clone());
    let action = "subscription.change_requested";
    subscription_state::replace(cx, scope, uow, &book, &seen, waiting, action).await?;
    book.store(uow).await?;
    Ok(Some(invoice.id.clone()))
}
