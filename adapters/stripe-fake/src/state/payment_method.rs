//! Payment methods.

use serde_json::{Value, json};

use super::object::{Metadata, Origin};
use crate::card::{ChargeEnd, TestCard};

pub(crate) struct PaymentMethod {
    pub(crate) id: String,
    origin: Origin,
    pub(crate) card: TestCard,
    pub(crate) exp_month: i64,
    pub(crate) exp_year: i64,
    pub(crate) customer: Option<String>,
    /// A detached method can never be attached again.
    pub(crate) is_detached: bool,
    pub(crate) metadata: Metadata,
    pub(crate) charge_end: ChargeEnd,
}

impl PaymentMethod {
    pub(crate) fn new(origin: Origin, card: TestCard) -> Self {
        Self {
            id: origin.id.clone(),
            origin,
            charge_end: card.charge_end(),
            card,
            exp_month: 12,
            exp_year: 2034,
            customer: None,
            is_detached: false,
            metadata: Metadata::new(),
        }
    }

    pub(crate) fn render(&self) -> Value {
        let billing = json!({
            "address": {"city": null, "country": null, "line1": null, "line2": null, "postal_code": null, "state": null},
            "email": null,
            "name": null,
            "phone": null,
            "tax_id": null,
        });
        let card = json!({
            "brand": self.card.brand,
            "checks": {"address_line1_check": null, "address_postal_code_check": null, "cvc_check": "pass"},
            "country": "US",
            "display_brand": self.card.brand,
            "exp_month": self.exp_month,
            "exp_year": self.exp_year,
            "fingerprint": blake3::hash(self.card.number.as_bytes()).to_hex()[..16],
            "funding": "credit",
            "generated_from": null,
            "last4": self.card.last4(),
            "networks": {"available": [self.card.brand], "preferred": null},
            "regulated_status": "unregulated",
            "three_d_secure_usage": {"supported": true},
            "wallet": null,
        });
        json!({
            "id": self.id,
            "object": "payment_method",
            "allow_redisplay": "unspecified",
            "billing_details": billing,
            "card": card,
            "created": self.origin.created,
            "customer": self.customer,
            "customer_account": null,
            "livemode": self.origin.is_live,
            "metadata": self.metadata,
            "type": "card",
        })
    }
}
