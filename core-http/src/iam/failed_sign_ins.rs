//! Counts the sign-ins that do not succeed, so that nobody tries passwords without end: those of a client to an account,
//! those of a client to all accounts, the accounts a client tries one password with (password spraying), and those of
//! everybody to an account, which then waits longer and longer.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use core_domain::gateway::{RateKey, RateKind, RatePlan, RatePolicy, RateSubject, Windows};
use core_domain::iam::{FAILURES_FORGOTTEN_AFTER, TokenHash, sign_in_delay};
use core_domain::kernel::{Code, Email, Error, Timestamp};
use core_domain::use_case::iam::user::Lockout;
use moka::future::Cache;
use moka::ops::compute::Op;
use serde_json::json;

/// How many clients, accounts and pairs of them are remembered at the most.
const CAPACITY: usize = 100_000;

/// The policy of the accounts that a client failed with already.
const ACCOUNT: &str = "account-of-client";

/// The policy of the refusals that are told of.
const TOLD: &str = "told";

/// Whom a client that came over no connection is counted as.
const NO_ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// The sign-ins that did not succeed.
#[derive(Debug)]
pub(super) struct FailedSignIns {
    of_client: Limit,
    to_account: Limit,
    accounts_of_client: Limit,
    /// The accounts that count in [`Self::accounts_of_client`] already.
    known_of_client: Limit,
    /// By the hash of the address, known or not: nobody shall learn from a delay which accounts there are.
    accounts: Cache<TokenHash, AccountFailures>,
}

/// A policy with windows of its own, so that the keys of one cannot push out those of another.
#[derive(Debug)]
struct Limit {
    policy: RatePolicy,
    /// Of a window one refusal is told of.
    told: RatePolicy,
    windows: Mutex<Windows>,
}

impl Limit {
    fn new(policy: &RatePolicy) -> Self {
        Self {
            policy: policy.clone(),
            told: policy.once_per_window(TOLD),
            windows: Mutex::new(Windows::new(CAPACITY)),
        }
    }

    /// Counts one more of a client with a subject; answers what it was counted under.
    fn count(
        &self,
        client: IpAddr,
        subject: RateSubject<'_>,
        now: Timestamp,
    ) -> Result<RateKey, Refused> {
        let key = RateKey::new(&self.policy, client, subject);
        let mut windows = self.windows();
        let usage = windows.take(key, &self.policy, now);
        if usage.allowed {
            return Ok(key);
        }
        let told = RateKey::new(&self.told, client, subject);
        let is_first = windows.take(told, &self.told, now).allowed;
        Err(Refused {
            error: refusal(usage.reset_after),
            lockout: is_first.then(|| Lockout::OfClient {
                limit: self.policy.name().to_owned(),
                left: Duration::from_secs(usage.reset_after),
            }),
        })
    }

    fn windows(&self) -> MutexGuard<'_, Windows> {
        self.windows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Clone, Copy, Debug)]
struct AccountFailures {
    count: u32,
    last: Timestamp,
    /// Whether a sign-in was refused since the last failure.
    refused: bool,
}

/// A sign-in that is not looked at.
#[derive(Debug)]
pub(super) struct Refused {
    /// `RATE_LIMITED`.
    pub(super) error: Error,
    /// The first one of a delay of the account, or of a window of the client, tells of it.
    pub(super) lockout: Option<Lockout>,
}

/// A sign-in that counts as failed until it has succeeded.
#[derive(Debug)]
pub(super) struct Attempt {
    /// In the order of [`FailedSignIns::limits`].
    counted: Vec<RateKey>,
    /// Of the client, and of the account it tries.
    client_and_account: [RateKey; 2],
    /// Whether the client had not failed with the account yet.
    counted_account: bool,
    account: TokenHash,
    at: Timestamp,
}

impl FailedSignIns {
    pub(super) fn new(plan: &RatePlan) -> Self {
        let accounts_of_client = plan.policy(RateKind::FailedAccountsOfClient);
        Self {
            of_client: Limit::new(plan.policy(RateKind::FailedSignInsOfClient)),
            to_account: Limit::new(plan.policy(RateKind::FailedSignIns)),
            accounts_of_client: Limit::new(accounts_of_client),
            known_of_client: Limit::new(&accounts_of_client.once_per_window(ACCOUNT)),
            accounts: Cache::new(CAPACITY as u64),
        }
    }

