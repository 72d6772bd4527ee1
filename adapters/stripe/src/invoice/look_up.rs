//! Finding an invoice as it is at Stripe.

use std::time::Duration;

use core_domain::kernel::{InvoiceId, Timestamp};
use core_domain::port::InvoiceReference;

use super::{CHARGE, Invoice};
use crate::call::Call;
use crate::error::CallError;
use crate::session::Session;

/// The time that the clocks of Stripe and of this machine may differ by.
const CLOCK_DIFFERENCE: Duration = Duration::from_mins(10);

/// Finds an invoice with the outcome of its last charge.
pub(super) async fn find_by_id(
    session: &Session<'_>,
    id: &str,
) -> Result<Option<Invoice>, CallError> {
    let get = Call::get("invoice.find", &["invoices", id]).param("expand[0]", CHARGE);
    session.find(&get).await
}

/// Finds an invoice by our id, among those that the customer got since ours was created. The list is consistent, in
/// contrast to the search of Stripe.
pub(super) async fn find_ours(
    session: &Session<'_>,
    id: &InvoiceId,
    customer: &str,
    created_at: Timestamp,
) -> Result<Option<Invoice>, CallError> {
    let since = created_at.minus(CLOCK_DIFFERENCE).seconds();
    let list = Call::get("invoice.list", &["invoices"])
        .param("customer", customer)
        .param("created[gte]", since);
    let is_ours = |own: Invoice| own.is_ours(id).then_some(own);
    session.search(&list, is_ours).await
}

/// Finds an invoice by the id at Stripe or, if that is not known, by our id.
pub(crate) async fn look_up(
    session: &Session<'_>,
    invoice: &InvoiceReference,
) -> Result<Option<core_domain::port::ProviderInvoice>, CallError> {
    let id = match &invoice.provider_id {
        Some(id) => id.clone(),
        None => {
            let created_at = invoice.created_at;
            let found = find_ours(session, &invoice.id, &invoice.customer, created_at).await?;
            match found {
                Some(found) => found.id,
                None => return Ok(None),
            }
        }
    };
    find(session, &id).await
}

/// Finds an invoice by the id at Stripe.
pub(crate) async fn find(
    session: &Session<'_>,
    id: &str,
) -> Result<Option<core_domain::port::ProviderInvoice>, CallError> {
    let found = find_by_id(session, id).await?;
    found.map(Invoice::into_provider).transpose()
}
