//! The port that delivers the messages of the outbox.

use async_trait::async_trait;

use crate::shared::OutboxMessage;

/// The message was not accepted. It is kept and delivered again later.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the message was not accepted: {0}")]
pub struct OutletError(pub String);

/// Receives the messages that leave the process: a queue, a webhook or another service.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
#[async_trait]
pub trait Outlet: Send + Sync + std::fmt::Debug {
    /// Delivers a message. A message can arrive more than once and after a later one; use its id and `created_at` to
    /// detect this.
    ///
    /// # Errors
    /// [`OutletError`] if the message was not accepted.
    async fn deliver(&self, message: &OutboxMessage) -> Result<(), OutletError>;
}
