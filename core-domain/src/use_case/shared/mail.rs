//! Mail: queued in the outbox with the change that causes it, encrypted, because its links are secrets.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::outbox::append;
use crate::kernel::{Cipher, Context, Effect, Error, OutboxId, Result};
use crate::port::{Mail, UnitOfWork};
use crate::shared::{MAIL_TOPIC, OutboxMessage};

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
