//! A limiter that several processes may share, and the counting in memory that stands in for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::task::Poll;
use std::time::Duration;

use core_domain::gateway::{RateKey, RatePolicy, Usage};
use core_domain::iam::AttemptRefusal;
use core_domain::kernel::Clock;
use core_domain::port::{RateLimiter, RateLimiterError};

use super::{App, MemoryRateLimiter};

/// How long a limiter that failed is not used.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Counts with a limiter, and in memory while that fails or is slow. Never fails.
#[derive(Debug)]
pub(crate) struct SharedLimiter {
    limiter: Arc<dyn RateLimiter>,
    fallback: MemoryRateLimiter,
    /// The longest wait for an answer of the limiter.
    timeout: Duration,
    clock: Arc<dyn Clock>,
    /// Until when a limiter that failed is not used, in milliseconds of the clock.
    disabled_until: AtomicI64,
}

impl SharedLimiter {
    /// Counts with the limiter, and in memory when it fails or takes longer than `timeout`.
    pub(crate) fn new(
        limiter: Arc<dyn RateLimiter>,
        timeout: Duration,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            limiter,
            fallback: MemoryRateLimiter::new(),
            timeout,
            clock,
            disabled_until: AtomicI64::new(0),
        }
    }

    /// Counts with the limiter of an app.
    pub(crate) fn of(app: &App) -> Self {
        let limiter = Arc::clone(&app.limiter);
        Self::new(limiter, app.options.limiter_timeout, Arc::clone(&app.clock))
    }

    /// Counts a request, see [`RateLimiter::take`].
    pub(crate) async fn take(&self, key: RateKey, policy: &RatePolicy) -> Usage {
        let now = self.clock.now();
        match self.ask(self.limiter.take(key, policy, now)).await {
            Some(usage) => usage,
            None => self.fallback.count(key, policy, now),
        }
    }

    /// Takes a counted request back, see [`RateLimiter::give_back`].
    pub(crate) async fn give_back(&self, key: RateKey, policy: &RatePolicy) -> bool {
        let now = self.clock.now();
        match self.ask(self.limiter.give_back(key, policy, now)).await {
            Some(had_one) => had_one,
            None => self.fallback.take_back(&key, policy, now),
        }
    }

    /// Counts an attempt as failed, see [`RateLimiter::begin_attempt`].
    pub(crate) async fn begin_attempt(&self, key: RateKey) -> Option<AttemptRefusal> {
        let now = self.clock.now();
        match self.ask(self.limiter.begin_attempt(key, now)).await {
            Some(refusal) => refusal,
            None => self.fallback.count_attempt(key, now).await,
        }
    }

    /// Forgets the failed attempts of a key, those counted in memory too.
    pub(crate) async fn forget_attempts(&self, key: RateKey) {
        self.fallback.forget(&key).await;
        self.ask(self.limiter.forget_attempts(key)).await;
    }

    /// The answer of the limiter; `None` when it failed, is late, or has failed less than a second ago.
    async fn ask<T>(&self, asked: impl Future<Output = Result<T, RateLimiterError>>) -> Option<T> {
        let now = self.clock.now();
        if now.millis() < self.disabled_until.load(Ordering::Relaxed) {
            return None;
        }
        match self.answer(asked).await {
            Ok(answer) => Some(answer),
            Err(error) => {
                tracing::warn!(
                    target: "core::rate_limit",
                    error = ?error,
                    "the rate limiter failed; counting in memory"
                );
                let until = now.plus(RETRY_INTERVAL).millis();
                self.disabled_until.store(until, Ordering::Relaxed);
                None
            }
        }
    }

    async fn answer<T>(
        &self,
        asked: impl Future<Output = Result<T, RateLimiterError>>,
    ) -> Result<T, RateLimiterError> {
        let mut asked = std::pin::pin!(asked);
        // No timer is needed when the answer is ready at once.
        if let Poll::Ready(answer) = futures_util::poll!(asked.as_mut()) {
            return answer;
        }
        tokio::time::timeout(self.timeout, asked)
            .await
            .unwrap_or_else(|late| Err(RateLimiterError::Unavailable(Box::new(late))))
    }
}
