//! The outbox: writing messages, and sending what waits: every message at least once, whatever dies in between. Mails are
//! handed over apart from the others, see [`claim_mails`](super::claim_mails).

use std::time::Duration;

use serde_json::Value;

use crate::access::{unaudited, unowned};
use crate::kernel::{Context, Effect, Entropy, Error, OutboxId, Result, StoreError, Stored};
use crate::port::{Mode, Outlet, Store, UnitOfWork, transact_in};
use crate::provisioning::retry_at;
use crate::shared::{OutboxMessage, OutboxQuery};

/// How many messages are claimed and settled at once: what is told again after a crash, at most.
const BATCH: u8 = 64;

/// How long a claimed message is left alone by others. Whoever claimed it and died gives it back by that.
const CLAIMED_FOR: Duration = Duration::from_secs(60);

/// What became of the messages that were due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Relayed {
    /// Delivered and acknowledged.
    pub delivered: usize,
    /// Not delivered; tried again after a pause that grows to five minutes.
    pub kept: usize,
}

impl Relayed {
    /// Whether nothing was due.
    #[must_use]
    pub const fn is_idle(self) -> bool {
        self.delivered + self.kept == 0
    }

    /// Whether more may be due: no more are claimed at once.
    #[must_use]
    pub fn is_full(self) -> bool {
        self.delivered + self.kept >= usize::from(BATCH)
    }
}

/// A message that is to be delivered.
#[derive(Debug)]
struct Claimed {
    stored: Stored<OutboxMessage>,
    /// As it is delivered: this attempt counts.
    message: OutboxMessage,
}

/// Delivers a batch of the messages that are due, oldest first. Opens its own units of work, so that none is open while
/// a message is delivered. Others may do the same at the same time.
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
    let claimed = claim(store).await?;
    let deliveries = deliver(outlet, claimed).await;
    deliveries.settle(store, entropy).await?;
    Ok(deliveries.relayed())
}

/// As [`relay`], for the only one who sends what waits in this store: what it claims it need not write down for others. What
/// it has delivered and could not settle yet it settles before it delivers anything else, so that a store that answers
/// and does not write is not told the same over and over.
#[derive(Debug, Default)]
pub struct LoneRelay {
    unsettled: Deliveries,
}

impl LoneRelay {
    /// As [`relay`].
    ///
    /// # Errors
    /// As [`relay`].
    pub async fn relay(
        &mut self,
        store: &dyn Store,
        outlet: &dyn Outlet,
        entropy: &dyn Entropy,
    ) -> Result<Relayed> {
        self.unsettled.settle(store, entropy).await?;
        self.unsettled = Deliveries::default();
        self.unsettled = deliver(outlet, due(store).await?).await;
        self.unsettled.settle(store, entropy).await?;
        Ok(std::mem::take(&mut self.unsettled).relayed())
    }
}

/// How deliveries ended.
#[derive(Debug, Default)]
struct Deliveries {
    delivered: Vec<OutboxId>,
    kept: Vec<Claimed>,
}

async fn deliver(outlet: &dyn Outlet, messages: Vec<Claimed>) -> Deliveries {
    let mut deliveries = Deliveries::default();
    for claimed in messages {
        if outlet.deliver(&claimed.message).await.is_ok() {
            deliveries.delivered.push(claimed.message.id);
        } else {
            deliveries.kept.push(claimed);
        }
    }
    deliveries
}

impl Deliveries {
    const fn relayed(&self) -> Relayed {
        Relayed {
            delivered: self.delivered.len(),
            kept: self.kept.len(),
        }
    }

    /// Acknowledges what was delivered and puts off what was not, in one unit of work.
    async fn settle(&self, store: &dyn Store, entropy: &dyn Entropy) -> Result<()> {
        if self.relayed().is_idle() {
            return Ok(());
        }
        transact_in(Mode::ReadCommitted, store, |uow, _| {
            Box::pin(async move {
                self.ack(uow).await?;
                nack(uow, &self.kept, entropy).await
            })
        })
        .await
    }

    /// Removes what was delivered, whoever has claimed it by now.
    async fn ack(&self, uow: &mut dyn UnitOfWork) -> Result<()> {
        if !self.delivered.is_empty() {
            let delivered = OutboxQuery::WithIds(self.delivered.clone());
            let messages = unowned::<OutboxMessage>(uow);
            messages.remove_all(&delivered).await?;
        }
        Ok(())
    }
}

/// The messages that are due, by a read.
async fn due(store: &dyn Store) -> Result<Vec<Claimed>> {
    let mut uow = store.begin(Mode::Auto).await?;
    let due = OutboxQuery::DueAt(uow.now().await?);
    let due = unowned::<OutboxMessage>(uow.as_mut())
        .list(&due, BATCH.into())
        .await?;
    let of = |stored: Stored<OutboxMessage>| {
        let mut message = (*stored).clone();
        message.attempts += 1;
        Claimed { stored, message }
    };
    Ok(due.into_iter().map(of).collect())
}

/// A look that costs no write.
async fn any_due(store: &dyn Store) -> Result<bool> {
    let mut uow = store.begin(Mode::Auto).await?;
    let due = OutboxQuery::DueAt(uow.now().await?);
    let first = unowned::<OutboxMessage>(uow.as_mut()).first(&due).await?;
    Ok(first.is_some())
}

/// Claims messages, so that nobody else does for a while.
async fn claim(store: &dyn Store) -> Result<Vec<Claimed>> {
    let claimed = transact_in(Mode::ReadCommitted, store, |uow, _| {
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
    .await?;
    let of = |stored: Stored<OutboxMessage>| {
        let message = (*stored).clone();
        Claimed { stored, message }
    };
    Ok(claimed.into_iter().map(of).collect())
}

async fn nack(uow: &mut dyn UnitOfWork, kept: &[Claimed], entropy: &dyn Entropy) -> Result<()> {
    let now = uow.now().await?;
    for Claimed { stored, message } in kept {
        let mut next = message.clone();
        next.run_at = retry_at(now, message.attempts, Duration::ZERO, entropy);
        let replaced = unaudited::replace(uow, stored, next).await;
        unless_claimed_by_others(replaced.map(drop))?;
    }
    Ok(())
}

/// A delivery that took too long: somebody else has the message now.
pub(super) fn unless_claimed_by_others(outcome: Result<()>) -> Result<()> {
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
    let id = OutboxId::generate(uow.now().await?, cx.entropy.as_ref());
    append(uow, id, topic, payload).await?;
    uow.effects().add(Effect::MessageQueued);
    Ok(())
}

/// Writes a message whose id was needed to write it.
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
