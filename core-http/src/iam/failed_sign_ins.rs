//! Counts failed checks of passwords, so that nobody tries passwords without end.
//!
//! Who tries decides what counts. Strangers are limited by client (with one account, over all accounts, and over the number of
//! accounts that they try one password with), and an account makes all strangers together wait longer after each failure.
//! A browser that has signed in to the account before, and a session, have a counter of their own instead, so that
//! strangers delay only strangers.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use core_domain::gateway::{RateKey, RateKind, RatePlan, RatePolicy, RateSubject};
use core_domain::iam::AttemptRefusal;
use core_domain::kernel::{Code, Email, Error, SessionId};
use core_domain::use_case::iam::user::Lockout;
use serde_json::json;

use crate::kernel::shared_limiter::SharedLimiter;

/// The name of the policy that counts each account of a client once.
const ACCOUNT: &str = "account-of-client";

/// The client of requests that came over no connection, and of what is counted for all clients together.
pub(super) const NO_ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// Who presents a password.
#[derive(Clone, Copy, Debug)]
pub(super) enum Presenter<'a> {
    /// A client that nothing is known of.
    Stranger(IpAddr),
    /// A browser that has signed in to the account before, by the nonce in its device cookie.
    KnownDevice(&'a str),
    /// A person who is signed in.
    Session(&'a SessionId),
}

/// The failed checks of passwords.
#[derive(Debug)]
pub(super) struct FailedSignIns {
    limiter: Arc<SharedLimiter>,
    of_client: Limit,
    to_account: Limit,
    accounts_of_client: Limit,
    /// Counts an account of a client in [`Self::accounts_of_client`] once.
    account: RatePolicy,
}

/// A policy, and the one that reports a single refusal of each of its windows.
#[derive(Debug)]
struct Limit {
    policy: RatePolicy,
    reported: RatePolicy,
}

impl Limit {
    fn new(policy: &RatePolicy) -> Self {
        Self {
            policy: policy.clone(),
            reported: policy.once_per_window(&format!("{}-reported", policy.name())),
        }
    }
}

/// The refusal of a password that is not checked.
#[derive(Debug)]
pub(super) struct Refused {
    /// `RATE_LIMITED`.
    pub(super) error: Error,
    /// What the audit records: the first refusal of a delay, or of a window of the client.
    pub(super) lockout: Option<Lockout>,
}

/// A check that counts as failed until it has succeeded.
#[derive(Debug)]
pub(super) struct Attempt {
    /// What makes the next attempts wait.
    delay: RateKey,
    /// What was counted for a stranger's client.
    client: Option<ClientAttempt>,
}

/// What was counted for the client of a stranger.
#[derive(Debug)]
struct ClientAttempt {
    /// In the order of [`FailedSignIns::limits`].
    counted: Vec<RateKey>,
    accounts: RateKey,
    account: RateKey,
}

impl FailedSignIns {
    pub(super) fn new(plan: &RatePlan, limiter: Arc<SharedLimiter>) -> Self {
        let accounts_of_client = plan.policy(RateKind::FailedAccountsOfClient);
        Self {
            limiter,
            of_client: Limit::new(plan.policy(RateKind::FailedSignInsOfClient)),
            to_account: Limit::new(plan.policy(RateKind::FailedSignIns)),
            accounts_of_client: Limit::new(accounts_of_client),
            account: accounts_of_client.once_per_window(ACCOUNT),
        }
    }

    /// Counts a check before it is made, so that many at once are counted too.
    ///
    /// # Errors
    /// [`Refused`] when too many have failed, whether this one would or not.
    pub(super) async fn begin(
        &self,
        presenter: Presenter<'_>,
        email: &Email,
    ) -> Result<Attempt, Refused> {
        let delay = self.delay_key(presenter, email);
        let Presenter::Stranger(client) = presenter else {
            self.begin_delayed(delay).await?;
            return Ok(Attempt {
                delay,
                client: None,
            });
        };
        let (attempt, counted_account) = self.count_client(client, email).await?;
        if let Err(refused) = self.begin_delayed(delay).await {
            self.give_back_counted(&attempt).await;
            if counted_account {
                self.give_back_account(&attempt).await;
            }
            return Err(refused);
        }
        Ok(Attempt {
            delay,
            client: Some(attempt),
        })
    }

    /// Counts a stranger's attempt for their client. Returns too whether the account is a new one of the client.
    async fn count_client(
        &self,
        client: IpAddr,
        email: &Email,
    ) -> Result<(ClientAttempt, bool), Refused> {
        let (all, one) = (RateSubject::Everything, RateSubject::Text(email.as_str()));
        let mut attempt = ClientAttempt {
            counted: Vec::new(),
            accounts: RateKey::new(&self.accounts_of_client.policy, client, all),
            account: RateKey::new(&self.account, client, one),
        };
        for (limit, subject) in self.limits().into_iter().zip([all, one]) {
            match self.count(limit, client, subject).await {
                Ok(key) => attempt.counted.push(key),
                Err(refused) => {
                    self.give_back_counted(&attempt).await;
                    return Err(refused);
                }
            }
        }
        let is_new = self.limiter.take(attempt.account, &self.account).await;
        if !is_new.allowed {
            return Ok((attempt, false));
        }
        if let Err(refused) = self.count(&self.accounts_of_client, client, all).await {
            self.give_back_counted(&attempt).await;
            self.limiter.give_back(attempt.account, &self.account).await;
            return Err(refused);
        }
        Ok((attempt, true))
    }

    /// Counts one more of a client with a subject. Returns the key it was counted under.
    async fn count(
        &self,
        limit: &Limit,
        client: IpAddr,
        subject: RateSubject<'_>,
    ) -> Result<RateKey, Refused> {
        let key = RateKey::new(&limit.policy, client, subject);
        let usage = self.limiter.take(key, &limit.policy).await;
        if usage.allowed {
            return Ok(key);
        }
        let reported = RateKey::new(&limit.reported, client, subject);
        let is_first = self.limiter.take(reported, &limit.reported).await.allowed;
        Err(Refused {
            error: refusal(usage.reset_after),
            lockout: is_first.then(|| Lockout::OfClient {
                limit: limit.policy.name().to_owned(),
                left: Duration::from_secs(usage.reset_after),
            }),
        })
    }

    async fn begin_delayed(&self, delay: RateKey) -> Result<(), Refused> {
        match self.limiter.begin_attempt(delay).await {
            None => Ok(()),
            Some(refused) => Err(refused.into()),
        }
    }

    /// The password was right: the failures before it are forgotten.
    pub(super) async fn succeeded(&self, attempt: &Attempt) {
        if let Some(client) = &attempt.client {
            self.give_back_counted(client).await;
            self.give_back_account(client).await;
        }
        self.limiter.forget_attempts(attempt.delay).await;
    }

    /// Whoever reads mail at the address has set a new password: strangers who tried the old one delay them no longer.
    pub(super) async fn clear(&self, email: &Email) {
        let strangers = self.delay_key(Presenter::Stranger(NO_ADDRESS), email);
        self.limiter.forget_attempts(strangers).await;
    }

    /// The key of what waits: an account for all strangers, known or not, so that a delay tells nobody which accounts there are.
    fn delay_key(&self, presenter: Presenter<'_>, email: &Email) -> RateKey {
        let text = match presenter {
            Presenter::Stranger(_) => format!("account {email}"),
            Presenter::KnownDevice(nonce) => format!("device {nonce} {email}"),
            Presenter::Session(session) => format!("session {session}"),
        };
        RateKey::new(&self.account, NO_ADDRESS, RateSubject::Text(&text))
    }

    fn limits(&self) -> [&Limit; 2] {
        [&self.of_client, &self.to_account]
    }

    /// A mistake before the right password is no spraying. Of many that succeed at once, one gives the account back.
    async fn give_back_account(&self, attempt: &ClientAttempt) {
        if self.limiter.give_back(attempt.account, &self.account).await {
            let policy = &self.accounts_of_client.policy;
            self.limiter.give_back(attempt.accounts, policy).await;
        }
    }

    async fn give_back_counted(&self, attempt: &ClientAttempt) {
        for (limit, key) in self.limits().into_iter().zip(&attempt.counted) {
            self.limiter.give_back(*key, &limit.policy).await;
        }
    }
}

impl From<AttemptRefusal> for Refused {
    fn from(refused: AttemptRefusal) -> Self {
        let AttemptRefusal { failures, left, .. } = refused;
        Self {
            error: refusal(left.as_secs().max(1)),
            lockout: refused
                .is_first
                .then_some(Lockout::OfAccount { failures, left }),
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
