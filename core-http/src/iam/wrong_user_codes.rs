//! Counts the device codes that people enter and that do not exist, so that nobody finds a device of somebody else by trying:
//! those of a session and those of a client.

use std::sync::Arc;

use core_domain::gateway::{RateKey, RateKind, RatePlan, RatePolicy, RateSubject};
use core_domain::kernel::{Code, Error, Result, SessionId};
use serde_json::json;

use super::failed_sign_ins::NO_ADDRESS;
use crate::kernel::shared_limiter::SharedLimiter;

/// The codes that do not exist.
#[derive(Debug)]
pub(super) struct WrongUserCodes {
    limiter: Arc<SharedLimiter>,
    policy: RatePolicy,
}

/// A code that counts as wrong until it was right.
#[derive(Debug, Default)]
pub(super) struct Attempt(Vec<RateKey>);

impl WrongUserCodes {
    pub(super) fn new(plan: &RatePlan, limiter: Arc<SharedLimiter>) -> Self {
        Self {
            limiter,
            policy: plan.policy(RateKind::WrongUserCodes).clone(),
        }
    }

    /// Counts a code before it is looked up, so that many at once are counted too.
    ///
    /// # Errors
    /// `RATE_LIMITED` when too many were wrong, whether this one would be or not.
    pub(super) async fn begin(&self, session: &SessionId, ip: Option<&str>) -> Result<Attempt> {
        let of_session = (NO_ADDRESS, RateSubject::Text(session.as_str()));
        let ip = ip.and_then(|ip| ip.parse().ok());
        let of_client = ip.map(|ip| (ip, RateSubject::Everything));
        let mut attempt = Attempt::default();
        for (client, subject) in std::iter::once(of_session).chain(of_client) {
            let key = RateKey::new(&self.policy, client, subject);
            let usage = self.limiter.take(key, &self.policy).await;
            if !usage.allowed {
                self.was_right(&attempt).await;
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

    /// The code was right: it is not counted.
    pub(super) async fn was_right(&self, attempt: &Attempt) {
        for key in &attempt.0 {
            self.limiter.give_back(*key, &self.policy).await;
        }
    }
}
