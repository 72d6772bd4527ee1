//! The handle of a fake for tests.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use core_fake_kit::control_methods;
use core_fake_kit::fault::FaultQueue;
use core_fake_kit::server::{Server, bind};
use serde_json::Value;

use crate::card::ChargeEnd;
use crate::dispute;
use crate::fault::Fault;
use crate::journal::{Exchange, Journal, RecordedRequest};
use crate::limit::{Limiter, RateLimit};
use crate::pay::settle;
use crate::refund;
use crate::server::answer;
use crate::settings::Settings;
use crate::shared::{Inner, SharedInner};
use crate::state::State;
use crate::webhook::{self, SignedEvent, signature};

/// A running fake with one Stripe account. Dropping it stops the server and closes all connections.
pub struct FakeStripe {
    shared: Arc<SharedInner>,
    server: Server,
}

impl FakeStripe {
    /// Starts the fake on a free port of the loopback interface.
    ///
    /// # Errors
    /// [`io::Error`] if no port is available.
    pub async fn start() -> io::Result<Self> {
        Self::start_with(Settings::default()).await
    }

    /// Starts the fake with these settings.
    ///
    /// # Errors
    /// [`io::Error`] if the port is not available.
    pub async fn start_with(settings: Settings) -> io::Result<Self> {
        let listener = bind(settings.port).await?;
        let shared = Arc::new(SharedInner::new(Inner {
            limiter: Limiter::new(settings.rate_limit),
            state: State::new(settings),
            faults: FaultQueue::default(),
            journal: Journal::default(),
        }));
        let served = Arc::clone(&shared);
        let server = Server::start(listener, move |request| {
            answer(request, Arc::clone(&served))
        })?;
        Ok(Self { shared, server })
    }

    /// Returns the base URL, without a slash at the end.
    #[must_use]
    pub fn base_url(&self) -> String {
        self.server.base_url()
    }

    /// Returns the secret key that the fake accepts.
    #[must_use]
    pub fn secret_key(&self) -> String {
        self.shared.lock().state.settings.secret_key.clone()
    }

    /// Returns the secret with which webhooks are signed.
    #[must_use]
    pub fn webhook_secret(&self) -> String {
        self.shared.lock().state.settings.webhook_secret.clone()
    }

    /// Returns the time of the fake in Unix seconds.
    #[must_use]
    pub fn now(&self) -> i64 {
        self.shared.lock().state.clock.now()
    }

    /// Advances the clock.
    pub fn advance(&self, by: Duration) {
        self.shared.lock().state.clock.advance(by);
    }

    /// Returns all events, oldest first, as they are delivered now.
    #[must_use]
    pub fn events(&self) -> Vec<SignedEvent> {
        let inner = self.shared.lock();
        let events = inner.state.events.iter();
        let signed = events.map(|event| inner.state.sign_event(&event.render().to_string(), ""));
        signed.collect()
    }

    /// Records an event about an object, and sends it to the registered endpoints.
    pub fn emit(&self, kind: &str, object: Value) {
        self.shared.lock().state.emit(kind, object);
        webhook::send_new(&self.shared);
    }

    /// Sends all events to the registered endpoints again, oldest first, with new signatures. Returns after the last
    /// response.
    pub async fn redeliver(&self) {
        let deliveries = self.shared.lock().state.deliveries(0);
        webhook::send(deliveries).await;
    }

    /// Signs a body with the secret of the webhooks. Returns the value of the header `Stripe-Signature`.
    #[must_use]
    pub fn sign(&self, body: &[u8], time: i64) -> String {
        signature(&self.webhook_secret(), body, time)
    }

    /// Sets the end of all further charges of a payment method.
    pub fn set_charge_end(&self, method: &str, end: ChargeEnd) {
        let mut inner = self.shared.lock();
        if let Ok(method) = inner.state.payment_method_mut(method, "") {
            method.charge_end = end;
        }
    }

