//! The outbox: what must reach another service or the outside, written with the change that causes it.

use serde_json::Value;

use crate::kernel::{Context, OutboxId, Result, Timestamp};
use crate::port::{Record, UnitOfWork};

/// A message waiting to leave the process.
#[derive(Clone, Debug, PartialEq)]
pub struct OutboxMessage {
    /// The message's id; the receiver may see it twice and must not act twice.
    pub id: OutboxId,
    /// What it is: `platform.status`.
    pub topic: String,
    /// What it says.
    pub payload: Value,
    /// Failed deliveries so far.
    pub attempts: i64,
    /// Not to be tried before this instant.
    pub run_at: Timestamp,
    /// When it was written.
    pub created_at: Timestamp,
}

impl Record for OutboxMessage {
    type Query = OutboxQuery;
    const KIND: &'static str = "outbox message";

    fn key(&self) -> &str {
        self.id.as_str()
    }
}

/// Questions about outbox messages.
#[derive(Clone, Debug, PartialEq)]
pub enum OutboxQuery {
    /// Those that may be sent at this instant, oldest first.
    DueAt(Timestamp),
}

/// Writes a message into the unit of work.
///
/// # Errors
/// When the store failed.
pub async fn send(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    topic: &'static str,
    payload: Value,
) -> Result<()> {
    let now = uow.now().await?;
    let message = OutboxMessage {
        id: OutboxId::generate(now, cx.entropy.as_ref()),
        topic: topic.to_owned(),
        payload,
        attempts: 0,
        run_at: now,
        created_at: now,
    };
    uow.outbox_messages().insert(message).await?;
    Ok(())
}
