//! Mail: queued in the outbox with the change that causes it, encrypted, because its links are secrets.

use serde_json::{Value, json};

use super::outbox::append;
use crate::kernel::{Cipher, Context, Effect, Error, OutboxId, Result};
use crate::port::{Mail, UnitOfWork};
use crate::shared::{MAIL_TOPIC, OutboxMessage};

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
    let id = OutboxId::generate(uow.now().await?, cx.entropy.as_ref());
    let text = serde_json::to_string(mail);
    let text = text.map_err(|error| Error::Internal(format!("a mail is no JSON: {error}")))?;
    let payload = json!({ "sealed": cipher.seal(id.as_str(), &text)? });
    append(uow, id, MAIL_TOPIC, payload).await?;
    uow.effects().add(Effect::MailQueued);
    Ok(())
}

/// The mail of a message.
///
/// # Errors
/// `INTERNAL_ERROR` when it was queued with another key.
pub fn queued_mail(cipher: &Cipher, message: &OutboxMessage) -> Result<Mail> {
    let sealed = message.payload.get("sealed").and_then(Value::as_str);
    let sealed = sealed.ok_or_else(|| Error::Internal("a queued mail is empty".to_owned()))?;
    let text = cipher.open(message.id.as_str(), sealed)?;
    serde_json::from_str(&text)
        .map_err(|error| Error::Internal(format!("a queued mail is no mail: {error}")))
}
