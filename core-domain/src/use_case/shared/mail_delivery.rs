//! Handing queued mails over, each by itself: a server that takes its time holds up neither other mails nor other messages.

use std::time::Duration;

use serde_json::{Value, json};

use super::due_queue::{self, Claimed};
use super::mail::queued_mail;
use super::outbox;
use crate::access::{AuditEvent, audited};
use crate::kernel::{Cipher, Context, Email, OutboxId, Result};
use crate::port::{Mail, Mode, Store, UnitOfWork, transact_in};
use crate::shared::{OutboxMessage, OutboxQuery};

/// How old a mail gets: what it says (a link, an invitation) is of no use any more.
const LIFETIME: Duration = Duration::from_secs(48 * 60 * 60);

/// A mail that is to be handed over, and is nobody else's for a while.
#[derive(Debug)]
pub struct ClaimedMail(Claimed<OutboxMessage>);

impl ClaimedMail {
    /// The id of its message; the same each time it is handed over.
    #[must_use]
    pub fn id(&self) -> &OutboxId {
        &self.0.stored.id
    }

    /// Which attempt this is, from 1.
    #[must_use]
    pub fn attempt(&self) -> i64 {
        self.0.stored.attempts
    }

    /// Whether it is too old to be of use.
    #[must_use]
    pub fn has_expired(&self) -> bool {
        self.0.claimed_at.since(self.0.stored.created_at) > LIFETIME
    }

    /// Returns the mail; `None` if it must not be sent.
    ///
    /// # Errors
    /// `INTERNAL_ERROR` when it was queued with another key.
    pub fn mail(&self, cipher: &Cipher) -> Result<Option<Mail>> {
        queued_mail(cipher, &self.0.stored)
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
    let claimed = due_queue::claim(store, limit, OutboxQuery::MailDueAt).await?;
    Ok(claimed.into_iter().map(ClaimedMail).collect())
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
    let stored = &claimed.0.stored;
    transact_in(Mode::ReadCommitted, store, |uow, _| {
        Box::pin(async move {
            match fate {
                MailFate::Sent => {
                    let removed = outbox::remove(uow, vec![claimed.id().clone()]);
                    removed.await.map(drop)
                }
                MailFate::PutOff => due_queue::put_off(uow, stored, cx.entropy.as_ref()).await,
                MailFate::Released => due_queue::release(uow, stored).await,
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

/// Drops a mail. Neither its text nor its subject is told: both may hold a secret.
async fn give_up(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    claimed: &ClaimedMail,
    action: &'static str,
    details: Value,
) -> Result<()> {
    if outbox::remove(uow, vec![claimed.id().clone()]).await? == 0 {
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
