//! Invoices.

use serde_json::{Value, json};

use super::customer::Customer;
use super::object::{Metadata, Origin, embedded_list};

/// Maximum number of lines that an invoice embeds. Further ones are on the pages of its list.
const EMBEDDED_LINES: usize = 10;

pub(crate) struct Line {
    pub(crate) id: String,
    pub(crate) amount: i64,
    pub(crate) description: Option<String>,
    pub(crate) metadata: Metadata,
}

pub(crate) struct Invoice {
    pub(crate) id: String,
    pub(crate) origin: Origin,
    pub(crate) customer: String,
    pub(crate) currency: String,
    pub(crate) status: &'static str,
    pub(crate) number: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) metadata: Metadata,
    pub(crate) lines: Vec<Line>,
    pub(crate) attempts: i64,
    /// The customer's balance that was applied when the invoice was finalized.
    pub(crate) starting_balance: Option<i64>,
    /// The amount that was paid, through Stripe or in another way.
    pub(crate) paid: i64,
    pub(crate) was_paid_elsewhere: bool,
    /// The amount that was added to the customer's balance because it is too small for a charge.
    pub(crate) carried_over: i64,
    pub(crate) payment_intent: Option<String>,
    pub(crate) finalized_at: Option<i64>,
    pub(crate) paid_at: Option<i64>,
    pub(crate) uncollectible_at: Option<i64>,
    pub(crate) voided_at: Option<i64>,
}

impl Invoice {
    pub(crate) fn new(origin: Origin, customer: String, currency: String) -> Self {
        Self {
            id: origin.id.clone(),
            origin,
            customer,
            currency,
            status: "draft",
            number: None,
            description: None,
            metadata: Metadata::new(),
            lines: Vec::new(),
            attempts: 0,
            starting_balance: None,
            paid: 0,
            was_paid_elsewhere: false,
            carried_over: 0,
            payment_intent: None,
            finalized_at: None,
            paid_at: None,
            uncollectible_at: None,
            voided_at: None,
        }
    }

    pub(crate) fn total(&self) -> i64 {
        self.lines.iter().map(|line| line.amount).sum()
    }

    /// Returns the amount due, given the balance of the customer.
    pub(crate) fn amount_due(&self, balance: i64) -> i64 {
        let balance = self.starting_balance.unwrap_or(balance);
        (self.total() + balance - self.carried_over).max(0)
    }

    fn remaining(&self, balance: i64) -> i64 {
        match self.status {
            "paid" => 0,
            _ => self.amount_due(balance) - self.paid,
        }
    }

    pub(crate) fn rendered_lines(&self) -> Vec<Value> {
        self.lines
            .iter()
            .map(|line| self.rendered_line(line))
            .collect()
    }

    fn rendered_line(&self, line: &Line) -> Value {
        let created = self.origin.created;
        json!({
            "id": line.id,
            "object": "line_item",
            "amount": line.amount,
            "currency": self.currency,
            "description": line.description,
            "discount_amounts": [],
            "discountable": true,
            "discounts": [],
            "invoice": self.id,
            "livemode": self.origin.is_live,
            "metadata": line.metadata,
            "parent": {
                "type": "invoice_item_details",
                "invoice_item_details": {
                    "invoice_item": line.id.replacen("il_", "ii_", 1),
                    "proration": false,
                    "proration_details": null,
                    "subscription": null,
                },
                "subscription_item_details": null,
            },
            "period": {"start": created, "end": created},
            "pretax_credit_amounts": null,
            "pricing": null,
            "quantity": 1,
            "quantity_decimal": "1",
            "subscription": null,
            "subtotal": line.amount,
            "taxes": null,
        })
    }

    /// Returns the address of the list of lines.
    pub(crate) fn lines_url(&self) -> String {
        format!("/v1/invoices/{}/lines", self.id)
    }

    /// Returns the address of the page of a final invoice, which the fake does not serve.
    fn page_url(&self) -> Option<String> {
        let id = &self.id;
        self.finalized_at
            .map(|_| format!("https://invoice.stripe.com/i/acct_fake/{id}?s=ap"))
    }

    /// Renders the invoice without the members that are only there if they are expanded.
    pub(crate) fn render(&self, customer: Option<&Customer>) -> Value {
        let balance = customer.map_or(0, |customer| customer.balance);
        let mut lines = self.rendered_lines();
        let has_more = lines.len() > EMBEDDED_LINES;
        lines.truncate(EMBEDDED_LINES);
        let lines = embedded_list(lines, has_more, &self.lines_url());
        let (total, due) = (self.total(), self.amount_due(balance));
        let remaining = self.remaining(balance);
        json!({
            "id": self.id,
            "object": "invoice",
            "account_country": "US",
            "account_name": "Fake account",
            "account_tax_ids": null,
            "amount_due": due,
            "amount_overpaid": 0,
            "amount_paid": self.paid,
            "amount_paid_off_stripe": if self.was_paid_elsewhere { self.paid } else { 0 },
            "amount_remaining": remaining,
            "amount_shipping": 0,
            "application": null,
            "attempt_count": self.attempts,
            "attempted": self.attempts > 0,
            "auto_advance": false,
            "automatic_tax": {"disabled_reason": null, "enabled": false, "liability": null, "provider": null, "status": null},
            "automatically_finalizes_at": null,
            "billing_reason": "manual",
            "collection_method": "charge_automatically",
            "created": self.origin.created,
            "currency": self.currency,
            "custom_fields": null,
            "customer": self.customer,
            "customer_account": null,
            "customer_address": null,
            "customer_email": customer.and_then(|customer| customer.email.clone()),
            "customer_name": customer.and_then(|customer| customer.name.clone()),
            "customer_phone": null,
            "customer_shipping": null,
            "customer_tax_exempt": "none",
            "customer_tax_ids": [],
            "default_payment_method": null,
            "default_source": null,
            "default_tax_rates": [],
            "description": self.description,
            "discounts": [],
            "due_date": null,
            "effective_at": self.finalized_at,
            "ending_balance": self.finalized_at.map(|_| 0),
            "footer": null,
            "from_invoice": null,
            "hosted_invoice_url": self.page_url(),
            "invoice_pdf": null,
            "issuer": {"type": "self"},
            "last_finalization_error": null,
            "latest_revision": null,
            "lines": lines,
            "livemode": self.origin.is_live,
            "metadata": self.metadata,
            "next_payment_attempt": null,
            "number": self.number,
            "on_behalf_of": null,
            "parent": null,
            "payment_settings": {"default_mandate": null, "payment_method_options": null, "payment_method_types": null},
            "period_end": self.origin.created,
            "period_start": self.origin.created,
            "post_payment_credit_notes_amount": 0,
            "pre_payment_credit_notes_amount": 0,
            "receipt_number": null,
            "rendering": null,
            "shipping_cost": null,
            "shipping_details": null,
            "starting_balance": self.starting_balance.unwrap_or(balance),
            "statement_descriptor": null,
            "status": self.status,
            "status_transitions": {
                "finalized_at": self.finalized_at,
                "marked_uncollectible_at": self.uncollectible_at,
                "paid_at": self.paid_at,
                "voided_at": self.voided_at,
            },
            "subtotal": total,
            "subtotal_excluding_tax": total,
            "test_clock": null,
            "total": total,
            "total_discount_amounts": [],
            "total_excluding_tax": total,
            "total_pretax_credit_amounts": [],
            "total_taxes": [],
            "webhooks_delivered_at": null,
        })
    }
}
