//! Counts the sign-ins that do not succeed, so that nobody tries passwords without end: those of a client to an account,
//! those of a client to all accounts, and those of everybody to an account, which then waits longer and longer.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use core_domain::gateway::{RateKey, RateKind, RatePlan, RatePolicy, RateSubject, Windows};
use core_domain::iam::{FAILURES_FORGOTTEN_AFTER, TokenHash, sign_in_delay};
use core_domain::kernel::{Code, Email, Error, Result, Timestamp};
use moka::future::Cache;
use moka::ops::compute::Op;
use serde_json::json;

/// How many clients, accounts and pairs of them are remembered at the most.
const CAPACITY: usize = 100_000;

/// Whom a client that came over no connection is counted as.
const NO_ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// The sign-ins that did not succeed.
#[derive(Debug)]
pub(super) struct FailedSignIns {
    of_client: Limit,
    to_account: Limit,
    /// By the hash of the address, known or not: nobody shall learn from a delay which accounts there are.
    accounts: Cache<TokenHash, AccountFailures>,
}

/// A policy with windows of its own, so that the keys of one cannot push out those of another.
#[derive(Debug)]
struct Limit {
    policy: RatePolicy,
    windows: Mutex<Windows>,
}

impl Limit {
    fn new(policy: &RatePolicy) -> Self {
        Self {
            policy: policy.clone(),
            windows: Mutex::new(Windows::new(CAPACITY)),
        }
    }

    fn windows(&self) -> MutexGuard<'_, Windows> {
        self.windows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Clone, Copy, Debug)]
struct AccountFailures {
    count: u32,
    last: Timestamp,
}

/// A sign-in that counts as failed until it has succeeded.
#[derive(Debug)]
pub(super) struct Attempt {
    /// In the order of [`FailedSignIns::limits`].
    counted: Vec<RateKey>,
    account: TokenHash,
}

impl FailedSignIns {
    pub(super) fn new(plan: &RatePlan) -> Self {
        Self {
            of_client: Limit::new(plan.policy(RateKind::FailedSignInsOfClient)),
            to_account: Limit::new(plan.policy(RateKind::FailedSignIns)),
            accounts: Cache::new(CAPACITY as u64),
        }
    }

    /// Counts a sign-in before its password is looked at, so that many at once are counted too.
    ///
    /// # Errors
    /// `RATE_LIMITED` when too many have failed, whether this one would or not.
    pub(super) async fn begin(
        &self,
        client: Option<&str>,
        email: &Email,
        now: Timestamp,
    ) -> Result<Attempt> {
        let client = client.and_then(|client| client.parse().ok());
        let client = client.unwrap_or(NO_ADDRESS);
        let mut attempt = Attempt {
            counted: Vec::new(),
            account: TokenHash::of(email.as_str()),
        };
        let subjects = [RateSubject::Everything, RateSubject::Text(email.as_str())];
        for (limit, subject) in self.limits().into_iter().zip(subjects) {
            let key = RateKey::new(&limit.policy, client, subject);
            let usage = limit.windows().take(key, &limit.policy, now);
            if !usage.allowed {
                self.give_back(&attempt);
                return Err(refusal(usage.reset_after));
            }
            attempt.counted.push(key);
        }
        if let Some(left) = self.count_for_account(&attempt.account, now).await {
            self.give_back(&attempt);
            return Err(refusal(left.as_secs().max(1)));
        }
        Ok(attempt)
    }

    /// Counts a sign-in to the account, unless it has to wait; answers for how long then.
    async fn count_for_account(&self, account: &TokenHash, now: Timestamp) -> Option<Duration> {
        let mut left = None;
        self.accounts
            .entry_by_ref(account)
            .and_compute_with(|entry| {
                let known = entry.map(moka::Entry::into_value);
                let known = known.filter(|f| now.since(f.last) < FAILURES_FORGOTTEN_AFTER);
                let count = known.map_or(0, |failures| failures.count);
                let until = known.map(|failures| failures.last.plus(sign_in_delay(count)));
                let until = until.filter(|until| now < *until);
                left = until.map(|until| until.since(now));
                std::future::ready(match left {
                    Some(_) => Op::Nop,
                    None => Op::Put(AccountFailures {
                        count: count.saturating_add(1),
                        last: now,
                    }),
                })
            })
            .await;
        left
    }

    /// The password was right: what failed before is forgotten.
    pub(super) async fn succeeded(&self, attempt: &Attempt) {
        self.give_back(attempt);
        self.accounts.invalidate(&attempt.account).await;
    }

    fn limits(&self) -> [&Limit; 2] {
        [&self.of_client, &self.to_account]
    }

    fn give_back(&self, attempt: &Attempt) {
        for (limit, key) in self.limits().into_iter().zip(&attempt.counted) {
            limit.windows().give_back(key);
        }
    }
}

fn refusal(retry_after: u64) -> Error {
    Error::Refused {
        code: Code::RateLimited,
        message: "Too many requests. Please try again later.".to_owned(),
        details: json!({ "retryAfter": retry_after }),
    }
}
