//! Counting requests and failed attempts, in this process or shared by several.

use async_trait::async_trait;

use crate::gateway::{RateKey, RatePolicy, Usage};
use crate::iam::AttemptRefusal;
use crate::kernel::Timestamp;

/// The error below a [`RateLimiterError`].
type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Why a request could not be counted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RateLimiterError {
    /// The counter cannot be reached. May be retried.
    #[error("the rate limiter cannot be reached")]
    Unavailable(#[source] Cause),
    /// The counter's answer cannot be read.
    #[error("the answer of the rate limiter cannot be read")]
    InvalidAnswer(#[source] Cause),
}

/// Counts requests in windows, and attempts that wait longer after each failure: a key's window begins with its first request and lasts as long as its policy says. Keys of
/// policies with different names are kept apart, so that a flood of keys of one policy does not evict those of another.
///
/// Callers fall back to counting in memory when the limiter fails or is slow, so an implementation need not retry.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
#[async_trait]
pub trait RateLimiter: Send + Sync + std::fmt::Debug {
    /// Counts a request and tells whether it may go on. A refused request is not counted and does not prolong the window.
    ///
    /// # Errors
    /// [`RateLimiterError`] when it could not be counted.
    async fn take(
        &self,
        key: RateKey,
        policy: &RatePolicy,
        now: Timestamp,
    ) -> Result<Usage, RateLimiterError>;

    /// Takes a counted request back. Returns whether the key's window is open and had one.
    ///
    /// # Errors
    /// [`RateLimiterError`] when it could not be taken back.
    async fn give_back(
        &self,
        key: RateKey,
        policy: &RatePolicy,
        now: Timestamp,
    ) -> Result<bool, RateLimiterError>;

    /// Counts an attempt as failed, unless it comes too early: see
    /// [`FailedAttempts::begin`](crate::iam::FailedAttempts::begin). Counting is atomic, so that attempts at once are all counted.
    ///
    /// # Errors
    /// [`RateLimiterError`] when it could not be counted.
    async fn begin_attempt(
        &self,
        key: RateKey,
        now: Timestamp,
    ) -> Result<Option<AttemptRefusal>, RateLimiterError>;

    /// Forgets the failed attempts of a key.
    ///
    /// # Errors
    /// [`RateLimiterError`] when they could not be forgotten.
    async fn forget_attempts(&self, key: RateKey) -> Result<(), RateLimiterError>;
}
