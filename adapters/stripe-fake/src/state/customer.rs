//! Customers.

use serde_json::{Value, json};

use super::object::{Metadata, Origin};

pub(crate) struct Customer {
    pub(crate) id: String,
    origin: Origin,
    pub(crate) email: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) metadata: Metadata,
    /// The balance in minor units. Below 0, it is credit to the customer.
    pub(crate) balance: i64,
    pub(crate) default_method: Option<String>,
    /// The number of invoices that got a number from the fake.
    pub(crate) numbered_invoices: usize,
}

impl Customer {
    pub(crate) fn new(origin: Origin) -> Self {
        Self {
            id: origin.id.clone(),
            origin,
            email: None,
            name: None,
            metadata: Metadata::new(),
            balance: 0,
            default_method: None,
            numbered_invoices: 0,
        }
    }

    pub(crate) fn created_at(&self) -> i64 {
        self.origin.created
    }

    /// Returns the prefix of the numbers of invoices.
    pub(crate) fn invoice_prefix(&self) -> String {
        let digits = self.id.rsplit('_').next().unwrap_or_default();
        digits.chars().take(8).collect::<String>().to_uppercase()
    }

    pub(crate) fn render(&self) -> Value {
        json!({
            "id": self.id,
            "object": "customer",
            "address": null,
            "balance": self.balance,
            "created": self.origin.created,
            "currency": null,
            "default_source": null,
            "delinquent": false,
            "description": null,
            "discount": null,
            "email": self.email,
            "invoice_prefix": self.invoice_prefix(),
            "invoice_settings": {
                "custom_fields": null,
                "default_payment_method": self.default_method,
                "footer": null,
                "rendering_options": null,
            },
            "livemode": self.origin.is_live,
            "metadata": self.metadata,
            "name": self.name,
            "next_invoice_sequence": self.numbered_invoices + 1,
            "phone": null,
            "preferred_locales": [],
            "shipping": null,
            "tax_exempt": "none",
            "test_clock": null,
        })
    }
}
