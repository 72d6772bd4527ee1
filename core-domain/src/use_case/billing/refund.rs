//! Refunds and lost disputes at the payment provider (contract: "Webhook"). They are posted to the journal, and change no
//! invoice: an invoice that was paid stays paid.

use serde_json::json;

use super::Billing;
use super::book::{CustomerBook, entries_about};
use super::provider::ChargeFailure;
use crate::access::{AuditEvent, audited, unowned_records};
use crate::billing::{Currency, Customer, CustomerQuery, Entry, Money};
use crate::kernel::{Context, CustomerId, Error, Result};
use crate::port::{Mode, Store, transact};

/// The action of the audit event of a refund.
const REFUNDED: &str = "payment.refunded";

/// The action of the audit event of a lost dispute.
const DISPUTE_LOST: &str = "payment.dispute_lost";

/// Posts the refunds of a charge, or the refund, with this id at the provider. Each is posted once. A refund that is not
/// complete yet is posted when it is.
pub(super) async fn post_refunds(
    cx: &Context,
    store: &dyn Store,
    billing: &Billing,
    customer: &CustomerId,
    provider_id: &str,
) -> Result<(), ChargeFailure> {
    let refunds = billing.payments.refunds(provider_id).await;
    for refund in &refunds.map_err(ChargeFailure::Provider)? {
        if !refund.is_complete {
            continue;
        }
        let loss = Loss {
            id: &refund.id,
            amount: refund.amount,
            currency: refund.currency,
            action: REFUNDED,
        };
        post(cx, store, billing, customer, &loss).await?;
    }
    Ok(())
}

/// Posts the dispute that an event is about, if it is lost. It is posted once. Does nothing if its customer is unknown.
pub(super) async fn post_lost_dispute(
    cx: &Context,
    store: &dyn Store,
    billing: &Billing,
    event: &str,
) -> Result<(), ChargeFailure> {
    let dispute = billing.payments.lost_dispute(event).await;
    let Some(dispute) = dispute.map_err(ChargeFailure::Provider)? else {
        return Ok(());
    };
    let mut uow = store.begin(Mode::Read).await.map_err(Error::from)?;
    let with_id = CustomerQuery::WithProviderId(dispute.customer);
    let customer = unowned_records::<Customer>(uow.as_mut())
        .first(&with_id)
        .await;
    uow.rollback().await;
    let Some(customer) = customer? else {
        return Ok(());
    };
    let loss = Loss {
        id: &dispute.id,
        amount: dispute.amount,
        currency: dispute.currency,
        action: DISPUTE_LOST,
    };
    Ok(post(cx, store, billing, &customer.id, &loss).await?)
}

/// A payment, or a part of it, that was given back at the provider.
struct Loss<'a> {
    /// The id of the refund or the dispute.
    id: &'a str,
    amount: i64,
    currency: Currency,
    /// The action of the audit event.
    action: &'static str,
}

async fn post(
    cx: &Context,
    store: &dyn Store,
    billing: &Billing,
    customer: &CustomerId,
    loss: &Loss<'_>,
) -> Result<()> {
    transact(store, |uow, _| {
        Box::pin(async move {
            let now = billing.now(uow).await?;
            let mut book = CustomerBook::open(uow, customer, now).await?;
            if !entries_about(uow, loss.id).await?.is_empty() {
                return Ok(());
            }
            let amount = Money::new(loss.amount.into(), loss.currency)?;
            book.post(cx, &Entry::payment_refunded(amount), loss.id);
            let event = AuditEvent {
                platform_id: book.customer.platform_id.clone(),
                action: loss.action,
                entity_id: loss.id.to_owned(),
                details: Some(json!({
                    "customerId": customer,
                    "amount": loss.amount,
                    "currency": loss.currency,
                })),
            };
            book.store(uow).await?;
            audited::record_event(cx, uow, event).await
        })
    })
    .await
}
