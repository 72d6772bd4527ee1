//! Invoices as Stripe has them.

pub(crate) mod charge;
pub(crate) mod close;
pub(crate) mod look_up;
pub(crate) mod push;

use std::collections::BTreeMap;

use core_domain::billing::{Currency, InvoiceStatus};
use core_domain::kernel::{InvoiceId, Secret, TextValue};
use core_domain::port::{CollectOutcome, ProviderInvoice};
use serde::Deserialize;

use crate::currency::from_stripe;
use crate::error::{ApiError, CallError, SecretText};

/// The member of an invoice's metadata that contains our id.
const INVOICE_ID: &str = "invoiceId";

/// The member of a line's metadata that contains our id.
const LINE_ID: &str = "lineId";

/// Where an invoice has the outcome of its last charge.
const CHARGE: &str = "payments.data.payment.payment_intent";

#[derive(Clone, Deserialize)]
struct Invoice {
    id: String,
    status: Option<String>,
    amount_due: i64,
    currency: String,
    hosted_invoice_url: Option<String>,
    #[serde(default)]
    metadata: BTreeMap<String, String>,
    payments: Option<Payments>,
}

#[derive(Clone, Deserialize)]
struct Payments {
    data: Vec<Payment>,
}

#[derive(Clone, Deserialize)]
struct Payment {
    payment: PaymentObject,
}

#[derive(Clone, Deserialize)]
struct PaymentObject {
    payment_intent: Option<PaymentIntent>,
}

#[derive(Clone, Deserialize)]
struct PaymentIntent {
    status: String,
    client_secret: Option<SecretText>,
    last_payment_error: Option<ApiError>,
}

impl PaymentIntent {
    /// Returns the outcome of the last charge. Returns `None` if none was tried.
    fn outcome(&self) -> Option<CollectOutcome> {
        let secret = || self.client_secret.clone().map(|secret| secret.0);
        match self.status.as_str() {
            "succeeded" => return Some(CollectOutcome::Paid),
            "processing" => return Some(CollectOutcome::Processing),
            "requires_action" => return secret().map(action_required),
            _ => {}
        }
        let error = self.last_payment_error.as_ref()?;
        if error.needs_authentication()
            && let Some(secret) = secret()
        {
            return Some(action_required(secret));
        }
        Some(CollectOutcome::Declined(error.decline()))
    }
}

fn action_required(client_secret: Secret) -> CollectOutcome {
    CollectOutcome::ActionRequired { client_secret }
}

impl Invoice {
    fn status(&self) -> Result<InvoiceStatus, CallError> {
        let status = self.status.as_deref().unwrap_or_default();
        let known = InvoiceStatus::from_text(status);
        known.ok_or_else(|| CallError::NoResponse {
            reads: false,
            is_retryable: false,
            cause: format!("the invoice {} has an unknown status", self.id).into(),
        })
    }

    fn is_ours(&self, id: &InvoiceId) -> bool {
        self.metadata.get(INVOICE_ID).map(String::as_str) == Some(id.as_str())
    }

    fn last_charge(&self) -> Option<CollectOutcome> {
        let payments = self.payments.as_ref()?;
        let intents = payments.data.iter().rev();
        let mut intents = intents.filter_map(|own| own.payment.payment_intent.as_ref());
        intents.find_map(PaymentIntent::outcome)
    }

    fn into_provider(self) -> Result<ProviderInvoice, CallError> {
        let status = self.status()?;
        let last_charge = self.last_charge();
        let unknown =
            |what: &str| CallError::Impossible(format!("the invoice {} has {what}", self.id));
        let currency =
            Currency::parse(&self.currency).map_err(|_| unknown("an unknown currency"))?;
        let amount_due = from_stripe(self.amount_due, currency);
        Ok(ProviderInvoice {
            status,
            amount_due: amount_due.ok_or_else(|| unknown("an amount that is too large"))?,
            currency,
            invoice_id: self
                .metadata
                .get(INVOICE_ID)
                .and_then(|id| InvoiceId::parse(id)),
            last_charge,
            page_url: self.hosted_invoice_url,
            id: self.id,
        })
    }
}
