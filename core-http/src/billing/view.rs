//! Responses with computed values.

use core_domain::billing::{Invoice, InvoiceLine, Subscription};
use core_domain::kernel::Stored;
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

/// An invoice with its lines.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct InvoiceDetail {
    #[serde(flatten)]
    invoice: Invoice,
    /// The lines, which add up to `subtotal`.
    lines: Vec<InvoiceLine>,
}

impl InvoiceDetail {
    pub(super) fn of(stored: &Stored<Invoice>) -> Self {
        Self {
            invoice: stored.edit(),
            lines: stored.lines.clone(),
        }
    }
}
