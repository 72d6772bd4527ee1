//! The outbox: writing messages and delivering them to the outlet. Every message is delivered at least once, even if
//! processes crash. Mails are stored in the outbox too, but are delivered by the mailer; see
//! [`claim_mails`](super::claim_mails).

use std::time::Duration;

use serde_json::Value;

use super::due_queue::{self, Claimed, DueRecord};
use crate::access::{unaudited, unowned_records};
use crate::kernel::{Context, Effect, OutboxId, Result, Timestamp};
use crate::port::{Mode, Store, UnitOfWork, transact_in};
use crate::shared::{OutboxMessage, OutboxQuery};

/// Maximum duration of handing over one message or mail.
pub const MAX_HANDOVER_TIME: Duration = Duration::from_secs(60);

impl DueRecord for OutboxMessage {
    const MAX_ATTEMPT_TIME: Duration = MAX_HANDOVER_TIME;

    fn attempts(&self) -> i64 {
        self.attempts
    }

    fn with_schedule(&self, attempts: i64, due_at: Timestamp, _: Timestamp) -> Self {
        Self {
            attempts,
            run_at: due_at,
            ..self.clone()
        }
    }
}

/// A claimed message, to be handed to the outlet by this process.
#[derive(Clone, Debug)]
pub struct ClaimedMessage(Claimed<OutboxMessage>);

impl ClaimedMessage {
    /// Returns the message. This attempt is already counted.
    #[must_use]
    pub fn message(&self) -> &OutboxMessage {
        &self.0.stored
    }
}

/// The outcome of handing over a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageOutcome {
    /// The outlet accepted the message.
    Delivered,
    /// The attempt failed. The message is tried again after a delay that grows to five minutes.
    Rescheduled,
    /// The attempt was interrupted. The message is due immediately, and the attempt does not count.
    Released,
}

/// Claims at most `limit` due messages for the outlet, longest due first.
///
/// # Errors
/// Only those of the store.
pub async fn claim_messages(store: &dyn Store, limit: u32) -> Result<Vec<ClaimedMessage>> {
    let claimed = due_queue::claim(store, limit, OutboxQuery::DueAt).await?;
    Ok(claimed.into_iter().map(ClaimedMessage).collect())
}

/// Stores the outcomes of claimed messages in one unit of work.
///
/// # Errors
/// Only those of the store; the messages are then due again when their claims expire.
pub async fn store_message_outcomes(
    cx: &Context,
    store: &dyn Store,
    attempts: &[(ClaimedMessage, MessageOutcome)],
) -> Result<()> {
    transact_in(Mode::ReadCommitted, store, |uow, _| {
        Box::pin(async move {
            let mut delivered = Vec::new();
            for (ClaimedMessage(Claimed { stored, .. }), outcome) in attempts {
                match outcome {
                    MessageOutcome::Delivered => delivered.push(stored.id.clone()),
                    MessageOutcome::Rescheduled => {
                        due_queue::reschedule(uow, stored, cx.entropy.as_ref()).await?;
                    }
                    MessageOutcome::Released => due_queue::release(uow, stored).await?,
                }
            }
            remove(uow, delivered).await.map(drop)
        })
    })
    .await
}

/// Removes delivered messages, even if another process has claimed them since. Returns the number of removed messages.
pub(super) async fn remove(uow: &mut dyn UnitOfWork, ids: Vec<OutboxId>) -> Result<u64> {
    if ids.is_empty() {
        return Ok(0);
    }
    let with_ids = OutboxQuery::WithIds(ids);
    let messages = unowned_records::<OutboxMessage>(uow);
    messages.remove_all(&with_ids).await
}

/// Writes a new message in the unit of work.
pub(in crate::use_case) async fn send(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    topic: &'static str,
    payload: Value,
) -> Result<()> {
    let id = OutboxId::generate(uow.now().await?, cx.entropy.as_ref());
    append(uow, id, topic, payload).await?;
    uow.effects().add(Effect::MessageQueued);
    Ok(())
}

/// Writes a message with a given id, for callers that need the id to create the payload.
pub(super) async fn append(
    uow: &mut dyn UnitOfWork,
    id: OutboxId,
    topic: &'static str,
    payload: Value,
) -> Result<()> {
    let now = uow.now().await?;
    let message = OutboxMessage {
        id,
        topic: topic.to_owned(),
        payload,
        attempts: 0,
        run_at: now,
        created_at: now,
    };
    unaudited::append(uow, message).await
}
