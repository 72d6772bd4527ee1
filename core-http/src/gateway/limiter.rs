//! Counting requests: the port, and the counter in this process's memory.

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use core_domain::gateway::{Policy, RateKey, Usage, Windows};
use core_domain::kernel::Timestamp;

/// How many keys the memory holds at the most, over all its parts; about 6 MiB when full.
const CAPACITY: usize = 100_000;

/// Parts with a lock each, so that requests seldom wait for one another.
const SHARDS: usize = 16;

/// A limiter outside this process failed; the text is for the log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the rate limiter failed: {0}")]
pub struct LimiterError(pub String);

/// Counts requests in windows.
#[async_trait]
pub trait Limiter: Send + Sync + std::fmt::Debug {
    /// Counts a request and tells whether it may go on. A refused request is not counted.
    ///
    /// # Errors
    /// [`LimiterError`] when the counter cannot be reached; the gateway then counts in its own memory.
    async fn take(
        &self,
        key: RateKey,
        policy: &Policy,
        now: Timestamp,
    ) -> Result<Usage, LimiterError>;
}

/// Counts in memory: at most 100,000 keys, those idle longest forgotten first. Never fails.
#[derive(Debug)]
pub struct MemoryLimiter {
    shards: Vec<Mutex<Windows>>,
}

impl MemoryLimiter {
    /// Nothing counted yet.
    #[must_use]
    pub fn new() -> Self {
        let shard = || Mutex::new(Windows::new(CAPACITY / SHARDS));
        Self {
            shards: std::iter::repeat_with(shard).take(SHARDS).collect(),
        }
    }

    /// Counts a request, see [`Limiter::take`].
    #[must_use]
    pub fn count(&self, key: RateKey, policy: &Policy, now: Timestamp) -> Usage {
        let at = usize::from(key.as_bytes()[0]) % SHARDS;
        let mut windows = self.shards[at]
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        windows.take(key, policy, now)
    }
}

impl Default for MemoryLimiter {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Limiter for MemoryLimiter {
    async fn take(
        &self,
        key: RateKey,
        policy: &Policy,
        now: Timestamp,
    ) -> Result<Usage, LimiterError> {
        Ok(self.count(key, policy, now))
    }
}
