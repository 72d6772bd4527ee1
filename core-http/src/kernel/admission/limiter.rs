//! Rate limiters: [`MemoryRateLimiter`] counts in memory, and [`SharedLimiter`] uses another limiter and falls back to
//! memory if that fails.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::task::Poll;
use std::time::Duration;

use async_trait::async_trait;
use core_domain::gateway::{RateKey, RatePolicy, Usage, Windows};
use core_domain::iam::{AttemptRefusal, FailedAttempts};
use core_domain::kernel::{Clock, Timestamp};
use core_domain::port::{RateLimiter, RateLimiterError};
use moka::future::Cache;
use moka::ops::compute::Op;

use super::rate_metrics;
use crate::kernel::metrics::{Counter, Metrics};
use crate::kernel::process::app::App;

/// The default capacity of a policy's table, in keys.
const CAPACITY: usize = 100_000;

/// The number of shards of a table. Each has a separate lock, to reduce contention.
const SHARDS: usize = 16;

/// The counters of one policy, by key.
#[derive(Debug)]
struct Table {
    shards: Vec<Mutex<Windows>>,
}

impl Table {
    fn new(capacity: usize) -> Self {
        let shard = || Mutex::new(Windows::new(capacity / SHARDS));
        Self {
            shards: std::iter::repeat_with(shard).take(SHARDS).collect(),
        }
    }

    /// Runs a function on the shard of a key.
    fn with<T>(&self, key: &RateKey, work: impl FnOnce(&mut Windows) -> T) -> T {
        let at = usize::from(key.as_bytes()[0]) % SHARDS;
        work(
            &mut self.shards[at]
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }
}

/// A rate limiter that counts in memory. Each policy has a table of limited size. A full table evicts the keys that
/// have been idle for longest. Clones share their state. Never fails.
#[derive(Clone, Debug)]
pub struct MemoryRateLimiter {
    /// The tables by name of the policy. Policies come from the settings, so there are few.
    tables: Arc<RwLock<HashMap<String, Arc<Table>>>>,
    attempts: Cache<RateKey, FailedAttempts>,
    capacity: usize,
}

impl MemoryRateLimiter {
    /// Creates a limiter for at most 100,000 keys per policy. A full table needs about 6 MiB.
    #[must_use]
    pub fn new() -> Self {
        Self::with_capacity(CAPACITY)
    }

    /// Creates a limiter with another capacity, in keys per policy.
    #[must_use]
    pub fn with_capacity(keys: usize) -> Self {
        Self {
            tables: Arc::default(),
            attempts: Cache::new(keys as u64),
            capacity: keys,
        }
    }

    /// Counts a request and returns the usage of its key, see [`RateLimiter::count_request`].
    #[must_use]
    pub fn count(&self, key: RateKey, policy: &RatePolicy, now: Timestamp) -> Usage {
        let table = self.table(policy);
        table.with(&key, |windows| windows.count(key, policy, now))
    }

    /// Returns the usage of a key without counting a request.
    #[must_use]
    pub fn peek(&self, key: &RateKey, policy: &RatePolicy, now: Timestamp) -> Usage {
        let table = self.table(policy);
        table.with(key, |windows| windows.peek(key, policy, now))
    }

    /// Marks the quota of a key as exhausted for the time `left`, as reported by another limiter.
    pub fn exhaust(&self, key: RateKey, policy: &RatePolicy, left: Duration, now: Timestamp) {
        let table = self.table(policy);
        table.with(&key, |windows| windows.exhaust(key, policy, left, now));
    }

    /// Undoes the count of a request, see [`RateLimiter::uncount_request`].
    pub fn give_back(&self, key: &RateKey, policy: &RatePolicy, now: Timestamp) -> bool {
        let table = self.table(policy);
        table.with(key, |windows| windows.uncount(key, policy, now))
    }

    /// Counts an attempt as failed, or returns a refusal if it comes too early. See [`RateLimiter::begin_attempt`].
    pub async fn count_attempt(&self, key: RateKey, now: Timestamp) -> Option<AttemptRefusal> {
        let mut refusal = None;
        let attempts = self.attempts.entry(key).and_compute_with(|known| {
            let known = known.map(moka::Entry::into_value);
            let (next, refused) = FailedAttempts::register(known, now);
            refusal = refused;
            std::future::ready(Op::Put(next))
        });
        attempts.await;
        refusal
    }

    /// Deletes the failed attempts of a key.
    pub async fn forget(&self, key: &RateKey) {
        self.attempts.invalidate(key).await;
    }

    /// Returns the table of a policy, after creating it if it does not exist.
    fn table(&self, policy: &RatePolicy) -> Arc<Table> {
        let tables = self.tables.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(table) = tables.get(policy.name()) {
            return Arc::clone(table);
        }
        drop(tables);
        let mut tables = self.tables.write().unwrap_or_else(PoisonError::into_inner);
        let table = tables.entry(policy.name().to_owned());
        Arc::clone(table.or_insert_with(|| Arc::new(Table::new(self.capacity))))
    }
}

impl Default for MemoryRateLimiter {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl RateLimiter for MemoryRateLimiter {
    async fn count_request(
        &self,
        key: RateKey,
        policy: &RatePolicy,
        now: Timestamp,
    ) -> Result<Usage, RateLimiterError> {
        Ok(self.count(key, policy, now))
    }