    /// Confirms the pending charge of an invoice, as the browser of the owner of the card does. Does nothing if there is
    /// none.
    pub fn confirm_charge(&self, invoice: &str) {
        self.end_charge(invoice, &ChargeEnd::Paid);
    }

    /// Ends the pending or processing charge of an invoice. Does nothing if there is none.
    pub fn end_charge(&self, invoice: &str, end: &ChargeEnd) {
        let mut inner = self.shared.lock();
        let state = &mut inner.state;
        let intent = state
            .invoice(invoice, "")
            .map(|own| own.payment_intent.clone());
        let Ok(Some(id)) = intent else {
            return;
        };
        let intent = state.payment_intent(&id, "");
        let Some(method) = intent.ok().and_then(|intent| intent.method.clone()) else {
            return;
        };
        // A decline is the end that the test asks for.
        let _ = settle(state, &id, &method, end);
        drop(inner);
        webhook::send_new(&self.shared);
    }

    /// Sets the balance of a customer in minor units. Below 0, it is credit to the customer.
    pub fn set_balance(&self, customer: &str, balance: i64) {
        let mut inner = self.shared.lock();
        if let Ok(customer) = inner.state.customer_mut(customer, "") {
            customer.balance = balance;
        }
    }

    /// Refunds the payment of an invoice, completely without an amount. Returns the ids of the charge and the refund; `None`
    /// if no card has paid the invoice, or less than the amount is left.
    #[must_use]
    pub fn refund(&self, invoice: &str, amount: Option<i64>) -> Option<(String, String)> {
        let mut inner = self.shared.lock();
        let state = &mut inner.state;
        let intent = state.invoice(invoice, "").ok()?.payment_intent.clone()?;
        let id = refund::refund(state, &intent, amount).ok()?;
        let charge = state.refund(&id, "").ok()?.charge.clone();
        drop(inner);
        webhook::send_new(&self.shared);
        Some((charge, id))
    }

    /// Closes a dispute about the payment of an invoice, which the customer wins. Returns the id of the dispute; `None` if no card
    /// has paid the invoice.
    #[must_use]
    pub fn lose_dispute(&self, invoice: &str) -> Option<String> {
        let mut inner = self.shared.lock();
        let state = &mut inner.state;
        let intent = state.invoice(invoice, "").ok()?.payment_intent.clone()?;
        let id = dispute::lose(state, &intent).ok()?;
        drop(inner);
        webhook::send_new(&self.shared);
        Some(id)
    }

    /// Returns an invoice as the API shows it.
    #[must_use]
    pub fn invoice(&self, id: &str) -> Option<Value> {
        self.shared.lock().state.rendered_invoice(id).ok()
    }

    /// Returns all invoices as the API shows them, oldest first.
    #[must_use]
    pub fn invoices(&self) -> Vec<Value> {
        let inner = self.shared.lock();
        let invoices = inner.state.invoices.iter();
        let rendered = invoices.map(|invoice| inner.state.rendered_invoice(&invoice.id));
        rendered.filter_map(Result::ok).collect()
    }

    /// Returns the number of customers.
    #[must_use]
    pub fn customers(&self) -> usize {
        self.shared.lock().state.customers.len()
    }

    /// Returns the number of charges that succeeded.
    #[must_use]
    pub fn charges(&self) -> usize {
        let inner = self.shared.lock();
        let intents = inner.state.payment_intents.iter();
        intents
            .filter(|intent| intent.status == "succeeded")
            .count()
    }

    /// Replaces the rate limit and resets its count. `None` switches it off.
    pub fn set_rate_limit(&self, limit: Option<RateLimit>) {
        self.shared.lock().limiter = Limiter::new(limit);
    }
}

control_methods!(FakeStripe, Fault, RecordedRequest, Exchange);

impl std::fmt::Debug for FakeStripe {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = formatter.debug_struct("FakeStripe");
        shown
            .field("address", &self.server.address())
            .finish_non_exhaustive()
    }
}
