//! Refunds of charges.

use serde_json::{Value, json};

use super::object::{Metadata, Origin};
use super::payment_intent::PaymentIntent;

pub(crate) struct Refund {
    pub(crate) id: String,
    pub(crate) origin: Origin,
    pub(crate) charge: String,
    pub(crate) payment_intent: String,
    pub(crate) amount: i64,
    currency: String,
    customer: String,
    method: Option<String>,
    pub(crate) reason: Option<String>,
    pub(crate) metadata: Metadata,
}

impl Refund {
    pub(crate) fn new(origin: Origin, of: &PaymentIntent, amount: i64) -> Self {
        Self {
            id: origin.id.clone(),
            origin,
            charge: of.charge_id(),
            payment_intent: of.id.clone(),
            amount,
            currency: of.currency.clone(),
            customer: of.customer.clone(),
            method: of.method.clone(),
            reason: None,
            metadata: Metadata::new(),
        }
    }

    pub(crate) fn render(&self) -> Value {
        json!({
            "id": self.id,
            "object": "refund",
            "amount": self.amount,
            "balance_transaction": null,
            "charge": self.charge,
            "created": self.origin.created,
            "currency": self.currency,
            "customer": self.customer,
            "customer_account": null,
            "destination_details": {"card": {"type": "refund"}, "type": "card"},
            "metadata": self.metadata,
            "payment_intent": self.payment_intent,
            "payment_method": self.method,
            "reason": self.reason,
            "receipt_number": null,
            "source_transfer_reversal": null,
            "status": "succeeded",
            "transfer_reversal": null,
        })
    }
}
