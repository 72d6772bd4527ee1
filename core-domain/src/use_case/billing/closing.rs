//! Void invoices that still have to be cancelled at the provider, so that they cannot be paid there.

use super::provider::ChargeFailure;
use super::{Billing, invoice_state};
use crate::access::{SystemScope, unaudited, unowned_records};
use crate::billing::{Invoice, InvoiceQuery, InvoiceStatus};
use crate::kernel::{Context, InvoiceId, Result};
use crate::port::{Close, Mode, OpKey, PaymentsError, Store, UnitOfWork, transact};

/// The most invoices that one run closes.
const MAX_INVOICES: u32 = 100;

/// Cancels the void invoices of all customers at the provider. Returns the number of cancelled invoices. Call it every few
/// minutes; an invoice that cannot be cancelled now is tried again in the next run.
///
/// # Errors
/// Only those of the store.
pub async fn close_void_invoices(
    cx: &Context,
    store: &dyn Store,
    billing: &Billing,
) -> Result<usize> {
    let mut uow = store.begin(Mode::Read).await?;
    let closing = unowned_records::<Invoice>(uow.as_mut())
        .list(&InvoiceQuery::Closing, MAX_INVOICES)
        .await;
    uow.rollback().await;
    let mut closed = 0;
    for invoice in closing? {
        match close_at_provider(cx, store, billing, &invoice).await {
            Ok(()) => closed += 1,
            Err(ChargeFailure::Store(error)) => return Err(error),
            Err(_) => {}
        }
    }
    Ok(closed)
}

/// Cancels a void invoice at the provider. Does nothing if it does not have to be cancelled. An invoice that was paid there
/// is a contradiction.
pub(super) async fn close_at_provider(
    cx: &Context,
    store: &dyn Store,
    billing: &Billing,
    invoice: &Invoice,
) -> Result<(), ChargeFailure> {
    let (Some(_), Some(provider_id)) = (invoice.closing_since, &invoice.provider_id) else {
        return Ok(());
    };
    let key = OpKey::new(invoice.id.as_str(), "void");
    let closed = billing.payments.close(&key, provider_id, Close::Void).await;
    let contradiction = match closed {
        Ok(()) => None,
        Err(PaymentsError::Invalid(_)) => {
            let known = billing.payments.invoice(provider_id).await;
            let known = known.map_err(ChargeFailure::Provider)?;
            let status = known.map(|known| known.status);
            status.filter(|status| *status != InvoiceStatus::Void)
        }
        Err(error) => return Err(ChargeFailure::Provider(error)),
    };
    let ended = transact(store, |uow, _| {
        Box::pin(async move { end(cx, uow, &invoice.id, contradiction).await })
    });
    Ok(ended.await?)
}

async fn end(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    invoice: &InvoiceId,
    contradiction: Option<InvoiceStatus>,
) -> Result<()> {
    let seen = invoice_state::load(uow, invoice).await?;
    if seen.closing_since.is_none() {
        return Ok(());
    }
    let mut next = seen.edit();
    next.closing_since = None;
    let seen = unaudited::replace(uow, &seen, next).await?;
    let scope = &SystemScope::new();
    invoice_state::record_contradiction(cx, scope, uow, &seen, contradiction).await
}
