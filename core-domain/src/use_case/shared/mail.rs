//! Mail: queued in the outbox with the change that causes it, encrypted, because its links are secrets.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::due_queue::Claimed;
use super::outbox::append;
use super::sweep::remove_first;
use super::{due_queue, outbox};
use crate::access::{AuditEvent, audited, unaudited, unowned};
use crate::iam::TokenHash;
use crate::kernel::{Cipher, Context, Effect, Email, Error, OrganizationId, OutboxId, Result};
use crate::port::{Mail, Mode, Store, UnitOfWork, transact_in};
use crate::shared::{
    ExceededRate, MAIL_TOPIC, MailQuota, MailQuotaQuery, MailRate, OutboxMessage, OutboxQuery,
};

/// The sealed content of a queued mail.
#[derive(Serialize, Deserialize)]
struct QueuedMail {
    #[serde(flatten)]
    mail: Mail,
    /// Whether the mail is dropped instead of sent.
    #[serde(default)]
    is_decoy: bool,
}

/// Queues a mail; it is sent after the commit.
///
/// # Errors
/// When the store failed.
pub(in crate::use_case) async fn queue_mail(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    cipher: &Cipher,
    mail: &Mail,
) -> Result<()> {
    let mail = mail.clone();
    let is_decoy = false;
    queue(cx, uow, cipher, &QueuedMail { mail, is_decoy }).await
}

/// Queues a mail that is never sent, so that a request that sends nothing does the same work as one that does.
///
/// # Errors
/// When the store failed.
pub(in crate::use_case) async fn queue_decoy(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    cipher: &Cipher,
    mail: &Mail,
) -> Result<()> {
    let mail = mail.clone();
    let is_decoy = true;
    queue(cx, uow, cipher, &QueuedMail { mail, is_decoy }).await
}

async fn queue(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    cipher: &Cipher,
    mail: &QueuedMail,
) -> Result<()> {
    let id = OutboxId::generate(uow.now().await?, cx.entropy.as_ref());
    let text = serde_json::to_string(mail);
    let text = text.map_err(|error| Error::Internal(format!("a mail is no JSON: {error}")))?;
    let payload = json!({ "sealed": cipher.seal(id.as_str(), &text)? });
    append(uow, id, MAIL_TOPIC, payload).await?;
    uow.effects().add(Effect::MailQueued);
    Ok(())
}

/// Returns the mail of a message; `None` if the mail must not be sent.
///
/// # Errors
/// `INTERNAL_ERROR` when it was queued with another key.
pub fn queued_mail(cipher: &Cipher, message: &OutboxMessage) -> Result<Option<Mail>> {
    let sealed = message.payload.get("sealed").and_then(Value::as_str);
    let sealed = sealed.ok_or_else(|| Error::Internal("a queued mail is empty".to_owned()))?;
    let text = cipher.open(message.id.as_str(), sealed)?;
    let queued: QueuedMail = serde_json::from_str(&text)
        .map_err(|error| Error::Internal(format!("a queued mail is no mail: {error}")))?;
    Ok((!queued.is_decoy).then_some(queued.mail))
}

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

/// What a quota counts.
#[derive(Clone, Copy, Debug)]
pub(in crate::use_case) enum MailSubject<'a> {
    /// Mails of a kind to an address, from anybody.
    Address {
        /// The kind of mail.
        kind: &'a str,
        /// The address. It is stored as a hash.
        email: &'a Email,
    },
    /// Mails of a kind to an address from one organization.
    AddressOf {
        /// The kind of mail.
        kind: &'a str,
        /// The address. It is stored as a hash.
        email: &'a Email,
        /// The sender.
        organization: &'a OrganizationId,
    },
    /// Mails of a kind from an organization, to anybody.
    Organization {
        /// The kind of mail.
        kind: &'a str,
        /// The sender.
        organization: &'a OrganizationId,
    },
}

impl MailSubject<'_> {
    fn id(self) -> String {
        let (kind, subject) = match self {
            Self::Address { kind, email } => (kind, TokenHash::of(email.as_str())),
            Self::AddressOf {
                kind,
                email,
                organization,
            } => (kind, TokenHash::of(&format!("{organization}:{email}"))),
            Self::Organization { kind, organization } => {
                (kind, TokenHash::of(organization.as_str()))
            }
        };
        format!("{kind}:{}", AsRef::<str>::as_ref(&subject))
    }
}

/// The outcome of asking quotas for a mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(in crate::use_case) enum MailPermit {
    /// The mail is counted and must be queued in the same unit of work.
    Granted,
    /// A rate would be exceeded. Nothing was counted.
    Refused(ExceededRate),
}

/// Counts one mail in each of the quotas, or in none if one of them refuses it.
///
/// # Errors
/// When the store failed.
pub(in crate::use_case) async fn take_mail(
    uow: &mut dyn UnitOfWork,
    quotas: &[(MailSubject<'_>, &[MailRate])],
) -> Result<MailPermit> {
    let now = uow.now().await?;
    let mut taken = Vec::with_capacity(quotas.len());
    for (subject, rates) in quotas {
        let id = subject.id();
        let stored = unowned::<MailQuota>(uow).find(&id).await?;
        let next = match &stored {
            Some(seen) => seen.take(rates, now),
            None => MailQuota::new(id, now).take(rates, now),
        };
        match next {
            Ok(next) => taken.push((stored, next)),
            Err(exceeded) => return Ok(MailPermit::Refused(exceeded)),
        }
    }
    for (stored, next) in taken {
        match stored {
            Some(seen) => unaudited::replace(uow, &seen, next).await?,
            None => unaudited::insert(uow, next).await?,
        };
    }
    Ok(MailPermit::Granted)
}

/// Removes at most `limit` of the quotas that have expired, the first to expire first. Returns
/// their number; 0 means that none is left.
///
/// # Errors
/// When the store failed.
pub async fn remove_expired_mail_quotas(uow: &mut dyn UnitOfWork, limit: u32) -> Result<u64> {
    let now = uow.now().await?;
    remove_first::<MailQuota>(uow, &MailQuotaQuery::ExpiredAt(now), limit).await
}
