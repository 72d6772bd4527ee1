//! The check of the payment provider.

#[cfg(feature = "stripe")]
use std::time::{Duration, Instant};

#[cfg(feature = "stripe")]
use core_domain::port::{Cause, Payments, PaymentsError};
#[cfg(feature = "stripe")]
use tokio::time::timeout;

use super::Finding;
#[cfg(feature = "stripe")]
use crate::StripeAccount;
use crate::SuiteBuilder;

impl SuiteBuilder {
    /// Reads the events of this second at Stripe, which shows whether the key is valid. Returns `None` without a Stripe
    /// account.
    #[cfg(feature = "stripe")]
    pub(super) async fn payment_finding(&self) -> Option<Finding> {
        let account = self.stripe.as_ref().filter(|_| self.payments.is_none())?;
        let clock = self.clock_or_system();
        let now = clock.now();
        let mut options = self.settings.stripe.clone();
        options.timeout = options.timeout.min(super::CHECK_TIMEOUT);
        let stripe = match core_stripe::StripePayments::new(account.clone(), options, clock) {
            Ok(stripe) => stripe,
            Err(error) => return Some(Finding::failure("payments", error.to_string())),
        };
        let began = Instant::now();
        let response = timeout(super::CHECK_TIMEOUT, stripe.events_since(now)).await;
        let outcome = response
            .unwrap_or_else(|elapsed| Err(PaymentsError::Unavailable(Cause::new(elapsed))))
            .map(drop);
        Some(stripe_finding(account, outcome, began.elapsed()))
    }

    /// Returns `None`: without the feature `stripe` there is no account.
    #[cfg(not(feature = "stripe"))]
    #[expect(clippy::unused_async, reason = "with the feature it connects")]
    pub(super) async fn payment_finding(&self) -> Option<Finding> {
        None
    }
}

/// Returns the finding for the outcome of a request to Stripe.
#[cfg(feature = "stripe")]
fn stripe_finding(
    account: &StripeAccount,
    outcome: Result<(), PaymentsError>,
    took: Duration,
) -> Finding {
    let subject = "payments";
    let error = match outcome {
        Ok(()) => {
            let mode = match account.is_live() {
                true => "live",
                false => "test",
            };
            let text = format!("Stripe accepts the key, in {mode} mode ({took:.0?})");
            return match account.webhook_secrets.is_empty() {
                true => Finding::warning(
                    subject,
                    format!(
                        "{text}, but webhooks are refused: set the secret of the webhook endpoint"
                    ),
                ),
                false => Finding::fine(subject, text),
            };
        }
        Err(error) => error,
    };
    let is_limited = matches!(error, PaymentsError::Throttled(_));
    let advice = match &error {
        PaymentsError::Unauthorized(_) => {
            "check the secret key and its mode, and the permissions of a restricted key"
        }
        PaymentsError::Throttled(_) => "other requests of the account use up its limit; try again",
        _ => "check the network and the base URL of the API",
    };
    let text = format!("{}; {advice}", Cause::new(error));
    match is_limited {
        true => Finding::warning(subject, text),
        false => Finding::failure(subject, text),
    }
}

#[cfg(all(test, feature = "stripe"))]
mod tests {
    use core_domain::kernel::Secret;

    use super::*;
    use crate::doctor::Severity;

    fn account(base_url: &str) -> StripeAccount {
        StripeAccount {
            secret_key: Secret::new("sk_test_open_sesame"),
            webhook_secrets: vec![Secret::new("whsec_test")],
            publishable_key: None,
            base_url: base_url.to_owned(),
        }
    }

    #[test]
    fn each_outcome_says_what_to_do() {
        let account = account("http://127.0.0.1:1");
        for (outcome, severity, part) in [
            (Ok(()), Severity::Fine, "test mode"),
            (
                Err(PaymentsError::Unauthorized("401".to_owned())),
                Severity::Failure,
                "restricted key",
            ),
            (
                Err(PaymentsError::Throttled(Duration::from_secs(1))),
                Severity::Warning,
                "try again",
            ),
            (
                Err(PaymentsError::Unavailable("no connection".into())),
                Severity::Failure,
                "no connection; check the network",
            ),
        ] {
            let found = stripe_finding(&account, outcome, Duration::ZERO);
            assert_eq!(found.severity, severity, "{found}");
            assert!(found.text.contains(part), "{found}");
        }
        let mut silent = account;
        silent.webhook_secrets.clear();
        let found = stripe_finding(&silent, Ok(()), Duration::ZERO);
        assert_eq!(found.severity, Severity::Warning, "{found}");
        assert!(found.text.contains("webhook"), "{found}");
    }

    #[tokio::test]
    async fn an_account_that_cannot_be_reached_is_a_failure_without_the_key() {
        let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", closed.local_addr().unwrap());
        drop(closed);
        let builder = SuiteBuilder::default().stripe(account(&url));
        let found = builder.payment_finding().await.unwrap();
        assert_eq!(found.severity, Severity::Failure, "{found}");
        assert!(!found.text.contains("sesame"), "{found}");
        assert_eq!(SuiteBuilder::default().payment_finding().await, None);
    }
}
