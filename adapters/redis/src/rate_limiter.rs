//! The rate limiter of all nodes.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use core_domain::gateway::{RateKey, RatePolicy, Usage};
use core_domain::iam::{AttemptRefusal, FAILURE_RETENTION, sign_in_delays};
use core_domain::kernel::{Timestamp, hex};
use core_domain::port::{RateLimiter, RateLimiterError};
use redis::{FromRedisValue, RedisError, Script, ScriptInvocation};

use crate::link::{Link, LinkError};

/// How long a key is kept after its window has ended, or after failures are forgotten. The clocks of nodes may differ
/// by this time without a window that ends too early for one of them.
pub const EXPIRY_MARGIN: Duration = Duration::from_secs(5);

/// Counts requests and failed attempts in Redis. See the crate documentation.
pub struct RedisRateLimiter {
    link: Arc<Link>,
    key_prefix: String,
    scripts: Scripts,
    /// The delays after 0, 1, 2 and more failures, in milliseconds.
    delays: Vec<u64>,
}

struct Scripts {
    count_request: Script,
    uncount_request: Script,
    begin_attempt: Script,
}

impl fmt::Debug for RedisRateLimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisRateLimiter")
            .field("link", &self.link)
            .field("key_prefix", &self.key_prefix)
            .finish_non_exhaustive()
    }
}

impl RedisRateLimiter {
    pub(crate) fn new(link: Arc<Link>, key_prefix: &str) -> Self {
        Self {
            link,
            key_prefix: key_prefix.to_owned(),
            scripts: Scripts {
                count_request: Script::new(include_str!("scripts/count_request.lua")),
                uncount_request: Script::new(include_str!("scripts/uncount_request.lua")),
                begin_attempt: Script::new(include_str!("scripts/begin_attempt.lua")),
            },
            delays: sign_in_delays().into_iter().map(millis).collect(),
        }
    }

    /// Returns the key of a window. Policies with different names have different windows.
    fn window_key(&self, key: RateKey, policy: &RatePolicy) -> String {
        let (prefix, name) = (&self.key_prefix, policy.name());
        format!("{prefix}rate:{name}:{}", hex(key.as_bytes()))
    }

    fn attempts_key(&self, key: RateKey) -> String {
        format!("{}attempts:{}", self.key_prefix, hex(key.as_bytes()))
    }

    async fn run<T: FromRedisValue>(
        &self,
        script: &ScriptInvocation<'_>,
    ) -> Result<T, RateLimiterError> {
        let mut connection = self.link.connection().map_err(unavailable)?;
        let outcome = script.invoke_async(&mut connection).await;
        self.result(outcome)
    }

    fn result<T>(&self, outcome: Result<T, RedisError>) -> Result<T, RateLimiterError> {
        match outcome {
            Err(error) if error.kind() == redis::ErrorKind::UnexpectedReturnType => Err(
                RateLimiterError::InvalidResponse(Box::new(LinkError::from(error))),
            ),
            outcome => self.link.outcome(outcome).map_err(unavailable),
        }
    }
}

fn unavailable(error: LinkError) -> RateLimiterError {
    RateLimiterError::Unavailable(Box::new(error))
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[async_trait]
impl RateLimiter for RedisRateLimiter {
    async fn count_request(
        &self,
        key: RateKey,
        policy: &RatePolicy,
        now: Timestamp,
    ) -> Result<Usage, RateLimiterError> {
        let mut script = self.scripts.count_request.key(self.window_key(key, policy));
        script.arg(now.millis()).arg(millis(policy.window()));
        script.arg(policy.quota()).arg(millis(EXPIRY_MARGIN));
        let (is_allowed, used, began): (bool, u32, i64) = self.run(&script).await?;
        let began = Timestamp::from_millis(began);
        Ok(Usage::of_window(policy, began, used, is_allowed, now))
    }

    async fn uncount_request(
        &self,
        key: RateKey,
        policy: &RatePolicy,
        now: Timestamp,
    ) -> Result<bool, RateLimiterError> {
        let window = self.window_key(key, policy);
        let mut script = self.scripts.uncount_request.key(window);
        script.arg(now.millis()).arg(millis(policy.window()));
        self.run(&script).await
    }

    async fn begin_attempt(
        &self,
        key: RateKey,
        now: Timestamp,
    ) -> Result<Option<AttemptRefusal>, RateLimiterError> {
        let mut script = self.scripts.begin_attempt.key(self.attempts_key(key));
        script.arg(now.millis()).arg(millis(FAILURE_RETENTION));
        script.arg(millis(EXPIRY_MARGIN)).arg(&self.delays);
        let (is_refused, failures, retry_after, is_first): (bool, u32, u64, bool) =
            self.run(&script).await?;
        Ok(is_refused.then_some(AttemptRefusal {
            failures,
            retry_after: Duration::from_millis(retry_after),
            is_first,
        }))
    }

    async fn forget_attempts(&self, key: RateKey) -> Result<(), RateLimiterError> {
        let mut connection = self.link.connection().map_err(unavailable)?;
        let mut delete = redis::cmd("DEL");
        delete.arg(self.attempts_key(key));
        let outcome = delete.exec_async(&mut connection).await;
        self.result(outcome)
    }
}
