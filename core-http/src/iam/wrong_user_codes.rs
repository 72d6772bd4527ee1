//! Counts the codes people enter that are none, so that nobody finds a device of somebody else by trying: those of a session
//! and those of an address.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Mutex, PoisonError};

use core_domain::gateway::{RateKey, RateKind, RatePlan, RatePolicy, RateSubject, Windows};
use core_domain::kernel::{Code, Error, Result, SessionId, Timestamp};
use serde_json::json;

/// How many sessions and addresses are remembered at the most.
const CAPACITY: usize = 100_000;

/// Where a session is said to come from, as it is counted wherever it comes from.
const ANYWHERE: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// The codes that were none.
#[derive(Debug)]
pub(super) struct WrongUserCodes {
    policy: RatePolicy,
    windows: Mutex<Windows>,
}

/// A code that counts as wrong until it was right.
#[derive(Debug, Default)]
pub(super) struct Attempt(Vec<RateKey>);

impl WrongUserCodes {
    pub(super) fn new(plan: &RatePlan) -> Self {
        Self {
            policy: plan.policy(RateKind::WrongUserCodes).clone(),
            windows: Mutex::new(Windows::new(CAPACITY)),
        }
    }

    /// Counts a code before it is looked at, so that many at once are counted too.
    ///
    /// # Errors
    /// `RATE_LIMITED` when too many were wrong, whether this one would be or not.
    pub(super) fn begin(
        &self,
        session: &SessionId,
        ip: Option<&str>,
        now: Timestamp,
    ) -> Result<Attempt> {
        let of_session = (ANYWHERE, RateSubject::Text(session.as_str()));
        let ip = ip.and_then(|ip| ip.parse().ok());
        let of_address = ip.map(|ip| (ip, RateSubject::Everything));
        let mut attempt = Attempt::default();
        for (client, subject) in std::iter::once(of_session).chain(of_address) {
            let key = RateKey::new(&self.policy, client, subject);
            let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
            let usage = windows.take(key, &self.policy, now);
            drop(windows);
            if !usage.allowed {
                self.was_right(&attempt);
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
    pub(super) fn was_right(&self, attempt: &Attempt) {
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        for key in &attempt.0 {
            windows.give_back(key);
        }
    }
}
