//! Creating, reading, changing and deleting webhooks.

use std::time::Duration;

use crate::access::{Covers, OperatorScope, PlatformScope, audited, ensure_room, unowned_records};
use crate::kernel::{
    Cipher, Code, Context, Error, ListQuery, Machine, Page, PlatformId, Record, Result, Stored,
    Unowned, WebhookId, permission,
};
use crate::port::UnitOfWork;
use crate::shared::{
    CreateWebhook, UpdateWebhook, Webhook, WebhookDelivery, WebhookDeliveryQuery, WebhookEvent,
    WebhookQuery, WebhookRef, WebhookSecret, WebhookTargets,
};
use crate::use_case::shared::sweep::remove_first;

/// A scope that can read webhooks: those of a platform, or those of the installation.
pub trait ReadsWebhooks: Send + Sync {
    /// Returns the platform; `None` for the installation.
    fn platform(&self) -> Option<&PlatformId>;
}

/// A scope that can change webhooks.
pub trait WritesWebhooks: ReadsWebhooks + Covers<Unowned> {}

impl ReadsWebhooks for PlatformScope<permission::WebhookRead> {
    fn platform(&self) -> Option<&PlatformId> {
        Some(self.id())
    }
}

impl ReadsWebhooks for PlatformScope<permission::WebhookWrite> {
    fn platform(&self) -> Option<&PlatformId> {
        Some(self.id())
    }
}

impl ReadsWebhooks for OperatorScope {
    fn platform(&self) -> Option<&PlatformId> {
        None
    }
}

impl WritesWebhooks for PlatformScope<permission::WebhookWrite> {}
impl WritesWebhooks for OperatorScope {}

/// A webhook with its newest secret, which is returned only this once.
#[derive(Clone, Debug)]
pub struct IssuedWebhook {
    /// The webhook as stored.
    pub webhook: Stored<Webhook>,
    /// The newest secret of the webhook.
    pub secret: WebhookSecret,
}

/// Returns the webhooks of the scope, newest first.
///
/// # Errors
/// `INVALID_CURSOR` if the cursor is invalid.
pub async fn list(
    scope: &impl ReadsWebhooks,
    uow: &mut dyn UnitOfWork,
    query: &ListQuery,
) -> Result<Page<Stored<Webhook>>> {
    let own = WebhookQuery::Of(scope.platform().cloned());
    unowned_records::<Webhook>(uow)
        .page(&own, &query.page())
        .await
}

/// Returns a webhook of the scope.
///
/// # Errors
/// `NOT_FOUND` if the scope has no webhook with this id.
pub async fn get(
    scope: &impl ReadsWebhooks,
    uow: &mut dyn UnitOfWork,
    webhook: &WebhookId,
) -> Result<Stored<Webhook>> {
    let one = WebhookQuery::One {
        platform_id: scope.platform().cloned(),
        id: webhook.clone(),
    };
    let found = unowned_records::<Webhook>(uow).first(&one).await?;
    found.ok_or(Error::NotFound(Webhook::KIND))
}

/// Creates a webhook with a generated secret.
///
/// # Errors
/// - `VALIDATION_ERROR` if the installation does not allow the URL.
/// - `LIMIT_REACHED` if the platform or installation has the maximum number of webhooks.
pub async fn create(
    cx: &Context,
    scope: &impl WritesWebhooks,
    uow: &mut dyn UnitOfWork,
    cipher: &Cipher,
    targets: WebhookTargets,
    command: CreateWebhook,
) -> Result<IssuedWebhook> {
    targets.check(&command.url)?;
    let own = WebhookQuery::Of(scope.platform().cloned());
    let message = "The maximum number of webhooks is reached. Delete one first.";
    ensure_room::<Webhook>(
        unowned_records(uow),
        &own,
        cx.limits.webhooks_per_owner,
        message,
    )
    .await?;
    let now = uow.now().await?;
    let id = WebhookId::generate(now, cx.entropy.as_ref());
    let secret = WebhookSecret::generate(cx.entropy.as_ref());
    let sealed = cipher.seal(id.as_str(), secret.expose())?;
    let webhook = Webhook::create(id, scope.platform().cloned(), command, sealed, now);
    let webhook = audited::insert(cx, scope, uow, webhook, "webhook.created").await?;
    Ok(IssuedWebhook { webhook, secret })
}

