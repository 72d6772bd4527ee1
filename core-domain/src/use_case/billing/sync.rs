//! Applies the state of objects at the payment provider (contract: "Webhook" and "Reconcile"). An invoice that was paid there
//! is paid here. Every other difference is recorded and never resolved silently.

use super::payment_method::{follow_default, load, store_default};
use super::provider::ChargeFailure;
use super::{Billing, charge, invoice_state};
use crate::access::{SystemScope, unowned_records};
use crate::billing::{Invoice, InvoiceStatus, PaymentAttempt, PaymentAttemptQuery};
use crate::kernel::{Context, CustomerId, Error, InvoiceId, PaymentAttemptId, Result, Stored};
use crate::port::{Mode, ProviderInvoice, Store, UnitOfWork, transact};

/// Applies the state of an invoice at the provider, by its id there. Does nothing if it is not an invoice of the suite.
pub(super) async fn sync_invoice(
    cx: &Context,
    store: &dyn Store,
    billing: &Billing,
    provider_id: &str,
) -> Result<(), ChargeFailure> {
    let known = billing.payments.invoice(provider_id).await;
    let Some(known) = known.map_err(ChargeFailure::Provider)? else {
        return Ok(());
    };
    let known = &known;
    let Some(id) = &known.invoice_id else {
        return Ok(());
    };
    if let Some(open) = open_attempt(store, id).await? {
        charge::try_run(cx, store, billing, &open).await?;
    }
    let applied = transact(store, |uow, _| {
        Box::pin(async move { apply(cx, uow, billing, id, known).await })
    });
    Ok(applied.await?)
}

async fn open_attempt(store: &dyn Store, invoice: &InvoiceId) -> Result<Option<PaymentAttemptId>> {
    let open = PaymentAttemptQuery::OpenOf(invoice.clone());
    let mut uow = store.begin(Mode::Read).await?;
    let open = unowned_records::<PaymentAttempt>(uow.as_mut())
        .first(&open)
        .await;
    uow.rollback().await;
    Ok(open?.map(|attempt| attempt.id.clone()))
}

/// Applies the status of an invoice at the provider. A payment of another amount is a contradiction.
async fn apply(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    invoice: &InvoiceId,
    at_provider: &ProviderInvoice,
) -> Result<()> {
    let Some(seen) = unowned_records::<Invoice>(uow).find(invoice).await? else {
        return Ok(());
    };
    let mut seen: Stored<Invoice> = seen;
    let is_unpaid = matches!(
        seen.status,
        InvoiceStatus::Open | InvoiceStatus::Uncollectible
    );
    if is_unpaid && charge::is_paid(&seen, at_provider) {
        charge::record_payment_at_provider(cx, uow, billing, &seen).await?;
        seen = invoice_state::load(uow, invoice).await?;
    }
    let scope = &SystemScope::new();
    let contradiction = contradiction_of(&seen, at_provider.status);
    invoice_state::record_contradiction(cx, scope, uow, &seen, contradiction).await
}

/// Returns the status at the provider if it contradicts that of the invoice. An invoice that is written off here stays
/// open at the provider, so that it can be paid.
fn contradiction_of(invoice: &Invoice, at_provider: InvoiceStatus) -> Option<InvoiceStatus> {
    use InvoiceStatus::{Draft, Open, Paid, Uncollectible, Void};
    let agrees = match invoice.status {
        Paid => at_provider == Paid,
        Void => at_provider == Void || (invoice.closing_since.is_some() && at_provider != Paid),
        Draft | Open | Uncollectible => matches!(at_provider, Draft | Open | Uncollectible),
    };
    (!agrees).then_some(at_provider)
}

/// Makes the default payment method of a customer follow the provider: the method that the customer has chosen there, or, if
/// the default is no longer attached, the newest method. A new default pays the open invoices at once.
pub(super) async fn sync_methods(
    cx: &Context,
    store: &dyn Store,
    billing: &Billing,
    customer: &CustomerId,
) -> Result<(), ChargeFailure> {
    let (known, _) = match load(store, customer).await {
        Err(Error::NotFound(_)) => return Ok(()),
        known => known?,
    };
    let Some(provider_id) = &known.provider_id else {
        return Ok(());
    };
    let payments = billing.payments.as_ref();
    let methods = payments.methods(provider_id).await;
    let methods = methods.map_err(ChargeFailure::Provider)?;
    let chosen = payments.default_method(provider_id).await;
    let chosen = chosen.map_err(ChargeFailure::Provider)?;
    let own = known.default_payment_method_id.clone();
    let mut candidates = [chosen, own].into_iter().flatten();
    let is_attached = |id: &String| methods.iter().any(|method| method.id == *id);
    let default = candidates
        .find(is_attached)
        .or_else(|| methods.first().map(|method| method.id.clone()));
    let chosen = methods
        .iter()
        .find(|method| default.as_ref() == Some(&method.id));
    let card = chosen.map(|method| &method.card);
    let chosen = chosen.map(|method| (method.id.as_str(), &method.card));
    if default != known.default_payment_method_id {
        follow_default(cx, store, billing, &known, chosen).await?;
    } else if card != known.default_card.as_ref() {
        // The issuer has renewed the card.
        store_default(cx, store, billing, customer, chosen).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_status_does_not_contradict_itself(mut invoice: Invoice, status: InvoiceStatus) {
            invoice.status = status;
            prop_assert_eq!(contradiction_of(&invoice, status), None);
        }

        #[test]
        fn only_one_side_being_paid_or_void_is_a_contradiction(
            mut invoice: Invoice,
            at_provider: InvoiceStatus,
        ) {
            invoice.closing_since = None;
            let has_ended = |status| matches!(status, InvoiceStatus::Paid | InvoiceStatus::Void);
            let differs = invoice.status != at_provider
                && (has_ended(invoice.status) || has_ended(at_provider));
            prop_assert_eq!(contradiction_of(&invoice, at_provider).is_some(), differs);
        }
    }
}
