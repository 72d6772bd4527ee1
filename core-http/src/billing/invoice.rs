//! Endpoints for invoices.

use core_domain::access::{BillingScope, CustomerScope};
use core_domain::billing::{Invoice, InvoiceStatus};
use core_domain::kernel::{
    Code, Error, InvoiceId, ListQuery, Page, PlatformId, Record, Result, Stored, permission,
};
use core_domain::port::UnitOfWork;
use core_domain::use_case::billing::invoice;
use schemars::JsonSchema;
use serde::Deserialize;

use super::platform::{NamesPlatform, OfPlatform};
use super::spelling::prefixed;
use super::view::InvoiceDetail;
use crate::kernel::{Cx, Endpoint, Input, Versioned, get};

pub(super) fn rows() -> Vec<Endpoint> {
    vec![
        get("/invoices", "listInvoices")
            .alias(prefixed!("/invoices"))
            .summary("Lists the invoices of a platform, newest first.")
            .description("The list has no lines. It is empty if the platform has no customer yet.")
            .refuses(&[Code::ValidationError, Code::NotFound, Code::InvalidCursor])
            .reads(list),
        get("/invoices/{invoiceId}", "getInvoice")
            .alias(prefixed!("/invoices/{invoiceId}"))
            .summary("Returns an invoice with all of its lines.")
            .description("With `platformId`, an invoice of another platform is missing.")
            .refuses(&[Code::ValidationError, Code::NotFound])
            .reads(show),
    ]
}

/// Filters of the list of invoices.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct InvoiceFilter {
    /// The platform.
    platform_id: PlatformId,
    /// Only invoices with this status. Default: all.
    status: Option<InvoiceStatus>,
}

impl NamesPlatform for ListQuery<InvoiceFilter> {
    fn platform_id(&self) -> Option<&PlatformId> {
        Some(&self.filter.platform_id)
    }
}

async fn list(
    _: &Cx,
    scope: BillingScope<permission::BillingRead>,
    uow: &mut dyn UnitOfWork,
    input: Input<(), ListQuery<InvoiceFilter>>,
) -> Result<Page<Stored<Invoice>>> {
    let query = input.query;
    invoice::list(&scope, uow, query.filter.status, &query.page()).await
}

async fn show(
    _: &Cx,
    scope: CustomerScope<permission::BillingRead>,
    uow: &mut dyn UnitOfWork,
    input: Input<(InvoiceId,), OfPlatform>,
) -> Result<Versioned<InvoiceDetail>> {
    let found = invoice::get(&scope, uow, &input.path.0).await?;
    let named = input.query.platform_id;
    if named.is_some() && named != found.platform_id {
        return Err(Error::NotFound(Invoice::KIND));
    }
    Ok(Versioned::of(&found, InvoiceDetail::of(&found)))
}
