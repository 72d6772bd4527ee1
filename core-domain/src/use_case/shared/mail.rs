//! Mail. A mail is queued in the outbox in the unit of work that causes it. It is stored encrypted, because its links
//! are secrets.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::due_queue::Claimed;
use super::outbox::append;
use super::sweep::remove_first;
use super::{due_queue, outbox};
use crate::access::{AuditEvent, audited, unaudited, unowned_records};
use crate::iam::TokenHash;
use crate::kernel::{Cipher, Context, Effect, Email, Error, OrganizationId, OutboxId, Result};
use crate::port::{Mail, Mode, Store, UnitOfWork, transact_in};
use crate::shared::{
    ExceededRate, MAIL_TOPIC, MailQuota, MailQuotaQuery, MailRate, OutboxMessage, OutboxQuery,
};

/// The content of a queued mail, which is stored encrypted.
#[derive(Serialize, Deserialize)]
struct QueuedMail {
    #[serde(flatten)]
    mail: Mail,
    /// Whether the mail is dropped instead of sent.
    #[serde(default)]
    is_decoy: bool,
}

/// Queues a mail. It is sent after the commit.
///
/// # Errors
/// `INTERNAL_ERROR` if the mail cannot be encoded or encrypted.
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

/// Queues a mail that is never sent. It makes a request that sends no mail indistinguishable from one that does.
///
/// # Errors
/// `INTERNAL_ERROR` if the mail cannot be encoded or encrypted.
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
    let text = text
        .map_err(|error| Error::Internal(format!("a mail cannot be encoded as JSON: {error}")))?;
    let payload = json!({ "sealed": cipher.seal(id.as_str(), &text)? });
    append(uow, id, MAIL_TOPIC, payload).await?;
    uow.effects().add(Effect::MailQueued);
    Ok(())
}

/// Returns the mail in a message; `None` if the mail must not be sent.
///
/// # Errors
/// `INTERNAL_ERROR` if the mail was encrypted with another key or cannot be decoded.
pub fn queued_mail(cipher: &Cipher, message: &OutboxMessage) -> Result<Option<Mail>> {
    let sealed = message.payload.get("sealed").and_then(Value::as_str);
    let sealed =
        sealed.ok_or_else(|| Error::Internal("a queued mail has no content".to_owned()))?;
    let text = cipher.open(message.id.as_str(), sealed)?;
    let queued: QueuedMail = serde_json::from_str(&text)
        .map_err(|error| Error::Internal(format!("a queued mail cannot be decoded: {error}")))?;
    Ok((!queued.is_decoy).then_some(queued.mail))
}

/// Maximum age of a mail. Links and invitations in older mails are of no use.
const MAX_MAIL_AGE: Duration = Duration::from_secs(48 * 60 * 60);

/// A claimed mail. Until the claim expires, no other process sends it.
#[derive(Debug)]
pub struct ClaimedMail(Claimed<OutboxMessage>);

impl ClaimedMail {
    /// Returns the id of the message; the same for every attempt.
    #[must_use]
    pub fn id(&self) -> &OutboxId {
        &self.0.stored.id
    }

    /// Returns the number of this attempt, starting at 1.
    #[must_use]
    pub fn attempt(&self) -> i64 {
        self.0.stored.attempts
    }

    /// Returns whether the mail has exceeded its maximum age of 48 hours.
    #[must_use]
    pub fn has_expired(&self) -> bool {
        self.0.claimed_at.since(self.0.stored.created_at) > MAX_MAIL_AGE
    }

    /// Returns the mail; `None` if it must not be sent.
    ///
    /// # Errors
    /// `INTERNAL_ERROR` if the mail was encrypted with another key or cannot be decoded.
    pub fn mail(&self, cipher: &Cipher) -> Result<Option<Mail>> {
        queued_mail(cipher, &self.0.stored)
    }
}

/// The outcome of a claimed mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MailOutcome {
    /// The mailer accepted the mail, or the mail must not be sent.
    Sent,
    /// The attempt failed. The mail is tried again after a delay that grows to five minutes.
    PutOff,
    /// The attempt was interrupted. The mail is due immediately, and the attempt does not count.
    Released,
    /// The mailer refused the mail permanently. The mail is dropped, with an audit entry.
    Refused(Email),
    /// The mail was too old and is dropped, with an audit entry. The recipient is `None` if the mail cannot be decoded.
    Expired(Option<Email>),
}

