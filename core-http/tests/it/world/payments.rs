//! A payment provider that fails on demand.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, RwLock};

use async_trait::async_trait;
use core_domain::billing::PaymentProvider;
use core_domain::kernel::Timestamp;
use core_domain::port::{
    Cause, Close, CollectOutcome, Decline, InvoiceReference, LostDispute, OpKey, PayingCustomer,
    Payments, PaymentsError, ProviderEvent, ProviderInvoice, ProviderMethod, ProviderRefund,
    ProviderSetupIntent, PushedInvoice, WebhookError,
};
use core_domain::use_case::billing::ledger::Ledger;
use core_http::kernel::App;
use serde_json::Value;
use tokio::sync::Notify;

/// The signature of every event that is accepted.
pub(crate) const VALID_SIGNATURE: &str = "valid";

/// How a call of the provider fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PaymentFault {
    /// The provider cannot be reached, so nothing happens.
    Unreachable,
    /// Like [`Self::Unreachable`], once the test calls [`FaultyPayments::let_fail`].
    UnreachableLater,
    /// The provider refuses the request as wrong.
    Refused,
    /// The provider charges the invoice, and its response is lost.
    AnswerLost,
    /// The card is declined, and a later attempt with it is pointless.
    DeclinedForGood,
}

/// A payment provider, whose next charges fail as a test demands. It is the ledger until [`FaultyPayments::exchange`].
#[derive(Clone, Debug)]
pub(crate) struct FaultyPayments {
    provider: Arc<RwLock<Arc<dyn Payments>>>,
    faults: Arc<Mutex<Vec<PaymentFault>>>,
    charges: Arc<Mutex<Vec<String>>>,
    events: Arc<Mutex<Vec<ProviderEvent>>>,
    details: Arc<Mutex<Vec<PayingCustomer>>>,
    refunds: Arc<Mutex<Vec<(String, ProviderRefund)>>>,
    disputes: Arc<Mutex<Vec<(String, LostDispute)>>>,
    is_stripe: Arc<AtomicBool>,
    waiting: Arc<Waiting>,
}

/// The signals about a charge that fails later.
#[derive(Debug, Default)]
struct Waiting {
    begun: Notify,
    may_fail: Notify,
}

impl FaultyPayments {
    /// Creates a ledger over the store of an application, whose calls do not fail yet.
    pub(crate) fn over(app: &App) -> Self {
        let (store, entropy) = (Arc::clone(&app.store), Arc::clone(&app.entropy));
        Self {
            provider: Arc::new(RwLock::new(Arc::new(Ledger::new(store, entropy, true)))),
            faults: Arc::default(),
            charges: Arc::default(),
            events: Arc::default(),
            details: Arc::default(),
            refunds: Arc::default(),
            disputes: Arc::default(),
            is_stripe: Arc::default(),
            waiting: Arc::default(),
        }
    }

    /// Replaces the ledger by another provider.
    pub(crate) fn exchange(&self, provider: Arc<dyn Payments>) {
        *self.provider.write().unwrap() = provider;
    }

    fn current(&self) -> Arc<dyn Payments> {
        Arc::clone(&self.provider.read().unwrap())
    }

    /// Makes the next charge fail.
    pub(crate) fn fail_next(&self, fault: PaymentFault) {
        self.faults.lock().unwrap().push(fault);
    }

    /// Adds an event to the list of the provider, as if its webhook had been missed.
    pub(crate) fn add_event(&self, event: ProviderEvent) {
        self.events.lock().unwrap().push(event);
    }

    /// Adds a refund of a charge.
    pub(crate) fn add_refund(&self, charge: &str, refund: ProviderRefund) {
        self.refunds
            .lock()
            .unwrap()
            .push((charge.to_owned(), refund));
    }

    /// Adds the lost dispute that an event is about.
    pub(crate) fn add_dispute(&self, event: &str, dispute: LostDispute) {
        let mut disputes = self.disputes.lock().unwrap();
        disputes.push((event.to_owned(), dispute));
    }

