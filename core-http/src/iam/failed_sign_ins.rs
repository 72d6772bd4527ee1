//! Counts failed password checks and limits how many passwords a client can try.
//!
//! The limits depend on the presenter of the password. A stranger is limited per client: with one account, over all
//! accounts, and in the number of different accounts. In addition, each failure with an account increases a delay that
//! all strangers share for it.
//!
//! A browser that signed in to the account before, and a session, have a delay of their own instead. Strangers
//! therefore delay only other strangers.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use core_domain::gateway::{RateKey, RateKind, RatePlan, RatePolicy, RateSubject};
use core_domain::iam::AttemptRefusal;
use core_domain::kernel::{Code, Email, Error, SessionId};
use core_domain::use_case::iam::user::Lockout;
use serde_json::json;

use crate::kernel::admission::limiter::SharedLimiter;

/// The name of the policy that counts each account once per client.
const ACCOUNT: &str = "account-of-client";

/// The client address of requests without a connection, and of everything that is counted for all clients together.
pub(super) const NO_ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// The presenter of a password.
#[derive(Clone, Copy, Debug)]
pub(super) enum Presenter<'a> {
    /// A client without a session and without a device cookie for the account.
    Stranger(IpAddr),
    /// A browser that signed in to the account before, identified by the nonce in its device cookie.
    KnownDevice(&'a str),
    /// A person who is signed in with this session.
    Session(&'a SessionId),
}

/// The counters of failed password checks.
#[derive(Debug)]
pub(super) struct FailedSignIns {
    limiter: Arc<SharedLimiter>,
    of_client: Limit,
    to_account: Limit,
    accounts_of_client: Limit,
    /// Counts each account of a client once for `accounts_of_client`.
    account: RatePolicy,
}

/// A policy, and a second one that allows one audit entry per window of the first.
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
pub(super) struct AttemptRefused {
    /// The error for the client, always `RATE_LIMITED`.
    pub(super) error: Error,
    /// The lockout to record in the audit log. Present only for the first refusal of a delay or of a client window.
    pub(super) lockout: Option<Lockout>,
}

/// A password check that counts as failed until [`FailedSignIns::record_success`] is called.
#[derive(Debug)]
pub(super) struct Attempt {
    /// The key whose failures delay the next attempts.
    delay: RateKey,
    /// The counters of a stranger's client; `None` for other presenters.
    client: Option<ClientAttempt>,
}

/// The counters that an attempt of a stranger increased.
#[derive(Debug)]
struct ClientAttempt {
    /// The keys in the order of `FailedSignIns::limits`.
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

    /// Counts a check before it is made, so that concurrent checks are counted too.
    ///
    /// # Errors
    /// Returns [`AttemptRefused`] after too many failures, whether or not this password is right.
    pub(super) async fn begin(
        &self,
        presenter: Presenter<'_>,
        email: &Email,
    ) -> Result<Attempt, AttemptRefused> {
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

    /// Counts an attempt of a stranger for its client. The returned flag tells whether the account is new for the
    /// client in this window.
    async fn count_client(
        &self,
        client: IpAddr,
        email: &Email,
    ) -> Result<(ClientAttempt, bool), AttemptRefused> {
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
        if !is_new.is_allowed {
            return Ok((attempt, false));
        }
        if let Err(refused) = self.count(&self.accounts_of_client, client, all).await {
            self.give_back_counted(&attempt).await;
            self.limiter.give_back(attempt.account, &self.account).await;
            return Err(refused);
        }
        Ok((attempt, true))
    }

    /// Counts one attempt of a client with a subject. Returns the key of the counter.
    async fn count(
        &self,
        limit: &Limit,
        client: IpAddr,
        subject: RateSubject<'_>,
    ) -> Result<RateKey, AttemptRefused> {
        let key = RateKey::new(&limit.policy, client, subject);
        let usage = self.limiter.take(key, &limit.policy).await;
        if usage.is_allowed {
            return Ok(key);
        }
        let reported = RateKey::new(&limit.reported, client, subject);
        let is_first = self
            .limiter
            .take(reported, &limit.reported)
            .await
            .is_allowed;
        Err(AttemptRefused {
            error: refusal(usage.reset_after),
            lockout: is_first.then(|| Lockout::OfClient {
                limit: limit.policy.name().to_owned(),
                left: Duration::from_secs(usage.reset_after),
            }),
        })
    }

    async fn begin_delayed(&self, delay: RateKey) -> Result<(), AttemptRefused> {
        match self.limiter.begin_attempt(delay).await {
            None => Ok(()),
            Some(refused) => Err(refused.into()),
        }
    }

    /// Removes a successful attempt from the counters and clears the delay of its presenter.
    pub(super) async fn record_success(&self, attempt: &Attempt) {
        if let Some(client) = &attempt.client {
            self.give_back_counted(client).await;
            self.give_back_account(client).await;
        }
        self.limiter.forget_attempts(attempt.delay).await;
    }

    /// Clears the delay of strangers for an account. Called after its owner set a new password through a mailed link.
    pub(super) async fn clear(&self, email: &Email) {
        let strangers = self.delay_key(Presenter::Stranger(NO_ADDRESS), email);
        self.limiter.forget_attempts(strangers).await;
    }

    /// Returns the key of the delay. All strangers share one key per email address. It exists for unknown addresses
    /// too, so that a delay does not reveal which accounts exist.
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

    /// Removes the account from the client's count of accounts: a wrong password before the right one is not password
    /// spraying. Of several attempts that succeed at once, only one removes it.
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

impl From<AttemptRefusal> for AttemptRefused {
    fn from(refused: AttemptRefusal) -> Self {
        let AttemptRefusal {
            failures,
            retry_after: left,
            ..
        } = refused;
        Self {
            error: refusal(left.as_secs().max(1)),
            lockout: refused.is_first.then_some(Lockout::OfAccount {
                failures,
                retry_after: left,
            }),
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
