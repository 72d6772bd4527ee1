//! A world whose invoices are charged in a fake Stripe account.

use std::sync::Arc;
use std::time::Duration;

use core_domain::billing::{LedgerCharge, LedgerChargeQuery, LedgerOutcome};
use core_domain::kernel::{Clock, InvoiceId, Secret, Stored};
use core_domain::port::Payments;
use core_stripe::{StripeAccount, StripeOptions, StripePayments};
use core_stripe_fake::{FakeStripe, Settings, SignedEvent};
use http::{Method, Request};
use serde_json::Value;

use super::{Answer, World};

impl World {
    /// Returns the same world with a new Stripe account instead of the ledger. Its clock follows [`World::tick`].
    pub(crate) async fn at_stripe(mut self) -> Self {
        let settings = Settings {
            now: self.clock.now().seconds(),
            ..Settings::default()
        };
        let fake = FakeStripe::start_with(settings).await.unwrap();
        let account = StripeAccount {
            secret_key: Secret::new(fake.secret_key()),
            webhook_secrets: vec![Secret::new(fake.webhook_secret())],
            publishable_key: None,
            base_url: fake.base_url(),
        };
        let options = StripeOptions {
            retry_delay: Duration::from_millis(1),
            ..StripeOptions::default()
        };
        let stripe = StripePayments::new(account, options, self.clock.clone());
        self.payments.exchange(Arc::new(stripe.unwrap()));
        self.stripe = Some(fake);
        self
    }

    /// Sends an event of the Stripe account to the webhook.
    pub(crate) async fn deliver(&self, event: SignedEvent) -> Answer {
        let request = Request::builder()
            .method(Method::POST)
            .uri("/webhooks/stripe")
            .header("content-type", "application/json")
            .header("stripe-signature", event.signature);
        let body = core_http::kernel::bytes_body(event.body);
        self.billing.raw(request.body(body).unwrap()).await
    }

    /// Returns the amounts that the payment provider has charged for an invoice: one if it is paid.
    pub(crate) async fn charged_amounts(&self, invoice: &Value) -> Vec<i64> {
        let Some(fake) = &self.stripe else {
            return self.charged_by_ledger(invoice).await;
        };
        let at_stripe = fake.invoices().into_iter();
        let own = at_stripe.filter(|other| other["metadata"]["invoiceId"] == invoice["id"]);
        let paid = own.map(|other| other["amount_paid"].as_i64().unwrap());
        paid.filter(|amount| *amount != 0).collect()
    }

    async fn charged_by_ledger(&self, invoice: &Value) -> Vec<i64> {
        let id = InvoiceId::parse(invoice["id"].as_str().unwrap()).unwrap();
        let charges = self.all::<LedgerCharge>(&LedgerChargeQuery::Of(id)).await;
        let is_paid = |charge: &Stored<LedgerCharge>| charge.outcome == LedgerOutcome::Paid;
        let count = charges.into_iter().filter(is_paid).count();
        let Some(id) = invoice["providerId"].as_str() else {
            return Vec::new();
        };
        let pushed = self.payments.invoice(id).await.unwrap().unwrap();
        vec![pushed.amount_due; count]
    }
}