    /// States from now on that this is Stripe.
    pub(crate) fn pretend_to_be_stripe(&self) {
        self.is_stripe.store(true, Ordering::Relaxed);
    }

    /// Returns whether the next call cannot reach the provider, and forgets that fault.
    fn is_unreachable(&self) -> bool {
        let mut faults = self.faults.lock().unwrap();
        let next = faults.pop_if(|fault| *fault == PaymentFault::Unreachable);
        next.is_some()
    }

    /// Fails if the next call cannot reach the provider or is refused by it, and forgets that fault.
    fn check_request(&self) -> Result<(), PaymentsError> {
        if self.is_unreachable() {
            return Err(PaymentsError::Unavailable(Cause::from("refused")));
        }
        let mut faults = self.faults.lock().unwrap();
        match faults.pop_if(|fault| *fault == PaymentFault::Refused) {
            Some(_) => Err(PaymentsError::Invalid("no such customer".to_owned())),
            None => Ok(()),
        }
    }

    /// Returns the keys of all charges that reached the provider.
    pub(crate) fn charges(&self) -> Vec<String> {
        self.charges.lock().unwrap().clone()
    }

    /// Returns the changed details of customers that reached the provider.
    pub(crate) fn details(&self) -> Vec<PayingCustomer> {
        self.details.lock().unwrap().clone()
    }

    /// Waits until a charge with the fault [`PaymentFault::UnreachableLater`] has begun.
    pub(crate) async fn charge_begun(&self) {
        self.waiting.begun.notified().await;
    }

    /// Lets that charge fail.
    pub(crate) fn let_fail(&self) {
        self.waiting.may_fail.notify_one();
    }

    /// Lets all further calls succeed.
    pub(crate) fn forget_faults(&self) {
        self.faults.lock().unwrap().clear();
    }
}

#[async_trait]
impl Payments for FaultyPayments {
    fn provider(&self) -> PaymentProvider {
        match self.is_stripe.load(Ordering::Relaxed) {
            true => PaymentProvider::Stripe,
            false => self.current().provider(),
        }
    }

    fn is_live(&self) -> bool {
        false
    }

    fn publishable_key(&self) -> Option<String> {
        None
    }

    async fn ensure_customer(
        &self,
        key: &OpKey,
        customer: &PayingCustomer,
    ) -> Result<String, PaymentsError> {
        self.current().ensure_customer(key, customer).await
    }

    async fn update_customer(
        &self,
        key: &OpKey,
        id: &str,
        customer: &PayingCustomer,
    ) -> Result<(), PaymentsError> {
        self.check_request()?;
        self.details.lock().unwrap().push(customer.clone());
        self.current().update_customer(key, id, customer).await
    }

    async fn create_setup_intent(
        &self,
        key: &OpKey,
        customer: &str,
    ) -> Result<ProviderSetupIntent, PaymentsError> {
        self.current().create_setup_intent(key, customer).await
    }

    async fn methods(&self, customer: &str) -> Result<Vec<ProviderMethod>, PaymentsError> {
        self.current().methods(customer).await
    }

    async fn method(&self, id: &str) -> Result<Option<ProviderMethod>, PaymentsError> {
        self.current().method(id).await
    }

    async fn attach(
        &self,
        key: &OpKey,
        method: &str,
        customer: &str,
    ) -> Result<ProviderMethod, PaymentsError> {
        self.current().attach(key, method, customer).await
    }

    async fn detach(&self, key: &OpKey, method: &str) -> Result<ProviderMethod, PaymentsError> {
        self.current().detach(key, method).await
    }

    async fn set_default(
        &self,
        key: &OpKey,
        customer: &str,
        method: &str,
    ) -> Result<(), PaymentsError> {
        self.current().set_default(key, customer, method).await
    }

    async fn push_invoice(
        &self,
        invoice: &PushedInvoice,
    ) -> Result<ProviderInvoice, PaymentsError> {
        self.current().push_invoice(invoice).await
    }

