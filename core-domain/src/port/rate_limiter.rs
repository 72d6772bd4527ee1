//! Counters of requests and failed attempts, in this process or shared by several.

use async_trait::async_trait;

use crate::gateway::{RateKey, RatePolicy, Usage};
use crate::iam::AttemptRefusal;
use crate::kernel::Timestamp;

/// The source of a [`RateLimiterError`].
type Cause = Box<dyn std::error::Error + Send + Sync>;

/// The reason why a request cannot be counted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RateLimiterError {
    /// The counter cannot be reached. The operation can be retried.
    #[error("the rate limiter cannot be reached")]
    Unavailable(#[source] Cause),
    /// The response of the counter cannot be read.
    #[error("the response of the rate limiter cannot be read")]
    InvalidResponse(#[source] Cause),
}

/// Counts requests in windows, and failed attempts, after each of which a client must wait longer. The window of a key
/// starts with its first request and lasts as long as its policy says. Keys of policies with different names are stored
/// apart, so that many keys of one policy do not evict the keys of another.
///
/// Callers count in memory if the limiter fails or is slow, so an implementation does not have to retry.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
#[async_trait]
pub trait RateLimiter: Send + Sync + std::fmt::Debug {
    /// Counts a request and returns whether it is allowed. A refused request is not counted and does not extend the
    /// window.
    ///
    /// # Errors
    /// [`RateLimiterError`] if the request cannot be counted.
    async fn count_request(
        &self,
        key: RateKey,
        policy: &RatePolicy,
        now: Timestamp,
    ) -> Result<Usage, RateLimiterError>;

    /// Removes a counted request from its window. Returns whether the window is open and contained a request.
    ///
    /// # Errors
    /// [`RateLimiterError`] if the request cannot be removed.
    async fn uncount_request(
        &self,
        key: RateKey,
        policy: &RatePolicy,
        now: Timestamp,
    ) -> Result<bool, RateLimiterError>;

    /// Counts an attempt as failed unless it comes too early; see
    /// [`FailedAttempts::register`](crate::iam::FailedAttempts::register). Counting is atomic, so concurrent attempts
    /// are all counted.
    ///
    /// # Errors
    /// [`RateLimiterError`] if the attempt cannot be counted.
    async fn begin_attempt(
        &self,
        key: RateKey,
        now: Timestamp,
    ) -> Result<Option<AttemptRefusal>, RateLimiterError>;

    /// Deletes the failed attempts of a key.
    ///
    /// # Errors
    /// [`RateLimiterError`] if they cannot be deleted.
    async fn forget_attempts(&self, key: RateKey) -> Result<(), RateLimiterError>;
}
