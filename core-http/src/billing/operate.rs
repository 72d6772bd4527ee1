//! Endpoints about the whole book, for operators: generated invoices, and the overview.

use std::sync::Arc;

use core_domain::access::OperatorScope;
use core_domain::billing::Overview;
use core_domain::kernel::{Code, InvoiceId, Result};
use core_domain::port::UnitOfWork;
use core_domain::use_case::billing::Billing;
use core_domain::use_case::billing::manual_invoice::{self, GenerateInvoice};
use core_domain::use_case::billing::overview::overview;
use http::StatusCode;

use super::view::InvoiceDetail;
use crate::kernel::{Cx, DetachedCx, Endpoint, Input, Output, Versioned, get, post, with};

pub(super) fn rows(billing: &Arc<Billing>) -> Vec<Endpoint> {
    vec![
        post("/operator/invoices/generate", "generateInvoice")
            .summary("Invoices the closed usage of a customer that is not invoiced yet.")
            .description(
                "The invoice is final, and is charged to the default payment method of the \
                 customer at once. If that fails, it stays open and is charged by the clock. \
                 Usage that was reported after the end of a subscription is invoiced only so.",
            )
            .success(&[StatusCode::CREATED])
            .secret_answer()
            .refuses(&[Code::NotFound, Code::NothingToInvoice])
            .writes_then(billing, begin, finish),
        get("/operator/overview", "getBillingOverview")
            .summary("Returns the numbers of the whole book.")
            .description(
                "`mrr` is the recurring revenue of a month, from `active` and `past_due` \
                 subscriptions. Resolve `reconcileDifferences` and `attemptsUnknown` by hand if \
                 they do not go away.",
            )
            .reads(with(billing, show)),
    ]
}

async fn begin(
    cx: &Cx,
    billing: Arc<Billing>,
    scope: OperatorScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), GenerateInvoice>,
) -> Result<InvoiceId> {
    manual_invoice::generate(cx, &scope, uow, &billing, &input.body).await
}

async fn finish(
    cx: DetachedCx,
    billing: Arc<Billing>,
    invoice: InvoiceId,
) -> Result<Versioned<InvoiceDetail>> {
    let store = cx.app.store.as_ref();
    let generated = manual_invoice::collect(&cx, store, &billing, &invoice).await?;
    Ok(Versioned::of(
        &generated,
        InvoiceDetail::of(&billing, &generated),
    ))
}

async fn show(
    _: &Cx,
    billing: Arc<Billing>,
    scope: OperatorScope,
    uow: &mut dyn UnitOfWork,
    _: Input,
) -> Result<Output<Overview>> {
    Ok(Output::new(overview(&scope, uow, &billing).await?))
}
