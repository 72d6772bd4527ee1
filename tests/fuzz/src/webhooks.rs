//! Webhooks: the signatures of received ones, and the secrets and URLs of sent ones.
//!
//! A signature is accepted exactly if the provider's secret made it over these bytes within the last 300 seconds.

use std::sync::Arc;

use core_domain::kernel::{Secret, Timestamp, hex};
use core_domain::port::{Payments, WebhookError};
use core_domain::shared::{WebhookSecret, WebhookUrl};
use core_domain::testing::ManualClock;
use core_stripe::{API_BASE_URL, StripeAccount, StripeOptions, StripePayments};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Headers, each with a body after it.
pub(crate) const SEEDS: &[&str] = &[
    "t=1793491200,v1=00\n{}",
    "v1=ff, t=1793491200,v0=aa\n{\"id\":\"evt_1\",\"type\":\"invoice.paid\",\"created\":1793491200,\"livemode\":false,\"api_version\":\"2026-10-29.endive\",\"data\":{\"object\":{\"id\":\"in_1\",\"object\":\"invoice\",\"customer\":\"cus_1\"}}}",
    "https://hooks.example.org:8443/core?x=1\n",
    "http://[::ffff:10.0.0.1]/x\n",
    "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz\n",
];

const SECRET: &str = "whsec_of_the_tests";
const NOW: i64 = 1_793_491_200;

/// Checks the claims for one header and body.
pub(crate) fn run(data: &[u8]) {
    let (header, body) = data
        .iter()
        .position(|byte| *byte == b'\n')
        .map_or((data, &[][..]), |at| (&data[..at], &data[at + 1..]));
    let Ok(header) = std::str::from_utf8(header) else {
        return;
    };
    check_received(header, body);
    if let Some(secret) = WebhookSecret::parse(header) {
        let again = WebhookSecret::parse(secret.expose());
        let sign =
            |secret: &WebhookSecret| secret.sign("msg_1", Timestamp::from_seconds(NOW), header);
        assert_eq!(again.as_ref().map(sign), Some(sign(&secret)));
    }
    if let Ok(url) = WebhookUrl::parse(header) {
        let again = WebhookUrl::parse(url.as_str());
        assert_eq!(
            again.map(|again| again.as_str().to_owned()).ok().as_deref(),
            Some(url.as_str())
        );
        assert!(url.as_str().starts_with(url.origin()));
    }
}

fn check_received(header: &str, body: &[u8]) {
    let payments = payments();
    let verify = |header: &str, now: i64| {
        payments
            .verify_webhook(body, header, Timestamp::from_seconds(now))
            .err()
    };
    let forged = verify(header, NOW);
    assert_eq!(
        forged,
        Some(WebhookError::Signature),
        "a forged signature is accepted"
    );
    let signed = format!("t={NOW},v1={}", digest(body));
    for near in [NOW - 300, NOW, NOW + 300] {
        let refused = verify(&signed, near);
        let is_trusted = !matches!(refused, Some(WebhookError::Signature | WebhookError::Stale));
        assert!(is_trusted, "a true signature is refused: {refused:?}");
    }
    for far in [NOW - 301, NOW + 301, i64::MIN / 1_000, i64::MAX / 1_000] {
        assert_eq!(verify(&signed, far), Some(WebhookError::Stale));
    }
}

fn digest(body: &[u8]) -> String {
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()) else {
        return String::new();
    };
    mac.update(format!("{NOW}.").as_bytes());
    mac.update(body);
    hex(&mac.finalize().into_bytes())
}

thread_local! {
    static PAYMENTS: StripePayments = {
        let account = StripeAccount {
            secret_key: Secret::new("sk_test_of_the_tests"),
            webhook_secrets: vec![Secret::new(SECRET)],
            publishable_key: None,
            base_url: API_BASE_URL.to_owned(),
        };
        let clock = Arc::new(ManualClock::at(Timestamp::from_seconds(NOW)));
        StripePayments::new(account, StripeOptions::default(), clock).unwrap()
    };
}

fn payments() -> StripePayments {
    PAYMENTS.with(Clone::clone)
}
