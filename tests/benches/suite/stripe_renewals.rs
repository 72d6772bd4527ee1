//! Measures renewals that are charged at Stripe, within its rate limits.

use std::sync::Arc;

use core_domain::kernel::{Clock, Secret};
use core_stripe_fake::{FakeStripe, RateLimit, Settings};
use core_suite::{StripeAccount, Suite, SystemClock};
use serde::{Deserialize, Serialize};
use serde_json::{from_value, json};

use crate::billing::World;
use crate::harness::backend::Backend;
use crate::harness::cpu::Cores;
use crate::harness::installation::SERVICE_KEY;
use crate::harness::process::{Process, print_message};
use crate::plan::Plan;
use crate::report::Report;

/// The goal in renewals per second. An invoice is created, finalized and paid with one request each, and Stripe allows 25
/// requests per second to each of these endpoints.
const GOAL: f64 = 24.0;

/// The number of subscriptions.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct StripeRenewals {
    subscriptions: u32,
}

pub(crate) fn measure(plan: &Plan, report: &mut Report) {
    let config = StripeRenewals {
        subscriptions: plan.stripe_renewals,
    };
    let mut process = Process::in_role("stripe", &json!(config), Cores::All);
    let renewals: f64 = from_value(process.wait_for("renewed")).unwrap();
    process.end();
    let name = "renewals/s within the limits of Stripe";
    report.billing(name, Backend::Memory, renewals, Some(GOAL));
}

/// The role of that process.
pub(crate) async fn run(config: StripeRenewals) {
    let settings = Settings {
        now: SystemClock.now().seconds(),
        runs: true,
        rate_limit: Some(RateLimit::default()),
        ..Settings::default()
    };
    let stripe = FakeStripe::start_with(settings).await.unwrap();
    let account = StripeAccount {
        secret_key: Secret::new(stripe.secret_key()),
        webhook_secrets: vec![Secret::new(stripe.webhook_secret())],
        publishable_key: None,
        base_url: stripe.base_url(),
    };
    let suite = Suite::builder()
        .in_memory()
        .service_key(SERVICE_KEY)
        .stripe(account)
        .settings(|settings| settings.billing.test_clock = true)
        .build();
    let world = World::of(Arc::new(suite.await.unwrap()), config.subscriptions - 1).await;
    let renewals = world.renew().await;
    let refused = stripe.requests().into_iter();
    let refused = refused.filter(|request| request.status == Some(429));
    assert_eq!(
        refused.count(),
        0,
        "requests were above the limits of Stripe"
    );
    print_message("renewed", &json!(renewals));
}