    async fn uncount_request(
        &self,
        key: RateKey,
        policy: &RatePolicy,
        now: Timestamp,
    ) -> Result<bool, RateLimiterError> {
        Ok(self.give_back(&key, policy, now))
    }

    async fn begin_attempt(
        &self,
        key: RateKey,
        now: Timestamp,
    ) -> Result<Option<AttemptRefusal>, RateLimiterError> {
        Ok(self.count_attempt(key, now).await)
    }

    async fn forget_attempts(&self, key: RateKey) -> Result<(), RateLimiterError> {
        self.forget(&key).await;
        Ok(())
    }
}

/// The time for which a limiter is not used after it has failed.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// A rate limiter that uses another one, and counts in memory while that fails or is slow. Never fails. A failed
/// limiter is not called for a second, and then tried again. The first failure is logged, and so is the first success
/// after it.
///
/// The counts in memory are those of this value. They are not moved to the other limiter when it works again.
#[derive(Debug)]
pub struct SharedLimiter {
    limiter: Arc<dyn RateLimiter>,
    fallback: MemoryRateLimiter,
    timeout: Duration,
    clock: Arc<dyn Clock>,
    /// The time until which the limiter is not called, in milliseconds of the clock.
    disabled_until: AtomicI64,
    /// Whether the last call of the limiter failed.
    is_failing: AtomicBool,
    /// The number of calls that did not use the limiter, because it fails.
    fallbacks: Counter,
}

impl SharedLimiter {
    /// Creates a limiter that calls `limiter`, and waits for it at most for `timeout`. A metric has the number of calls
    /// that are counted in memory.
    #[must_use]
    pub fn new(
        limiter: Arc<dyn RateLimiter>,
        timeout: Duration,
        clock: Arc<dyn Clock>,
        metrics: &Metrics,
    ) -> Self {
        Self {
            limiter,
            fallback: MemoryRateLimiter::new(),
            timeout,
            clock,
            disabled_until: AtomicI64::new(0),
            is_failing: AtomicBool::new(false),
            fallbacks: rate_metrics::fallbacks(metrics),
        }
    }

    /// Creates a limiter that uses the limiter and the timeout of an app.
    pub(crate) fn of(app: &App) -> Self {
        let limiter = Arc::clone(&app.limiter);
        let clock = Arc::clone(&app.clock);
        Self::new(limiter, app.options.limiter_timeout, clock, &app.metrics)
    }

    /// Counts a request and returns the usage of its key, see [`RateLimiter::count_request`].
    pub(crate) async fn take(&self, key: RateKey, policy: &RatePolicy) -> Usage {
        self.take_at(key, policy, self.clock.now()).await
    }

    /// Undoes the count of a request, see [`RateLimiter::uncount_request`].
    pub(crate) async fn give_back(&self, key: RateKey, policy: &RatePolicy) -> bool {
        self.give_back_at(key, policy, self.clock.now()).await
    }

    /// Counts an attempt as failed, or returns a refusal if it comes too early. See [`RateLimiter::begin_attempt`].
    pub(crate) async fn begin_attempt(&self, key: RateKey) -> Option<AttemptRefusal> {
        self.begin_attempt_at(key, self.clock.now()).await
    }

    /// Deletes the failed attempts of a key, also those counted in memory.
    pub(crate) async fn forget_attempts(&self, key: RateKey) {
        self.fallback.forget(&key).await;
        self.call_limiter(self.limiter.forget_attempts(key)).await;
    }

    async fn take_at(&self, key: RateKey, policy: &RatePolicy, now: Timestamp) -> Usage {
        let counted = self.limiter.count_request(key, policy, now);
        match self.call_limiter(counted).await {
            Some(usage) => usage,
            None => self.fallback.count(key, policy, now),
        }
    }

    async fn give_back_at(&self, key: RateKey, policy: &RatePolicy, now: Timestamp) -> bool {
        let uncounted = self.limiter.uncount_request(key, policy, now);
        match self.call_limiter(uncounted).await {
            Some(had_one) => had_one,
            None => self.fallback.give_back(&key, policy, now),
        }
    }

    async fn begin_attempt_at(&self, key: RateKey, now: Timestamp) -> Option<AttemptRefusal> {
        let begun = self.limiter.begin_attempt(key, now);
        match self.call_limiter(begun).await {
            Some(refusal) => refusal,
            None => self.fallback.count_attempt(key, now).await,
        }
    }