    /// Counts a sign-in before its password is looked at, so that many at once are counted too.
    ///
    /// # Errors
    /// [`Refused`] when too many have failed, whether this one would or not.
    pub(super) async fn begin(
        &self,
        client: Option<&str>,
        email: &Email,
        now: Timestamp,
    ) -> Result<Attempt, Refused> {
        let client = client.and_then(|client| client.parse().ok());
        let client = client.unwrap_or(NO_ADDRESS);
        let (all, one) = (RateSubject::Everything, RateSubject::Text(email.as_str()));
        let mut attempt = Attempt {
            counted: Vec::new(),
            client_and_account: [
                RateKey::new(&self.accounts_of_client.policy, client, all),
                RateKey::new(&self.known_of_client.policy, client, one),
            ],
            counted_account: false,
            account: TokenHash::of(email.as_str()),
            at: now,
        };
        for (limit, subject) in self.limits().into_iter().zip([all, one]) {
            match limit.count(client, subject, now) {
                Ok(key) => attempt.counted.push(key),
                Err(refused) => {
                    self.give_back(&attempt);
                    return Err(refused);
                }
            }
        }
        if let Err(refused) = self.count_account_of_client(&mut attempt, client, now) {
            self.give_back(&attempt);
            return Err(refused);
        }
        if let Some(lockout) = self.count_for_account(&attempt.account, now).await {
            self.give_back(&attempt);
            return Err(lockout);
        }
        Ok(attempt)
    }

    /// Counts the account, when the client had not failed with it yet.
    fn count_account_of_client(
        &self,
        attempt: &mut Attempt,
        client: IpAddr,
        now: Timestamp,
    ) -> Result<(), Refused> {
        let [_, account] = attempt.client_and_account;
        let mut known = self.known_of_client.windows();
        if !known
            .take(account, &self.known_of_client.policy, now)
            .allowed
        {
            return Ok(());
        }
        let all = RateSubject::Everything;
        if let Err(refused) = self.accounts_of_client.count(client, all, now) {
            known.give_back(&account);
            return Err(refused);
        }
        attempt.counted_account = true;
        Ok(())
    }

    /// Counts a sign-in to the account, unless it has to wait.
    async fn count_for_account(&self, account: &TokenHash, now: Timestamp) -> Option<Refused> {
        let mut refused = None;
        self.accounts
            .entry_by_ref(account)
            .and_compute_with(|entry| {
                let known = entry.map(moka::Entry::into_value);
                let known = known.filter(|f| now.since(f.last) < FAILURES_FORGOTTEN_AFTER);
                refused = known.and_then(|known| known.refusal(now));
                let next = match (known, &refused) {
                    // A lock-out is told of once.
                    (Some(known), Some(_)) => AccountFailures {
                        refused: true,
                        ..known
                    },
                    (known, _) => AccountFailures {
                        count: known.map_or(0, |known| known.count).saturating_add(1),
                        last: now,
                        refused: false,
                    },
                };
                std::future::ready(Op::Put(next))
            })
            .await;
        refused
    }

    /// The password was right: what failed before is forgotten.
    pub(super) async fn succeeded(&self, attempt: &Attempt) {
        self.give_back_counted(attempt);
        self.give_back_account_of_client(attempt);
        self.accounts.invalidate(&attempt.account).await;
    }

    /// Whoever reads mail at the address has set a new password: those who tried the old one keep them out no longer.
    pub(super) async fn clear(&self, email: &Email) {
        self.accounts
            .invalidate(&TokenHash::of(email.as_str()))
            .await;
    }

    fn limits(&self) -> [&Limit; 2] {
        [&self.of_client, &self.to_account]
    }

    fn give_back(&self, attempt: &Attempt) {
        self.give_back_counted(attempt);
        if attempt.counted_account {
            let [client, account] = attempt.client_and_account;
            self.known_of_client.windows().give_back(&account);
            self.accounts_of_client.windows().give_back(&client);
        }
    }

    /// A mistake before the right password is no spraying either. Of many that succeed at once, one gives the account back.
    fn give_back_account_of_client(&self, attempt: &Attempt) {
        let [client, account] = attempt.client_and_account;
        let mut known = self.known_of_client.windows();
        let usage = known.peek(&account, &self.known_of_client.policy, attempt.at);
        if !usage.allowed {
            known.give_back(&account);
            self.accounts_of_client.windows().give_back(&client);
        }
    }

    fn give_back_counted(&self, attempt: &Attempt) {
        for (limit, key) in self.limits().into_iter().zip(&attempt.counted) {
            limit.windows().give_back(key);
        }
    }
}

impl AccountFailures {
    /// The refusal of a sign-in, when the account has to wait.
    fn refusal(&self, now: Timestamp) -> Option<Refused> {
        let until = self.last.plus(sign_in_delay(self.count));
        if now >= until {
            return None;
        }
        let left = until.since(now);
        let lockout = Lockout::OfAccount {
            failures: self.count,
            left,
        };
        Some(Refused {
            error: refusal(left.as_secs().max(1)),
            lockout: (!self.refused).then_some(lockout),
        })
    }
}

fn refusal(retry_after: u64) -> Error {
    Error::Refused {
        code: Code::RateLimited,
        message: "Too many requests. Please try again later.".to_owned(),
        details: json!({ "retryAfter": retry_after }),
    }
}
