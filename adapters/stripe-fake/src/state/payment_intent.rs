//! Payment intents: the charge of an invoice.

use serde_json::{Value, json};

use super::object::Origin;

pub(crate) struct PaymentIntent {
    pub(crate) id: String,
    pub(crate) origin: Origin,
    secret: String,
    pub(crate) invoice: String,
    pub(crate) customer: String,
    pub(crate) amount: i64,
    pub(crate) currency: String,
    pub(crate) status: &'static str,
    pub(crate) method: Option<String>,
    /// The error of the last charge.
    pub(crate) error: Option<Value>,
}

impl PaymentIntent {
    pub(crate) fn new(
        origin: Origin,
        secret: String,
        invoice: &super::invoice::Invoice,
        amount: i64,
    ) -> Self {
        Self {
            id: origin.id.clone(),
            origin,
            secret,
            invoice: invoice.id.clone(),
            customer: invoice.customer.clone(),
            amount,
            currency: invoice.currency.clone(),
            status: "requires_payment_method",
            method: None,
            error: None,
        }
    }

    pub(crate) fn client_secret(&self) -> String {
        format!("{}_{}", self.id, self.secret)
    }

    /// Returns the id of the charge, which exists after the payment has succeeded.
    pub(crate) fn charge_id(&self) -> String {
        self.id.replacen("pi_", "ch_", 1)
    }

    pub(crate) fn render(&self) -> Value {
        let is_paid = self.status == "succeeded";
        json!({
            "id": self.id,
            "object": "payment_intent",
            "allowed_payment_method_types": null,
            "amount": self.amount,
            "amount_capturable": 0,
            "amount_details": {"tip": {}},
            "amount_received": if is_paid { self.amount } else { 0 },
            "application": null,
            "application_fee_amount": null,
            "automatic_payment_methods": null,
            "canceled_at": null,
            "cancellation_reason": null,
            "capture_method": "automatic",
            "client_secret": self.client_secret(),
            "confirmation_method": "automatic",
            "created": self.origin.created,
            "currency": self.currency,
            "customer": self.customer,
            "customer_account": null,
            "description": null,
            "excluded_payment_method_types": null,
            "last_payment_error": self.error,
            "latest_charge": is_paid.then(|| self.charge_id()),
            "livemode": self.origin.is_live,
            "managed_payments": null,
            "metadata": {},
            "next_action": null,
            "on_behalf_of": null,
            "payment_method": self.method,
            "payment_method_configuration_details": null,
            "payment_method_options": {},
            "payment_method_types": ["card"],
            "payment_record": null,
            "processing": null,
            "receipt_email": null,
            "review": null,
            "setup_future_usage": null,
            "shipping": null,
            "source": null,
            "statement_descriptor": null,
            "statement_descriptor_suffix": null,
            "status": self.status,
            "transfer_group": null,
        })
    }
}
