//! The messages of a webhook, as its owner sees them, tries them out and has them sent once more.

use serde_json::json;

use super::manage::get;
use super::scope::{ReadsWebhooks, WritesWebhooks};
use crate::access::{AuditEvent, audited, unaudited, unowned};
use crate::kernel::{
    Context, Effect, Error, ListQuery, Machine, Page, Record, Result, Stored, Timestamp,
    WebhookDeliveryId, WebhookId,
};
use crate::port::UnitOfWork;
use crate::shared::{
    Webhook, WebhookDelivery, WebhookDeliveryEvent, WebhookDeliveryFilter, WebhookDeliveryQuery,
    WebhookEvent, WebhookStatus, test_message,
};

/// How many messages are recovered at once at most.
const BATCH: u32 = 100;

/// What was recovered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// How many messages are sent once more.
    pub replayed: usize,
    /// Whether more may be left: the same request goes on with them.
    pub has_more: bool,
}

/// The messages of a webhook, newest first.
///
/// # Errors
/// `NOT_FOUND`; `INVALID_CURSOR`.
pub async fn list_deliveries(
    scope: &impl ReadsWebhooks,
    uow: &mut dyn UnitOfWork,
    webhook: &WebhookId,
    query: &ListQuery<WebhookDeliveryFilter>,
) -> Result<Page<Stored<WebhookDelivery>>> {
    let messages = WebhookDeliveryQuery::To {
        webhook_id: get(scope, uow, webhook).await?.id.clone(),
        status: query.filter.status,
    };
    unowned::<WebhookDelivery>(uow)
        .page(&messages, &query.page())
        .await
}

/// A message of a webhook.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn get_delivery(
    scope: &impl ReadsWebhooks,
    uow: &mut dyn UnitOfWork,
    webhook: &WebhookId,
    delivery: &WebhookDeliveryId,
) -> Result<Stored<WebhookDelivery>> {
    let one = WebhookDeliveryQuery::One {
        webhook_id: get(scope, uow, webhook).await?.id.clone(),
        id: delivery.clone(),
    };
    let found = unowned::<WebhookDelivery>(uow).first(&one).await?;
    found.ok_or(Error::NotFound(WebhookDelivery::KIND))
}

/// Queues a message that tells of nothing, to try a webhook out.
///
/// # Errors
/// `NOT_FOUND`; `INVALID_STATE` for a webhook that is disabled; `VERSION_CONFLICT` as `If-Match` speaks of the webhook.
pub async fn send_test(
    cx: &Context,
    scope: &impl WritesWebhooks,
    uow: &mut dyn UnitOfWork,
    webhook: &WebhookId,
) -> Result<Stored<WebhookDelivery>> {
    let webhook = get(scope, uow, webhook).await?;
    cx.check_if_match(&webhook)?;
    ensure_enabled(&webhook)?;
    let now = uow.now().await?;
    let id = WebhookDeliveryId::generate(now, cx.entropy.as_ref());
    let delivery = WebhookDelivery::queue(id, &webhook, None, test_message(&webhook, now), now);
    let stored = unaudited::insert(uow, delivery).await?;
    uow.effects().add(Effect::WebhookQueued);
    record(
        cx,
        uow,
        &webhook,
        "webhook.tested",
        json!({ "deliveryId": stored.id }),
    )
    .await?;
    Ok(stored)
}

/// Sends a message once more, with the same id: at once, and as often as a new one when it is not taken.
///
/// # Errors
/// `NOT_FOUND`; `INVALID_STATE` while the message is pending, and for a webhook that is disabled; `VERSION_CONFLICT` as
/// `If-Match` speaks of the message.
pub async fn replay(
    cx: &Context,
    scope: &impl WritesWebhooks,
    uow: &mut dyn UnitOfWork,
    webhook: &WebhookId,
    delivery: &WebhookDeliveryId,
) -> Result<Stored<WebhookDelivery>> {
    let seen = get_delivery(scope, uow, webhook, delivery).await?;
    cx.check_if_match(&seen)?;
    let webhook = get(scope, uow, webhook).await?;
    ensure_enabled(&webhook)?;
    let next = seen.edit().replayed(uow.now().await?)?;
    let stored = unaudited::replace(uow, &seen, next).await?;
    uow.effects().add(Effect::WebhookQueued);
    let action = WebhookDeliveryEvent::Replay.of_event().action;
    record(
        cx,
        uow,
        &webhook,
        action,
        json!({ "deliveryId": stored.id }),
    )
    .await?;
    Ok(stored)
}

/// Sends the messages once more that were queued since an instant and given up: a hundred at once, the oldest first.
///
/// # Errors
/// `NOT_FOUND`; `INVALID_STATE` for a webhook that is disabled; `VERSION_CONFLICT` as `If-Match` speaks of the webhook.
pub async fn recover(
    cx: &Context,
    scope: &impl WritesWebhooks,
    uow: &mut dyn UnitOfWork,
    webhook: &WebhookId,
    since: Timestamp,
) -> Result<Recovered> {
    let webhook = get(scope, uow, webhook).await?;
    cx.check_if_match(&webhook)?;
    ensure_enabled(&webhook)?;
    let failed = WebhookDeliveryQuery::FailedSince {
        webhook_id: webhook.id.clone(),
        since,
    };
    let failed = unowned::<WebhookDelivery>(uow).list(&failed, BATCH).await?;
    let recovered = Recovered {
        replayed: failed.len(),
        has_more: u32::try_from(failed.len()).is_ok_and(|count| count == BATCH),
    };
    if recovered.replayed == 0 {
        return Ok(recovered);
    }
    let now = uow.now().await?;
    let replayed = failed.into_iter().map(|seen| {
        let next = seen.edit().replayed(now)?;
        Ok((seen, next))
    });
    unaudited::replace_many(uow, replayed.collect::<Result<_>>()?).await?;
    uow.effects().add(Effect::WebhookQueued);
    let details = json!({ "since": since, "replayed": recovered.replayed });
    record(cx, uow, &webhook, "webhook.recovered", details).await?;
    Ok(recovered)
}

/// Refuses a webhook that no messages are sent to.
fn ensure_enabled(webhook: &Webhook) -> Result<()> {
    if webhook.status == WebhookStatus::Enabled {
        return Ok(());
    }
    let sendable = WebhookEvent::Disable.of_event().from.iter().copied();
    Err(crate::kernel::IllegalMove::new(webhook.status, sendable).into())
}

async fn record(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    webhook: &Webhook,
    action: &'static str,
    details: serde_json::Value,
) -> Result<()> {
    let event = AuditEvent {
        platform_id: webhook.platform_id.clone(),
        action,
        entity_id: webhook.id.to_string(),
        details: Some(details),
    };
    audited::event(cx, uow, event).await
}
