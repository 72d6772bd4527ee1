//! Counts device codes that do not exist, per session and per client. This prevents guessing the code of another
//! person's device.

use std::sync::Arc;

use core_domain::gateway::{RateKey, RateKind, RatePlan, RatePolicy, RateSubject};
use core_domain::kernel::{Code, Error, Result, SessionId};
use serde_json::json;

use super::failed_sign_ins::NO_ADDRESS;
use crate::kernel::admission::limiter::SharedLimiter;

/// The counters of wrong device codes.
#[derive(Debug)]
pub(super) struct WrongUserCodes {
    limiter: Arc<SharedLimiter>,
    policy: RatePolicy,
}

/// A code that counts as wrong until [`WrongUserCodes::record_success`] is called.
#[derive(Debug, Default)]
pub(super) struct Attempt(Vec<RateKey>);

impl WrongUserCodes {
    pub(super) fn new(plan: &RatePlan, limiter: Arc<SharedLimiter>) -> Self {
        Self {
            limiter,
            policy: plan.policy(RateKind::WrongUserCodes).clone(),
        }
    }

    /// Counts a code before it is looked up, so that concurrent look-ups are counted too.
    ///
    /// # Errors
    /// Returns `RATE_LIMITED` after too many wrong codes, whether or not this one is right.
    pub(super) async fn begin(&self, session: &SessionId, ip: Option<&str>) -> Result<Attempt> {
        let of_session = (NO_ADDRESS, RateSubject::Text(session.as_str()));
        let ip = ip.and_then(|ip| ip.parse().ok());
        let of_client = ip.map(|ip| (ip, RateSubject::Everything));
        let mut attempt = Attempt::default();
        for (client, subject) in std::iter::once(of_session).chain(of_client) {
            let key = RateKey::new(&self.policy, client, subject);
            let usage = self.limiter.take(key, &self.policy).await;
            if !usage.is_allowed {
                self.record_success(&attempt).await;
                return Err(Error::Refused {
                    code: Code::RateLimited,
                    message: "Too many wrong codes. Please try again later.".to_owned(),
                    details: json!({ "retryAfter": usage.reset_after }),
                });
            }
            attempt.0.push(key);
        }
        Ok(attempt)
    }

    /// Removes a correct code from the counters.
    pub(super) async fn record_success(&self, attempt: &Attempt) {
        for key in &attempt.0 {
            self.limiter.give_back(*key, &self.policy).await;
        }
    }
}
