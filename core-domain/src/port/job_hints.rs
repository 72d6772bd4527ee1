//! Waking the workers of other processes on the same store.

use async_trait::async_trait;

/// Hints between processes that a job may be claimed. Never more than hints: one can be lost, so whoever waits also
/// polls; and one can come twice or too early, so whoever hears one looks.
#[async_trait]
pub trait JobHints: Send + Sync + std::fmt::Debug {
    /// Tells the other processes that a job may be claimed. Called after the commit that made it so, and not more often
    /// than every 20 ms. A failure is for the implementation to log.
    async fn notify(&self);

    /// Returns when another process, or this one, has said so since the last call. Waits for ever where nobody can.
    async fn hinted(&self);
}
