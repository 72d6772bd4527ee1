//! Refunds that were made at the payment provider (contract: "Webhook"). They are posted to the journal, and change no invoice:
//! an invoice that was paid stays paid.

use serde_json::json;

use super::Billing;
use super::book::{CustomerBook, entries_about};
use super::provider::ChargeFailure;
use crate::access::{AuditEvent, audited};
use crate::billing::{Entry, Money};
use crate::kernel::{Context, CustomerId, Result};
use crate::port::{ProviderRefund, Store, UnitOfWork, transact};

/// The action of the audit event of a refund.
const REFUNDED: &str = "payment.refunded";

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
        let posted = transact(store, |uow, _| {
            Box::pin(async move { post(cx, uow, billing, customer, refund).await })
        });
        posted.await?;
    }
    Ok(())
}

async fn post(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    customer: &CustomerId,
    refund: &ProviderRefund,
) -> Result<()> {
    if !entries_about(uow, &refund.id).await?.is_empty() {
        return Ok(());
    }
    let amount = Money::new(refund.amount.into(), refund.currency)?;
    let now = billing.now(uow).await?;
    let mut book = CustomerBook::open(uow, customer, now).await?;
    book.post(cx, &Entry::payment_refunded(amount), &refund.id);
    let event = AuditEvent {
        platform_id: book.customer.platform_id.clone(),
        action: REFUNDED,
        entity_id: refund.id.clone(),
        details: Some(json!({
            "customerId": customer,
            "amount": refund.amount,
            "currency": refund.currency,
        })),
    };
    book.store(uow).await?;
    audited::record_event(cx, uow, event).await
}
