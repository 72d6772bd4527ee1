//! Responses with computed values.

use core_domain::billing::{Invoice, InvoiceLine, Subscription};
use core_domain::kernel::Stored;
use core_domain::use_case::billing::Billing;
use schemars::JsonSchema;
use serde::Serialize;

use crate::kernel::Versioned;

/// A subscription with its version.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct SubscriptionView {
    #[serde(flatten)]
    subscription: Subscription,
    /// The number of changes of the subscription, from 1.
    version: i64,
}

impl SubscriptionView {
    pub(super) fn of(stored: &Stored<Subscription>) -> Self {
        Self {
            subscription: stored.edit(),
            version: stored.version(),
        }
    }

    /// Returns the response, with the entity tag of the subscription.
    pub(super) fn response(stored: &Stored<Subscription>) -> Versioned<Self> {
        Versioned::of(stored, Self::of(stored))
    }
}

/// An invoice without its lines.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct InvoiceView {
    #[serde(flatten)]
    invoice: Invoice,
    /// The address of a page on which the invoice can be paid. `null` if it cannot be paid there.
    hosted_invoice_url: Option<String>,
}

impl InvoiceView {
    pub(super) fn of(billing: &Billing, stored: &Stored<Invoice>) -> Self {
        Self {
            invoice: stored.edit(),
            hosted_invoice_url: billing.pages.pay_url(stored),
        }
    }
}

/// An invoice with its lines.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct InvoiceDetail {
    #[serde(flatten)]
    invoice: InvoiceView,
    /// The lines, which add up to `subtotal`.
    lines: Vec<InvoiceLine>,
}

impl InvoiceDetail {
    pub(super) fn of(billing: &Billing, stored: &Stored<Invoice>) -> Self {
        Self {
            invoice: InvoiceView::of(billing, stored),
            lines: stored.lines.clone(),
        }
    }
}