/// Changes a webhook.
///
/// # Errors
/// - `NOT_FOUND` if the scope has no webhook with this id.
/// - `VALIDATION_ERROR` if the installation does not allow the URL.
/// - `VERSION_CONFLICT` if `If-Match` names another version of the webhook.
pub async fn update(
    cx: &Context,
    scope: &impl WritesWebhooks,
    uow: &mut dyn UnitOfWork,
    targets: WebhookTargets,
    webhook: &WebhookId,
    command: UpdateWebhook,
) -> Result<Stored<Webhook>> {
    if let Some(url) = &command.url {
        targets.check(url)?;
    }
    let seen = get(scope, uow, webhook).await?;
    let (mut next, mut action) = (seen.edit(), "webhook.updated");
    if let Some(status) = command.status
        && let Some(event) = WebhookEvent::between(seen.status, status)?
    {
        next = next.with_status(status);
        action = event.transition().action;
    }
    command.apply_to(&mut next);
    audited::replace(cx, scope, uow, &seen, next, action).await
}

/// Generates a new secret for a webhook. The replaced secret remains in use for 24 hours.
///
/// # Errors
/// - `NOT_FOUND` if the scope has no webhook with this id.
/// - `CONFLICT` if the maximum number of secrets is in use.
/// - `VERSION_CONFLICT` if `If-Match` names another version of the webhook.
pub async fn rotate_secret(
    cx: &Context,
    scope: &impl WritesWebhooks,
    uow: &mut dyn UnitOfWork,
    cipher: &Cipher,
    webhook: &WebhookId,
) -> Result<IssuedWebhook> {
    let seen = get(scope, uow, webhook).await?;
    let secret = WebhookSecret::generate(cx.entropy.as_ref());
    let sealed = cipher.seal(seen.id.as_str(), secret.expose())?;
    let next = seen.edit().with_new_secret(sealed, uow.now().await?);
    let next = next.ok_or_else(|| {
        let message = "The secret was rotated too often in the last 24 hours.";
        Error::refused(Code::Conflict, message)
    })?;
    let webhook = audited::replace(cx, scope, uow, &seen, next, "webhook.secret_rotated").await?;
    Ok(IssuedWebhook { webhook, secret })
}

/// Deletes a webhook and all its messages, including pending ones.
///
/// # Errors
/// - `NOT_FOUND` if the scope has no webhook with this id, for example because it was already deleted.
/// - `VERSION_CONFLICT` if `If-Match` names another version of the webhook.
pub async fn delete(
    cx: &Context,
    scope: &impl WritesWebhooks,
    uow: &mut dyn UnitOfWork,
    webhook: &WebhookId,
) -> Result<()> {
    let seen = get(scope, uow, webhook).await?;
    audited::remove(cx, scope, uow, &seen, "webhook.deleted").await?;
    let messages = WebhookDeliveryQuery::To {
        webhook: WebhookRef::from(&*seen),
        status: None,
    };
    unowned_records::<WebhookDelivery>(uow)
        .remove_all(&messages)
        .await?;
    Ok(())
}

/// Removes at most `limit` messages that ended longer ago than `retention`, earliest first. Returns the number of removed
/// messages; 0 means that none is left.
///
/// # Errors
/// Only those of the store.
pub async fn remove_ended_deliveries(
    uow: &mut dyn UnitOfWork,
    retention: Duration,
    limit: u32,
) -> Result<u64> {
    let ended = WebhookDeliveryQuery::EndedBefore(uow.now().await?.minus(retention));
    remove_first::<WebhookDelivery>(uow, &ended, limit).await
}

/// Removes the webhooks of a deleted platform and their messages.
pub(in crate::use_case) async fn remove_of_platform(
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
) -> Result<()> {
    let messages = WebhookDeliveryQuery::OfPlatform(platform.clone());
    unowned_records::<WebhookDelivery>(uow)
        .remove_all(&messages)
        .await?;
    let webhooks = WebhookQuery::Of(Some(platform.clone()));
    unowned_records::<Webhook>(uow)
        .remove_all(&webhooks)
        .await?;
    Ok(())
}
