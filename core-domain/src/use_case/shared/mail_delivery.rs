//! Handing queued mails over, each by itself: a server that takes its time holds up neither other mails nor other messages.

use std::time::Duration;

use serde_json::{Value, json};

use super::mail::queued_mail;
use super::outbox::unless_claimed_by_others;
use crate::access::{AuditEvent, audited, unaudited, unowned};
use crate::kernel::{Cipher, Context, Email, OutboxId, Result, Stored, Timestamp};
use crate::port::{Mail, Mode, Store, UnitOfWork, transact_in};
use crate::provisioning::retry_at;
use crate::shared::{OutboxMessage, OutboxQuery};

/// How long handing one mail over may take.
pub const LONGEST_HANDOVER: Duration = Duration::from_secs(60);

/// How long a claimed mail is left alone by others: longer than it takes to hand it over. Whoever claimed it and died gives
/// it back by that.
const CLAIMED_FOR: Duration = Duration::from_secs(120);

/// How old a mail gets: what it says (a link, an invitation) is of no use any more.
const LIFETIME: Duration = Duration::from_secs(48 * 60 * 60);

/// A mail that is to be handed over, and is nobody else's for a while.
#[derive(Debug)]
pub struct ClaimedMail {
    stored: Stored<OutboxMessage>,
    claimed_at: Timestamp,
}

impl ClaimedMail {
    /// The id of its message; the same each time it is handed over.
    #[must_use]
    pub fn id(&self) -> &OutboxId {
        &self.stored.id
    }

    /// Which attempt this is, from 1.
    #[must_use]
    pub fn attempt(&self) -> i64 {
        self.stored.attempts
    }

    /// Whether it is too old to be of use.
    #[must_use]
    pub fn has_expired(&self) -> bool {
        self.claimed_at.since(self.stored.created_at) > LIFETIME
    }

    /// Returns the mail; `None` if it must not be sent.
    ///
    /// # Errors
    /// `INTERNAL_ERROR` when it was queued with another key.
    pub fn mail(&self, cipher: &Cipher) -> Result<Option<Mail>> {
        queued_mail(cipher, &self.stored)
    }
}

/// What became of a claimed mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MailFate {
    /// The mailer took it, or it must not be sent.
    Sent,
    /// Perhaps the next time: after a pause that grows to five minutes.
    PutOff,
    /// Nobody tried it to the end: it may be claimed again at once, and the attempt does not count.
    Released,
    /// The mailer will never take it; it is dropped, with an audit entry.
    Refused(Email),
    /// It was of no use any more; it is dropped, with an audit entry. To whom it was is known unless it cannot be read.
    Expired(Option<Email>),
}

/// Claims up to so many of the mails that are due, oldest first.
///
/// # Errors
/// When the store failed.
pub async fn claim_mails(store: &dyn Store, limit: u32) -> Result<Vec<ClaimedMail>> {
    if limit == 0 || !any_due(store).await? {
        return Ok(Vec::new());
    }
    transact_in(Mode::ReadCommitted, store, |uow, _| {
        Box::pin(async move {
            let now = uow.now().await?;
            let due = OutboxQuery::MailDueAt(now);
            let due = unowned::<OutboxMessage>(uow).claim(&due, limit).await?;
            let claimed = due.into_iter().map(|message| {
                let mut next = (*message).clone();
                next.attempts += 1;
                next.run_at = now.plus(CLAIMED_FOR);
                (message, next)
            });
            let claimed = unaudited::replace_many(uow, claimed.collect()).await?;
            let of = |stored| ClaimedMail {
                stored,
                claimed_at: now,
            };
            Ok(claimed.into_iter().map(of).collect())
        })
    })
    .await
}

/// A look that costs no write.
async fn any_due(store: &dyn Store) -> Result<bool> {
    let mut uow = store.begin(Mode::Auto).await?;
    let due = OutboxQuery::MailDueAt(uow.now().await?);
    let first = unowned::<OutboxMessage>(uow.as_mut()).first(&due).await?;
    Ok(first.is_some())
}

/// Writes down what became of a mail, in a unit of work of its own.
///
/// # Errors
/// When the store failed; the mail comes again when its claim has run out.
pub async fn settle_mail(
    cx: &Context,
    store: &dyn Store,
    claimed: &ClaimedMail,
    fate: &MailFate,
) -> Result<()> {
    transact_in(Mode::ReadCommitted, store, |uow, _| {
        Box::pin(async move {
            match fate {
                MailFate::Sent => remove(uow, claimed.id()).await.map(drop),
                MailFate::PutOff => put_off(cx, uow, claimed).await,
                MailFate::Released => release(uow, claimed).await,
                MailFate::Refused(to) => {
                    let details = json!({ "to": to, "attempts": claimed.attempt() });
                    give_up(cx, uow, claimed, "mail.refused", details).await
                }
                MailFate::Expired(to) => {
                    // This time it was not tried.
                    let details = json!({ "to": to, "attempts": claimed.attempt() - 1 });
                    give_up(cx, uow, claimed, "mail.expired", details).await
                }
            }
        })
    })
    .await
}

/// Removes the message, whoever has claimed it by now; tells whether it was there.
async fn remove(uow: &mut dyn UnitOfWork, id: &OutboxId) -> Result<bool> {
    let with_id = OutboxQuery::WithIds(vec![id.clone()]);
    let messages = unowned::<OutboxMessage>(uow);
    Ok(messages.remove_all(&with_id).await? > 0)
}

async fn put_off(cx: &Context, uow: &mut dyn UnitOfWork, claimed: &ClaimedMail) -> Result<()> {
    let now = uow.now().await?;
    let mut next = (*claimed.stored).clone();
    next.run_at = retry_at(now, next.attempts, Duration::ZERO, cx.entropy.as_ref());
    write_back(uow, claimed, next).await
}

async fn release(uow: &mut dyn UnitOfWork, claimed: &ClaimedMail) -> Result<()> {
    let mut next = (*claimed.stored).clone();
    next.attempts -= 1;
    next.run_at = uow.now().await?;
    write_back(uow, claimed, next).await
}

async fn write_back(
    uow: &mut dyn UnitOfWork,
    claimed: &ClaimedMail,
    next: OutboxMessage,
) -> Result<()> {
    let replaced = unaudited::replace(uow, &claimed.stored, next).await;
    unless_claimed_by_others(replaced.map(drop))
}

/// Drops a mail. Neither its text nor its subject is told: both may hold a secret.
async fn give_up(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    claimed: &ClaimedMail,
    action: &'static str,
    details: Value,
) -> Result<()> {
    if !remove(uow, claimed.id()).await? {
        return Ok(());
    }
    let event = AuditEvent {
        action,
        entity_id: claimed.id().to_string(),
        details: Some(details),
        ..AuditEvent::default()
    };
    audited::event(cx, uow, event).await
}
