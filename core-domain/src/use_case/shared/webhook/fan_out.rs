//! Telling webhooks of changes.

use std::collections::BTreeSet;

use crate::access::{all_unowned, unaudited};
use crate::kernel::{Context, Effect, Error, PlatformId, Result, StoreError, WebhookDeliveryId};
use crate::port::UnitOfWork;
use crate::shared::{ChangeEvent, Webhook, WebhookDelivery, WebhookQuery, change_message};

/// Queues a message of each event to every enabled webhook that asked for it: its platform's, and the installation's. For
/// the unit of work that seals the events; a message there is already is not queued again, and webhooks whose row is among
/// those that cannot be read are told nothing.
///
/// # Errors
/// When the store failed.
pub async fn fan_out(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    events: &[ChangeEvent],
    unreadable: &BTreeSet<String>,
) -> Result<()> {
    let platforms: BTreeSet<&PlatformId> = events
        .iter()
        .filter_map(|e| e.platform_id.as_ref())
        .collect();
    let enabled = WebhookQuery::EnabledFor {
        platforms: platforms.into_iter().cloned().collect(),
        except: unreadable.iter().cloned().collect(),
    };
    let webhooks = all_unowned::<Webhook>(uow, enabled).await?;
    if webhooks.is_empty() {
        return Ok(());
    }
    let now = uow.now().await?;
    let mut messages = Vec::new();
    for event in events {
        let mut wanting = webhooks
            .iter()
            .filter(|webhook| webhook.wants(event))
            .peekable();
        if wanting.peek().is_none() {
            continue;
        }
        let payload = change_message(event);
        messages.extend(wanting.map(|webhook| {
            let id = WebhookDeliveryId::generate(now, cx.entropy.as_ref());
            let message = (event.event_type.as_str(), payload.clone());
            WebhookDelivery::queue(id, webhook, Some(event.id.clone()), message, now)
        }));
    }
    insert_new(uow, messages).await
}

/// Inserts those that are not there yet.
async fn insert_new(uow: &mut dyn UnitOfWork, messages: Vec<WebhookDelivery>) -> Result<()> {
    if messages.is_empty() {
        return Ok(());
    }
    uow.effects().add(Effect::WebhookQueued);
    let inserted = unaudited::insert_many(uow, messages.clone()).await;
    if !is_known(&inserted) {
        return inserted.map(drop);
    }
    for message in messages {
        let inserted = unaudited::insert(uow, message).await;
        if !is_known(&inserted) {
            inserted?;
        }
    }
    Ok(())
}

fn is_known<T>(inserted: &Result<T>) -> bool {
    let conflict = |error: &Error| {
        matches!(
            error,
            Error::Store(StoreError::Conflict { index: "event", .. })
        )
    };
    inserted.as_ref().is_err_and(conflict)
}