    async fn collect(
        &self,
        key: &OpKey,
        invoice: &str,
        method: &str,
    ) -> Result<CollectOutcome, PaymentsError> {
        let fault = self.faults.lock().unwrap().pop();
        if fault == Some(PaymentFault::UnreachableLater) {
            self.waiting.begun.notify_one();
            self.waiting.may_fail.notified().await;
        }
        if let Some(PaymentFault::Unreachable | PaymentFault::UnreachableLater) = fault {
            return Err(PaymentsError::Unavailable(Cause::from("refused")));
        }
        if fault == Some(PaymentFault::DeclinedForGood) {
            return Ok(CollectOutcome::Declined(Decline {
                error_code: "card_declined".to_owned(),
                decline_code: Some("lost_card".to_owned()),
                is_hard: true,
            }));
        }
        self.charges.lock().unwrap().push(key.as_str().to_owned());
        let collected = self.current().collect(key, invoice, method).await;
        match fault {
            Some(PaymentFault::AnswerLost) => Err(PaymentsError::Unknown(Cause::from("reset"))),
            _ => collected,
        }
    }

    async fn close(&self, key: &OpKey, invoice: &str, how: Close) -> Result<(), PaymentsError> {
        self.current().close(key, invoice, how).await
    }

    async fn look_up(
        &self,
        invoice: &InvoiceReference,
    ) -> Result<Option<ProviderInvoice>, PaymentsError> {
        if self.is_unreachable() {
            return Err(PaymentsError::Unavailable(Cause::from("refused")));
        }
        self.current().look_up(invoice).await
    }

    async fn invoice(&self, id: &str) -> Result<Option<ProviderInvoice>, PaymentsError> {
        self.current().invoice(id).await
    }

    async fn refunds(&self, id: &str) -> Result<Vec<ProviderRefund>, PaymentsError> {
        let mut found = self.current().refunds(id).await?;
        let added = self.refunds.lock().unwrap();
        let of_charge = added.iter().filter(|(charge, _)| charge == id);
        found.extend(of_charge.map(|(_, refund)| refund.clone()));
        Ok(found)
    }

    async fn lost_dispute(&self, event: &str) -> Result<Option<LostDispute>, PaymentsError> {
        let found = self.current().lost_dispute(event).await?;
        let added = self.disputes.lock().unwrap();
        let added = added.iter().find(|(of, _)| of == event);
        Ok(found.or_else(|| added.map(|(_, dispute)| dispute.clone())))
    }

    async fn default_method(&self, customer: &str) -> Result<Option<String>, PaymentsError> {
        self.current().default_method(customer).await
    }

    async fn portal(&self, customer: &str, url: &str) -> Result<Option<String>, PaymentsError> {
        self.current().portal(customer, url).await
    }

    async fn events_since(&self, since: Timestamp) -> Result<Vec<ProviderEvent>, PaymentsError> {
        let mut found = self.current().events_since(since).await?;
        let added = self.events.lock().unwrap();
        let later = added.iter().filter(|event| event.created_at >= since);
        found.extend(later.cloned());
        Ok(found)
    }

    fn verify_webhook(
        &self,
        body: &[u8],
        signature: &str,
        now: Timestamp,
    ) -> Result<ProviderEvent, WebhookError> {
        let verified = self.current().verify_webhook(body, signature, now);
        match verified {
            // The ledger has no webhooks, so a test makes them up.
            Err(WebhookError::NotConfigured) if signature == VALID_SIGNATURE => {
                Ok(made_up_event(body, now))
            }
            Err(WebhookError::NotConfigured) => Err(WebhookError::Signature),
            verified => verified,
        }
    }
}

fn made_up_event(body: &[u8], now: Timestamp) -> ProviderEvent {
    let event: Value = serde_json::from_slice(body).unwrap_or_default();
    let text = |name: &str| event[name].as_str().map(str::to_owned);
    ProviderEvent {
        id: text("id").unwrap_or_else(|| "evt_ping".to_owned()),
        kind: text("type").unwrap_or_else(|| "ping".to_owned()),
        object_id: text("object"),
        customer: text("customer"),
        created_at: now,
    }
}