/// Claims at most `limit` due mails, longest due first.
///
/// # Errors
/// Only those of the store.
pub async fn claim_mails(store: &dyn Store, limit: u32) -> Result<Vec<ClaimedMail>> {
    let claimed = due_queue::claim(store, limit, OutboxQuery::MailDueAt).await?;
    Ok(claimed.into_iter().map(ClaimedMail).collect())
}

/// Stores the outcome of a mail in a unit of work of its own.
///
/// # Errors
/// Only those of the store; the mail is then due again when its claim expires.
pub async fn store_mail_outcome(
    cx: &Context,
    store: &dyn Store,
    claimed: &ClaimedMail,
    fate: &MailOutcome,
) -> Result<()> {
    let stored = &claimed.0.stored;
    transact_in(Mode::ReadCommitted, store, |uow, _| {
        Box::pin(async move {
            match fate {
                MailOutcome::Sent => {
                    let removed = outbox::remove(uow, vec![claimed.id().clone()]);
                    removed.await.map(drop)
                }
                MailOutcome::PutOff => {
                    due_queue::reschedule(uow, stored, cx.entropy.as_ref()).await
                }
                MailOutcome::Released => due_queue::release(uow, stored).await,
                MailOutcome::Refused(to) => {
                    let details = json!({ "to": to, "attempts": claimed.attempt() });
                    drop_mail(cx, uow, claimed, "mail.refused", details).await
                }
                MailOutcome::Expired(to) => {
                    // This attempt was not made.
                    let details = json!({ "to": to, "attempts": claimed.attempt() - 1 });
                    drop_mail(cx, uow, claimed, "mail.expired", details).await
                }
            }
        })
    })
    .await
}

/// Drops a mail with an audit entry. The entry contains neither the text nor the subject, because both may contain a
/// secret.
async fn drop_mail(
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
    audited::record_event(cx, uow, event).await
}

/// The subject of a quota: the mails that it counts.
#[derive(Clone, Copy, Debug)]
pub(in crate::use_case) enum MailSubject<'a> {
    /// Mails of one kind to an address, from any sender.
    Address {
        /// The kind of mail.
        kind: &'a str,
        /// The address. It is stored as a hash.
        email: &'a Email,
    },
    /// Mails of one kind to an address from one organization.
    AddressOf {
        /// The kind of mail.
        kind: &'a str,
        /// The address. It is stored as a hash.
        email: &'a Email,
        /// The organization that sends the mail.
        organization: &'a OrganizationId,
    },
    /// Mails of one kind from an organization, to any address.
    Organization {
        /// The kind of mail.
        kind: &'a str,
        /// The organization that sends the mail.
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

/// The result of checking the quotas for a mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(in crate::use_case) enum MailPermit {
    /// The mail is counted. The caller must queue it in the same unit of work.
    Granted,
    /// A limit would be exceeded. Nothing was counted.
    Refused(ExceededRate),
}

/// Counts one mail in each of the quotas, or in none if one of them is exhausted.
///
/// # Errors
/// Only those of the store.
pub(in crate::use_case) async fn check_mail_quotas(
    uow: &mut dyn UnitOfWork,
    quotas: &[(MailSubject<'_>, &[MailRate])],
) -> Result<MailPermit> {
    let now = uow.now().await?;
    let mut taken = Vec::with_capacity(quotas.len());
    for (subject, rates) in quotas {
        let id = subject.id();
        let stored = unowned_records::<MailQuota>(uow).find(&id).await?;
        let next = match &stored {
            Some(seen) => seen.add_mail(rates, now),
            None => MailQuota::new(id, now).add_mail(rates, now),
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

/// Removes at most `limit` expired quotas, earliest first. Returns the number of removed quotas; 0 means that none is
/// left.
///
/// # Errors
/// Only those of the store.
pub async fn remove_expired_mail_quotas(uow: &mut dyn UnitOfWork, limit: u32) -> Result<u64> {
    let now = uow.now().await?;
    remove_first::<MailQuota>(uow, &MailQuotaQuery::ExpiredAt(now), limit).await
}
