//! Setup intents.

use serde_json::{Value, json};

use super::object::{Metadata, Origin};

pub(crate) struct SetupIntent {
    pub(crate) id: String,
    origin: Origin,
    secret: String,
    pub(crate) status: &'static str,
    pub(crate) customer: Option<String>,
    pub(crate) method: Option<String>,
    pub(crate) usage: String,
    pub(crate) metadata: Metadata,
    /// The error of the last confirmation.
    pub(crate) error: Option<Value>,
}

impl SetupIntent {
    pub(crate) fn new(origin: Origin, secret: String) -> Self {
        Self {
            id: origin.id.clone(),
            origin,
            secret,
            status: "requires_payment_method",
            customer: None,
            method: None,
            usage: "off_session".to_owned(),
            metadata: Metadata::new(),
            error: None,
        }
    }

    pub(crate) fn client_secret(&self) -> String {
        format!("{}_{}", self.id, self.secret)
    }

    pub(crate) fn render(&self) -> Value {
        json!({
            "id": self.id,
            "object": "setup_intent",
            "allowed_payment_method_types": null,
            "application": null,
            "automatic_payment_methods": null,
            "cancellation_reason": null,
            "client_secret": self.client_secret(),
            "created": self.origin.created,
            "customer": self.customer,
            "customer_account": null,
            "description": null,
            "excluded_payment_method_types": null,
            "flow_directions": null,
            "last_setup_error": self.error,
            "latest_attempt": null,
            "livemode": self.origin.is_live,
            "mandate": null,
            "metadata": self.metadata,
            "next_action": null,
            "on_behalf_of": null,
            "payment_method": self.method,
            "payment_method_configuration_details": null,
            "payment_method_options": {},
            "payment_method_types": ["card"],
            "single_use_mandate": null,
            "status": self.status,
            "usage": self.usage,
        })
    }
}
