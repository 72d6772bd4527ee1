//! Where messages of the outbox go.

use async_trait::async_trait;

use crate::shared::OutboxMessage;

/// A message was not taken. It is kept and tried again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the message was not taken: {0}")]
pub struct OutletError(pub String);

/// Takes the messages that leave the process: a queue, a webhook, another service.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
#[async_trait]
pub trait Outlet: Send + Sync + std::fmt::Debug {
    /// Takes a message. It may come more than once, and after a later one: its id and `created_at` tell.
    ///
    /// # Errors
    /// [`OutletError`] when it was not taken.
    async fn deliver(&self, message: &OutboxMessage) -> Result<(), OutletError>;
}
