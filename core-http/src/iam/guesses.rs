//! Counts the sign-ins of a client to an address that do not succeed, so that nobody tries passwords without end. The
//! gateway counts as well, but people sign in at IAM itself.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Mutex, PoisonError};

use core_domain::gateway::{Policy, RateKey, Windows};
use core_domain::kernel::{Code, Email, Error, Result, Timestamp};
use serde_json::json;

/// How many pairs of client and address are remembered at the most.
const CAPACITY: usize = 100_000;

/// Whom a client that came over no connection is counted as.
const NO_ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// The sign-ins that did not succeed.
#[derive(Debug)]
pub(super) struct Guesses {
    policy: Policy,
    windows: Mutex<Windows>,
}

/// A sign-in that has been counted as failed until it is known better.
#[derive(Debug)]
pub(super) struct Guess(RateKey);

impl Guesses {
    pub(super) fn new() -> Self {
        Self {
            policy: Policy::failed_sign_ins(),
            windows: Mutex::new(Windows::new(CAPACITY)),
        }
    }

    /// Counts a sign-in before its password is looked at, so that many at once are counted too.
    ///
    /// # Errors
    /// `RATE_LIMITED` when too many have failed, whether this one would or not.
    pub(super) fn begin(
        &self,
        client: Option<&str>,
        email: &Email,
        now: Timestamp,
    ) -> Result<Guess> {
        let client = client.and_then(|client| client.parse().ok());
        let key = RateKey::new(&self.policy, client.unwrap_or(NO_ADDRESS), email.as_str());
        let usage = self.with(|windows| windows.take(key, &self.policy, now));
        if usage.allowed {
            return Ok(Guess(key));
        }
        Err(Error::Refused {
            code: Code::RateLimited,
            message: "Too many requests. Please try again later.".to_owned(),
            details: json!({ "retryAfter": usage.reset_after }),
        })
    }

    /// The password was right.
    pub(super) fn was_right(&self, guess: &Guess) {
        self.with(|windows| windows.give_back(&guess.0));
    }

    fn with<T>(&self, work: impl FnOnce(&mut Windows) -> T) -> T {
        work(&mut self.windows.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
