//! A world whose invoices are charged in a fake Stripe account.

use std::sync::Arc;
use std::time::Duration;

use core_domain::kernel::{Clock, Secret};
use core_stripe::{StripeAccount, StripeOptions, StripePayments};
use core_stripe_fake::{FakeStripe, Settings};

use super::World;

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
}
