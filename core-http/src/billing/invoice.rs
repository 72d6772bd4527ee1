//! Endpoints for invoices.

use std::sync::Arc;

use core_domain::access::{BillingScope, CustomerScope};
use core_domain::billing::{Invoice, InvoiceStatus};
use core_domain::kernel::{
    Code, Error, InvoiceId, ListQuery, PlatformId, Record, Result, permission,
};
use core_domain::port::UnitOfWork;
use core_domain::use_case::billing::{Billing, invoice};
use schemars::JsonSchema;
use serde::Deserialize;

use super::pages::document_page;
use super::platform::{NamesPlatform, OfPlatform};
use super::spelling::prefixed;
use super::view::{InvoiceDetail, InvoiceView};
use crate::kernel::{Cx, Endpoint, HTML, Input, JsonOrPage, ListP1, Output, Versioned, get, with};

pub(super) fn rows(billing: &Arc<Billing>) -> Vec<Endpoint> {
    vec![
        get("/invoices", "listInvoices")
            .alias(prefixed!("/invoices"))
            .summary("Lists the invoices of a platform, newest first.")
            .description("The list has no lines. It is empty if the platform has no customer yet.")
            .refuses(&[Code::ValidationError, Code::NotFound, Code::InvalidCursor])
            .reads(with(billing, list)),
        get("/invoices/{invoiceId}", "getInvoice")
            .alias(prefixed!("/invoices/{invoiceId}"))
            .summary("Returns an invoice with all of its lines.")
            .description(
                "With `platformId`, an invoice of another platform is missing. A client that \
                 accepts `text/html` gets a page that can be printed.",
            )
            .produces(&[HTML])
            .refuses(&[Code::ValidationError, Code::NotFound])
            .reads(with(billing, show)),
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
    billing: Arc<Billing>,
    scope: BillingScope<permission::BillingRead>,
    uow: &mut dyn UnitOfWork,
    input: Input<(), ListQuery<InvoiceFilter>>,
) -> Result<Output<ListP1<InvoiceView>>> {
    let query = input.query;
    let page = invoice::list(&scope, uow, query.filter.status, &query.page()).await?;
    let page = page.map(|invoice| InvoiceView::of(&billing, &invoice));
    Ok(Output::new(page.into()))
}

async fn show(
    cx: &Cx,
    billing: Arc<Billing>,
    scope: CustomerScope<permission::BillingRead>,
    uow: &mut dyn UnitOfWork,
    input: Input<(InvoiceId,), OfPlatform>,
) -> Result<JsonOrPage<InvoiceDetail>> {
    let found = invoice::get(&scope, uow, &input.path.0).await?;
    let named = input.query.platform_id;
    if named.is_some() && named != found.platform_id {
        return Err(Error::NotFound(Invoice::KIND));
    }
    if cx.asks_for_page() {
        return Ok(JsonOrPage::Page(document_page(&billing, &found)?));
    }
    let detail = InvoiceDetail::of(&billing, &found);
    Ok(JsonOrPage::Json(Versioned::of(&found, detail)))
}
