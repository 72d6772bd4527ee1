//! Invoices that an operator requests: for closed usage that is not invoiced yet, such as usage that was reported after the
//! end of a subscription.

use schemars::JsonSchema;
use serde::Deserialize;

use super::book::CustomerBook;
use super::invoice_state::{self, Collection, NewInvoice};
use super::provider::outcome_unknown;
use super::usage_invoice::{span, waits};
use super::usage_period::{PendingUsage, mark_invoiced, pending_lines};
use super::{Billing, charge};
use crate::access::{OperatorScope, all_unowned, unowned_records};
use crate::billing::{
    BillingReason, Customer, Invoice, InvoiceStatus, Subscription, SubscriptionQuery,
};
use crate::kernel::{Code, Context, CustomerId, Error, InvoiceId, Result, Stored};
use crate::port::{Mode, Store, UnitOfWork};

/// Request body that generates an invoice.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GenerateInvoice {
    /// The id of the customer who gets the invoice.
    pub customer_id: CustomerId,
}

/// Invoices the closed usage of all subscriptions of a customer that is not invoiced yet. Charge it with [`collect`] after
/// the commit.
///
/// # Errors
/// - `NOT_FOUND` if there is no such customer.
/// - `NOTHING_TO_INVOICE` if there is no such usage.
pub async fn generate(
    cx: &Context,
    scope: &OperatorScope,
    uow: &mut dyn UnitOfWork,
    billing: &Billing,
    command: &GenerateInvoice,
) -> Result<InvoiceId> {
    let now = billing.now(uow).await?;
    let mut book = CustomerBook::open(uow, &command.customer_id, now).await?;
    let of_customer = SubscriptionQuery::Of(command.customer_id.clone());
    let mut pending: Vec<(Stored<Subscription>, PendingUsage)> = Vec::new();
    for subscription in all_unowned::<Subscription>(uow, of_customer).await? {
        if waits(&subscription) {
            continue;
        }
        let usage = pending_lines(cx, uow, billing, &subscription.id, &book).await?;
        if !usage.lines.is_empty() {
            pending.push((subscription, usage));
        }
    }
    let lines: Vec<_> = pending
        .iter()
        .flat_map(|(_, usage)| usage.lines.clone())
        .collect();
    let period = span(&lines).ok_or_else(nothing_to_invoice)?;
    // An invoice for several subscriptions belongs to none of them.
    let subscription = match pending.as_slice() {
        [(subscription, _)] => Some(&**subscription),
        _ => None,
    };
    let new = NewInvoice {
        subscription,
        reason: BillingReason::Manual,
        period,
        lines,
        collection: Collection::Scheduled,
    };
    let invoice = invoice_state::finalize(cx, scope, uow, billing, &mut book, new).await?;
    book.store(uow).await?;
    for (_, usage) in pending {
        mark_invoiced(uow, usage, &invoice.id).await?;
    }
    Ok(invoice.id.clone())
}

fn nothing_to_invoice() -> Error {
    Error::refused(
        Code::NothingToInvoice,
        "The customer has no closed usage that is not invoiced yet.",
    )
}

/// Charges a generated invoice to the default payment method of its customer, and returns it. If that fails, the invoice
/// stays open and is charged by the clock.
///
/// # Errors
/// `PAYMENT_OUTCOME_UNKNOWN` if the store fails.
pub async fn collect(
    cx: &Context,
    store: &dyn Store,
    billing: &Billing,
    id: &InvoiceId,
) -> Result<Stored<Invoice>> {
    let (invoice, method) = load(store, id).await?;
    let is_open = invoice.status == InvoiceStatus::Open;
    let Some(method) = method.filter(|_| is_open) else {
        return Ok(invoice);
    };
    let charged = charge::charge(cx, store, billing, id, &method).await;
    if let Err(Error::Store(_)) = charged {
        // The invoice exists. A repetition of the request continues here.
        return Err(outcome_unknown());
    }
    Ok(load(store, id).await?.0)
}

/// Returns an invoice and the default payment method of its customer.
async fn load(store: &dyn Store, id: &InvoiceId) -> Result<(Stored<Invoice>, Option<String>)> {
    let mut uow = store.begin(Mode::Read).await?;
    let found = find(uow.as_mut(), id).await;
    uow.rollback().await;
    found
}

async fn find(
    uow: &mut dyn UnitOfWork,
    id: &InvoiceId,
) -> Result<(Stored<Invoice>, Option<String>)> {
    let invoice = invoice_state::load(uow, id).await?;
    let customers = unowned_records::<Customer>(uow);
    let customer = customers.get(&invoice.customer_id).await?;
    Ok((invoice, customer.default_payment_method_id.clone()))
}
