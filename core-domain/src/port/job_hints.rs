//! Wakes the job workers of other processes on the same store.

use async_trait::async_trait;

/// Hints between processes that a job can be claimed. A hint can be lost, so receivers must also poll. A hint can
/// arrive twice or too early, so receivers must check the store.
#[async_trait]
pub trait JobHints: Send + Sync + std::fmt::Debug {
    /// Sends a hint to the other processes. Called after a commit that makes a job claimable, at most every 20 ms. The
    /// implementation logs failures.
    async fn notify(&self);

    /// Waits until this or another process has sent a hint since the last call. Never returns if no other process uses
    /// the store.
    async fn wait_for_hint(&self);
}
