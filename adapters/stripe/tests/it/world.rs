//! Test helpers: a fake Stripe account and an adapter that uses it.

use std::sync::Arc;
use std::time::Duration;

use core_domain::billing::{Currency, Money};
use core_domain::kernel::{CustomerId, InvoiceId, Secret, Timestamp};
use core_domain::port::{
    CollectOutcome, InvoiceReference, OpKey, PayingCustomer, Payments, PaymentsError,
    ProviderInvoice, PushedInvoice, PushedLine,
};
use core_domain::testing::ManualClock;
use core_stripe::{StripeAccount, StripeOptions, StripePayments};
use core_stripe_fake::{FakeStripe, Fault, Matcher, Settings, Silence};

pub(crate) const CUSTOMERS: &str = "/v1/customers";

/// A fault that closes the connection after the effect.
pub(crate) const LOST_AFTER: Fault = Fault::TimeoutAfterEffect(Silence::Close);

/// A fault that closes the connection before the effect.
pub(crate) const LOST_BEFORE: Fault = Fault::TimeoutBeforeEffect(Silence::Close);

pub(crate) struct World {
    pub(crate) fake: FakeStripe,
    pub(crate) stripe: StripePayments,
    pub(crate) clock: Arc<ManualClock>,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(Settings::default(), |_| ()).await
    }

    /// Creates a world without retries, in which every fault reaches the caller.
    pub(crate) async fn without_retries() -> Self {
        Self::with(Settings::default(), |options| options.retries = 0).await
    }

    pub(crate) async fn with(settings: Settings, change: impl FnOnce(&mut StripeOptions)) -> Self {
        let fake = FakeStripe::start_with(settings).await.unwrap();
        let clock = Arc::new(ManualClock::at(Timestamp::from_seconds(fake.now())));
        let mut options = StripeOptions {
            retry_delay: Duration::from_millis(1),
            ..StripeOptions::default()
        };
        change(&mut options);
        let own: Arc<ManualClock> = Arc::clone(&clock);
        let stripe = StripePayments::new(account(&fake), options, own).unwrap();
        Self {
            fake,
            stripe,
            clock,
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::from_seconds(self.fake.now())
    }

    /// Advances the clocks of the fake and of the adapter.
    pub(crate) fn advance(&self, by: Duration) {
        self.fake.advance(by);
        self.clock.advance(by);
    }

    pub(crate) fn inject(&self, method: &str, path: &str, fault: Fault) {
        self.fake.inject(Matcher::new(method, path), fault);
    }

    pub(crate) async fn customer(&self) -> String {
        let created = self.stripe.ensure_customer(&key("cus"), &details()).await;
        created.unwrap()
    }

    pub(crate) async fn attach(&self, method: &str, customer: &str) -> String {
        let attached = self.stripe.attach(&key(method), method, customer).await;
        attached.unwrap().id
    }

    pub(crate) async fn push(&self, customer: &str) -> ProviderInvoice {
        let pushed = self.stripe.push_invoice(&self.invoice(customer, 1)).await;
        pushed.unwrap()
    }

    /// Returns an invoice over 29 dollars.
    pub(crate) fn invoice(&self, customer: &str, lines: usize) -> PushedInvoice {
        let line = |index: usize| PushedLine {
            id: format!("l{index}"),
            description: "Starter".to_owned(),
            amount: 2_900,
        };
        let count = i128::try_from(lines).unwrap();
        PushedInvoice {
            id: InvoiceId::parse("i1").unwrap(),
            number: Some("ACME-0001".to_owned()),
            customer: customer.to_owned(),
            lines: (0..lines).map(line).collect(),
            amount_due: Money::new(2_900 * count, Currency::USD).unwrap(),
            created_at: self.now(),
        }
    }

    pub(crate) async fn collect(
        &self,
        invoice: &ProviderInvoice,
        method: &str,
        attempt: &str,
    ) -> Result<CollectOutcome, PaymentsError> {
        let key = OpKey::new(&invoice.id, attempt);
        self.stripe.collect(&key, &invoice.id, method).await
    }

    pub(crate) async fn look_up(&self, customer: &str) -> Option<ProviderInvoice> {
        let reference = InvoiceReference {
            id: InvoiceId::parse("i1").unwrap(),
            customer: customer.to_owned(),
            provider_id: None,
            created_at: self.now(),
        };
        self.stripe.look_up(&reference).await.unwrap()
    }

    /// Returns the keys of the changes to paths with this end, in order.
    pub(crate) fn keys(&self, end: &str) -> Vec<String> {
        let requests = self.fake.requests().into_iter();
        let of_path = requests.filter(|request| request.path.ends_with(end));
        of_path
            .filter_map(|request| request.idempotency_key)
            .collect()
    }
}

pub(crate) fn account(fake: &FakeStripe) -> StripeAccount {
    let mode = if fake.secret_key().contains("_live_") {
        "live"
    } else {
        "test"
    };
    StripeAccount {
        secret_key: Secret::new(fake.secret_key()),
        webhook_secrets: vec![Secret::new(fake.webhook_secret())],
        publishable_key: Some(format!("pk_{mode}_fake")),
        base_url: fake.base_url(),
    }
}

pub(crate) fn key(step: &str) -> OpKey {
    OpKey::new("record", step)
}

pub(crate) fn details() -> PayingCustomer {
    PayingCustomer {
        id: CustomerId::parse("c1").unwrap(),
        platform_id: None,
        email: "ada@example.com".to_owned(),
        name: Some("Ada".to_owned()),
    }
}
