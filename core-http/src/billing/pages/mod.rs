//! The pages for customers: the portal, and the page on which an invoice is paid. They work without scripts.

mod document;
mod error;
mod layout;
mod pay;
mod portal;
mod portal_form;
mod portal_view;
mod stylesheet;

use std::sync::Arc;

use core_domain::use_case::billing::Billing;

pub(super) use document::document_page;
pub(super) use error::BillingErrorPages;

use crate::kernel::Endpoint;

pub(super) fn rows(billing: &Arc<Billing>) -> Vec<Endpoint> {
    let parts = [
        stylesheet::rows(),
        pay::rows(billing),
        portal::rows(billing),
        portal_form::rows(billing),
    ];
    parts.into_iter().flatten().collect()
}
