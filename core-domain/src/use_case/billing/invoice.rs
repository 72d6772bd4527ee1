//! Reading invoices.

use crate::access::{BillingScope, CustomerScope, unowned_records};
use crate::billing::{Invoice, InvoiceQuery, InvoiceStatus};
use crate::kernel::{InvoiceId, Page, PageQuery, Result, Stored, permission};
use crate::port::UnitOfWork;

/// Lists the invoices of a platform's customer, newest first; none if there is no customer yet.
///
/// # Errors
/// `INVALID_CURSOR` if the cursor does not belong to this list.
pub async fn list(
    scope: &BillingScope<permission::BillingRead>,
    uow: &mut dyn UnitOfWork,
    status: Option<InvoiceStatus>,
    page: &PageQuery,
) -> Result<Page<Stored<Invoice>>> {
    let Some(customer) = scope.customer() else {
        return Ok(Page::empty());
    };
    let of_customer = InvoiceQuery::Of {
        customer_id: customer.id.clone(),
        status,
    };
    unowned_records::<Invoice>(uow)
        .page(&of_customer, page)
        .await
}

/// Returns an invoice of the customer.
///
/// # Errors
/// `NOT_FOUND` if the customer has no such invoice.
pub async fn get(
    scope: &CustomerScope<permission::BillingRead>,
    uow: &mut dyn UnitOfWork,
    id: &InvoiceId,
) -> Result<Stored<Invoice>> {
    scope.invoice(uow, id).await
}
