//! Paying an invoice on its page. The link is enough to pay; the page shows no card.

use super::charge::{self, Charge};
use super::sync::sync_invoice;
use super::{Billing, invoice_state, payment_method};
use crate::access::unowned_records;
use crate::billing::{
    AttemptStatus, Customer, Invoice, InvoiceStatus, PaymentAttempt, PaymentAttemptQuery,
    PaymentProvider,
};
use crate::kernel::{Code, Context, Error, InvoiceId, Record, Result, Stored};
use crate::port::{Close, Mode, OpKey, Store, UnitOfWork};

/// An invoice with what its page shows.
#[derive(Clone, Debug)]
pub struct PayableInvoice {
    /// The invoice with its lines.
    pub invoice: Stored<Invoice>,
    /// The customer that the invoice is for.
    pub customer: Stored<Customer>,
    /// Whether the last charge waits for the customer to confirm it.
    pub needs_confirmation: bool,
}

impl PayableInvoice {
    /// Returns whether the invoice can be paid now.
    #[must_use]
    pub fn is_payable(&self) -> bool {
        matches!(
            self.invoice.status,
            InvoiceStatus::Open | InvoiceStatus::Uncollectible
        )
    }
}

/// Returns the invoice of a page.
///
/// # Errors
/// `NOT_FOUND` if the token is not valid.
pub async fn find(store: &dyn Store, billing: &Billing, token: &str) -> Result<PayableInvoice> {
    let id = billing.pages.invoice_of(token);
    let id = id.ok_or(Error::NotFound(Invoice::KIND))?;
    let mut uow = store.begin(Mode::Read).await?;
    let found = load(uow.as_mut(), &id).await;
    uow.rollback().await;
    found
}

/// Returns the address of the provider's own page of an invoice. Returns `None` if the invoice cannot be paid or was never sent
/// to the provider, the provider has no such pages, or it cannot be reached: the invoice can be paid without that page as well.
pub async fn provider_page(billing: &Billing, payable: &PayableInvoice) -> Option<String> {
    let id = payable.invoice.provider_id.as_ref();
    let id = id.filter(|_| payable.is_payable())?;
    let invoice = billing.payments.invoice(id).await.ok().flatten()?;
    invoice.page_url.filter(|url| url.starts_with("https://"))
}

async fn load(uow: &mut dyn UnitOfWork, id: &InvoiceId) -> Result<PayableInvoice> {
    let invoice = invoice_state::load(uow, id).await?;
    let customer = unowned_records::<Customer>(uow)
        .get(&invoice.customer_id)
        .await?;
    let of_invoice = PaymentAttemptQuery::Of(id.clone());
    let last = unowned_records::<PaymentAttempt>(uow)
        .first(&of_invoice)
        .await?;
    let is_waiting = |last: &Stored<PaymentAttempt>| last.status == AttemptStatus::ActionRequired;
    Ok(PayableInvoice {
        invoice,
        customer,
        needs_confirmation: last.is_some_and(|last| is_waiting(&last)),
    })
}

/// Pays an invoice with the default payment method of its customer or, on the embedded provider, with a test card, which is
/// attached first.
///
/// # Errors
/// - `INVALID_STATE` if the invoice cannot be paid, or a card is given to another provider than the embedded one.
/// - `PAYMENT_REQUIRED` if the charge was declined or must be confirmed, or there is no payment method.
/// - `OPERATION_IN_PROGRESS` if the outcome of another charge is open.
/// - `PAYMENT_PROVIDER_UNAVAILABLE` and `PAYMENT_OUTCOME_UNKNOWN` if the provider fails.
pub async fn pay(
    cx: &Context,
    store: &dyn Store,
    billing: &Billing,
    payable: &PayableInvoice,
    card: Option<&str>,
) -> Result<()> {
    ensure_payable(payable)?;
    let customer = &payable.customer;
    if let Some(card) = card {
        ensure_simulated(billing)?;
        let key = OpKey::new(payable.invoice.id.as_str(), &format!("card:{card}"));
        payment_method::attach_only(cx, store, billing, &customer.id, card, &key).await?;
    }
    let method = payment_method::default_id(store, &customer.id).await?;
    let method = method.ok_or_else(|| {
        super::provider::payment_required(
            super::provider::NO_PAYMENT_METHOD,
            None,
            Some(&payable.invoice.id),
            None,
        )
    })?;
    let invoice = &payable.invoice.id;
    let charge = charge::charge(cx, store, billing, invoice, &method).await?;
    match charge {
        Charge::Paid => Ok(()),
        declined => declined.refusal(invoice).map_or(Ok(()), Err),
    }
}

/// Confirms the simulated charge of an invoice, as the owner of a test card.
///
/// # Errors
/// `INVALID_STATE` if no charge waits for a confirmation, or another provider asks for it.
pub async fn confirm(
    cx: &Context,
    store: &dyn Store,
    billing: &Billing,
    payable: &PayableInvoice,
) -> Result<()> {
    ensure_payable(payable)?;
    ensure_simulated(billing)?;
    let (true, Some(provider_id)) = (payable.needs_confirmation, &payable.invoice.provider_id)
    else {
        return Err(Error::refused(
            Code::InvalidState,
            "No charge waits for a confirmation here.",
        ));
    };
    let key = OpKey::new(payable.invoice.id.as_str(), "confirm");
    let payments = billing.payments.as_ref();
    let confirmed = payments
        .close(&key, provider_id, Close::PaidOutOfBand)
        .await;
    confirmed.map_err(super::provider::payments_error)?;
    Ok(sync_invoice(cx, store, billing, provider_id).await?)
}

/// Refuses what only simulated money allows. The holder of a link must not choose the card of a real customer.
fn ensure_simulated(billing: &Billing) -> Result<()> {
    if billing.payments.provider() == PaymentProvider::Ledger {
        return Ok(());
    }
    Err(Error::refused(
        Code::InvalidState,
        "This is possible only with simulated payments.",
    ))
}

fn ensure_payable(payable: &PayableInvoice) -> Result<()> {
    if payable.is_payable() {
        return Ok(());
    }
    Err(Error::refused(
        Code::InvalidState,
        "This invoice does not have to be paid any more.",
    ))
}