    /// Returns the result of the limiter; `None` if it fails, is too slow, or has failed less than a second ago.
    async fn call_limiter<T>(
        &self,
        asked: impl Future<Output = Result<T, RateLimiterError>>,
    ) -> Option<T> {
        let now = self.clock.now();
        if self.is_disabled(now) {
            self.fallbacks.increment();
            return None;
        }
        match self.answer(asked).await {
            Ok(answer) => {
                self.report_success();
                Some(answer)
            }
            Err(error) => {
                self.report_failure(&error);
                let until = now.plus(RETRY_INTERVAL).millis();
                self.disabled_until.store(until, Ordering::Relaxed);
                self.fallbacks.increment();
                None
            }
        }
    }

    /// Returns whether the limiter has failed less than a second ago. A clock that was set back has no influence.
    fn is_disabled(&self, now: Timestamp) -> bool {
        let until = Timestamp::from_millis(self.disabled_until.load(Ordering::Relaxed));
        let left = until.since(now);
        !left.is_zero() && left <= RETRY_INTERVAL
    }

    fn report_success(&self) {
        // Most calls only read the flag.
        if self.is_failing.load(Ordering::Relaxed) && self.is_failing.swap(false, Ordering::Relaxed)
        {
            tracing::info!(target: "core::rate_limit", "the rate limiter works again");
        }
    }

    fn report_failure(&self, error: &RateLimiterError) {
        if !self.is_failing.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                target: "core::rate_limit",
                error = ?error,
                "the rate limiter failed; counting in memory"
            );
        }
    }

    /// Waits for the result of the limiter, until the timeout.
    async fn answer<T>(
        &self,
        asked: impl Future<Output = Result<T, RateLimiterError>>,
    ) -> Result<T, RateLimiterError> {
        let mut asked = std::pin::pin!(asked);
        // No timer is needed if the result is ready at once.
        if let Poll::Ready(answer) = futures_util::poll!(asked.as_mut()) {
            return answer;
        }
        tokio::time::timeout(self.timeout, asked)
            .await
            .unwrap_or_else(|late| Err(RateLimiterError::Unavailable(Box::new(late))))
    }
}

/// For a limiter that all services of a process share. Never fails.
#[async_trait]
impl RateLimiter for SharedLimiter {
    async fn count_request(
        &self,
        key: RateKey,
        policy: &RatePolicy,
        now: Timestamp,
    ) -> Result<Usage, RateLimiterError> {
        Ok(self.take_at(key, policy, now).await)
    }

    async fn uncount_request(
        &self,
        key: RateKey,
        policy: &RatePolicy,
        now: Timestamp,
    ) -> Result<bool, RateLimiterError> {
        Ok(self.give_back_at(key, policy, now).await)
    }

    async fn begin_attempt(
        &self,
        key: RateKey,
        now: Timestamp,
    ) -> Result<Option<AttemptRefusal>, RateLimiterError> {
        Ok(self.begin_attempt_at(key, now).await)
    }

    async fn forget_attempts(&self, key: RateKey) -> Result<(), RateLimiterError> {
        Self::forget_attempts(self, key).await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use core_domain::gateway::RateSubject;
    use core_domain::testing::{ManualClock, MockRateLimiter};

    use super::*;

    fn policy(name: &str) -> RatePolicy {
        RatePolicy::new(name, 1, Duration::from_secs(60)).unwrap()
    }

    #[tokio::test]
    async fn calls_that_the_limiter_does_not_answer_are_counted() {
        let mut broken = MockRateLimiter::new();
        let broken_pipe = || std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        broken
            .expect_count_request()
            .returning(move |_, _, _| Err(RateLimiterError::Unavailable(Box::new(broken_pipe()))));
        let metrics = Metrics::new();
        let clock = Arc::new(ManualClock::at(Timestamp::EPOCH));
        let timeout = Duration::from_secs(1);
        let limiter = SharedLimiter::new(Arc::new(broken), timeout, clock, &metrics);
        let policy = policy("strict");
        let client = "192.0.2.1".parse().unwrap();
        let key = RateKey::new(&policy, client, RateSubject::Everything);
        // The second call does not even try.
        for is_allowed in [true, false] {
            assert_eq!(limiter.take(key, &policy).await.is_allowed, is_allowed);
        }
        let expected = "core_rate_limiter_fallbacks_total 2";
        assert!(metrics.render().lines().any(|line| line == expected));
    }

    #[test]
    fn line_12_many_keys_of_one_policy_do_not_evict_those_of_another() {
        let limiter = MemoryRateLimiter::with_capacity(1_000);
        let (strict, default) = (policy("strict"), policy("default"));
        let client = "192.0.2.1".parse().unwrap();
        let key = RateKey::new(&strict, client, RateSubject::Everything);
        assert!(limiter.count(key, &strict, Timestamp::EPOCH).is_allowed);
        for n in 0..10_000 {
            let path = format!("/{n}");
            let flood = RateKey::new(&default, client, RateSubject::Path(&path));
            assert!(limiter.count(flood, &default, Timestamp::EPOCH).is_allowed);
        }
        assert!(!limiter.count(key, &strict, Timestamp::EPOCH).is_allowed);
    }
}
