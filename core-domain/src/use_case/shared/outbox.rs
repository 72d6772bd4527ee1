//! The outbox: writing messages, and sending what waits: every message at least once, whatever dies in between.

use std::time::Duration;

use serde_json::Value;

use crate::access::{unaudited, unowned};
use crate::kernel::{Context, Effect, Entropy, Error, OutboxId, Result, StoreError, Stored};
use crate::port::{Mode, Outlet, Store, UnitOfWork, transact_in};
use crate::provisioning::retry_at;
use crate::shared::{OutboxMessage, OutboxQuery};

/// How many messages are claimed and settled at once: what is told again after a crash, at most.
const BATCH: u8 = 64;

/// How long a taken message is left alone by others. Whoever took it and died gives it back by that.
const CLAIMED_FOR: Duration = Duration::from_secs(60);

/// What became of the messages that were due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Relayed {
    /// Delivered and forgotten.
    pub delivered: usize,
    /// Not taken; tried again after a pause that grows to five minutes.
    pub kept: usize,
}

impl Relayed {
    /// Whether nothing was due.
    #[must_use]
    pub const fn is_idle(self) -> bool {
        self.delivered + self.kept == 0
    }

    /// Whether more may be due: no more are taken at once.
    #[must_use]
    pub fn is_full(self) -> bool {
        self.delivered + self.kept >= usize::from(BATCH)
    }
}

/// Delivers a batch of the messages that are due, oldest first. Opens its own units of work, so that none is open while
/// a message is delivered.
///
/// # Errors
/// When the store failed; what was not recorded as delivered comes again.
pub async fn relay(
    store: &dyn Store,
    outlet: &dyn Outlet,
    entropy: &dyn Entropy,
) -> Result<Relayed> {
    if !any_due(store).await? {
        return Ok(Relayed::default());
    }
    let (mut delivered, mut kept) = (Vec::new(), Vec::new());
    for message in claim(store).await? {
        if outlet.deliver(&message).await.is_ok() {
            delivered.push(message.id.clone());
        } else {
            kept.push(message);
        }
    }
    settle(store, &delivered, &kept, entropy).await?;
    Ok(Relayed {
        delivered: delivered.len(),
        kept: kept.len(),
    })
}

/// A look that costs no write.
async fn any_due(store: &dyn Store) -> Result<bool> {
    let mut uow = store.begin(Mode::Auto).await?;
    let due = OutboxQuery::DueAt(uow.now().await?);
    let first = unowned::<OutboxMessage>(uow.as_mut()).first(&due).await?;
    Ok(first.is_some())
}

/// Takes messages, so that nobody else does for a while.
async fn claim(store: &dyn Store) -> Result<Vec<Stored<OutboxMessage>>> {
    transact_in(Mode::ReadCommitted, store, |uow, _| {
        Box::pin(async move {
            let now = uow.now().await?;
            let due = OutboxQuery::DueAt(now);
            let due = unowned::<OutboxMessage>(uow)
                .claim(&due, BATCH.into())
                .await?;
            let claimed = due.into_iter().map(|message| {
                let mut next = (*message).clone();
                next.attempts += 1;
                next.run_at = now.plus(CLAIMED_FOR);
                (message, next)
            });
            unaudited::replace_many(uow, claimed.collect()).await
        })
    })
    .await
}

/// Acknowledges what was delivered and puts off what was not, in one unit of work.
async fn settle(
    store: &dyn Store,
    delivered: &[OutboxId],
    kept: &[Stored<OutboxMessage>],
    entropy: &dyn Entropy,
) -> Result<()> {
    if delivered.is_empty() && kept.is_empty() {
        return Ok(());
    }
    transact_in(Mode::ReadCommitted, store, |uow, _| {
        Box::pin(async move {
            ack(uow, delivered).await?;
            nack(uow, kept, entropy).await
        })
    })
    .await
}

/// Removes the messages, whoever has claimed them by now.
async fn ack(uow: &mut dyn UnitOfWork, delivered: &[OutboxId]) -> Result<()> {
    if !delivered.is_empty() {
        let delivered = OutboxQuery::WithIds(delivered.to_vec());
        let messages = unowned::<OutboxMessage>(uow);
        messages.remove_all(&delivered).await?;
    }
    Ok(())
}

async fn nack(
    uow: &mut dyn UnitOfWork,
    kept: &[Stored<OutboxMessage>],
    entropy: &dyn Entropy,
) -> Result<()> {
    let now = uow.now().await?;
    for message in kept {
        let mut next = (**message).clone();
        next.run_at = retry_at(now, message.attempts, Duration::ZERO, entropy);
        let replaced = unaudited::replace(uow, message, next).await;
        unless_claimed_by_others(replaced.map(drop))?;
    }
    Ok(())
}

/// A delivery that took too long: somebody else has the message now.
fn unless_claimed_by_others(outcome: Result<()>) -> Result<()> {
    match outcome {
        Err(Error::Store(StoreError::Stale { .. })) => Ok(()),
        outcome => outcome,
    }
}

/// Writes a message into the unit of work.
pub(in crate::use_case) async fn send(
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
    unaudited::append(uow, message).await?;
    uow.effects().add(Effect::MessageQueued);
    Ok(())
}
