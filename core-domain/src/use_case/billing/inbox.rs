//! The inbox of events from the payment provider (contract: "Webhook"). An event is stored once, together with the job that
//! applies it. What counts is the object at the provider when the job runs, so order and repetition do not matter.

use std::time::Duration;

use super::event_job::{ApplyEvent, EventInput, Subject};
use super::provider::payments_error;
use super::{Billing, feed_position};
use crate::access::{SystemScope, unaudited, unowned_records};
use crate::billing::{
    Customer, CustomerQuery, FeedCursor, ReceivedEvent, ReceivedEventQuery, ReceivedEventStatus,
};
use crate::kernel::{Context, Error, Result, Timestamp};
use crate::port::{Mode, ProviderEvent, Store, UnitOfWork, WebhookError, transact};
use crate::use_case::provisioning::enqueue;
use crate::use_case::shared::remove_first;

/// The time after which an event appears in the list of the provider at the latest.
const OVERLAP: Duration = Duration::from_secs(10 * 60);

/// How far the first look at the events of the provider goes back.
const FIRST_LOOK: Duration = Duration::from_secs(24 * 60 * 60);

/// How long events are kept. The provider repeats a delivery for 3 days, and lists events for 30.
const RETENTION: Duration = Duration::from_secs(35 * 24 * 60 * 60);

/// Stores an event, and queues the job that applies it. Returns `false` if the event is known.
///
/// # Errors
/// Only those of the store.
pub async fn receive(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    event: &ProviderEvent,
) -> Result<bool> {
    let customer = match &event.customer {
        Some(id) => {
            let with_id = CustomerQuery::WithProviderId(id.clone());
            unowned_records::<Customer>(uow).first(&with_id).await?
        }
        None => None,
    };
    let is_handled = match Subject::of(&event.kind) {
        Some(Subject::Dispute) => true,
        Some(_) => customer.is_some(),
        None => false,
    };
    let customer_id = customer.map(|customer| customer.id.clone());
    let received = ReceivedEvent {
        id: event.id.clone(),
        kind: event.kind.clone(),
        object_id: event.object_id.clone(),
        customer_id: customer_id.clone(),
        happened_at: event.created_at,
        received_at: uow.now().await?,
        status: match is_handled {
            true => ReceivedEventStatus::Received,
            false => ReceivedEventStatus::Ignored,
        },
    };
    let new = unaudited::insert_new(uow, vec![received]).await?;
    if new.is_empty() {
        return Ok(false);
    }
    if is_handled {
        let input = EventInput {
            customer_id,
            event_id: event.id.clone(),
        };
        enqueue::<ApplyEvent>(cx, &SystemScope::new(), uow, &input).await?;
    }
    Ok(true)
}

/// Checks the signature of a webhook over its bytes, and stores its event. Returns `false` if the event is known.
///
/// # Errors
/// - `VALIDATION_ERROR` if the signature is not valid, or the event is not for this installation.
/// - `NOT_FOUND` if the provider sends no webhooks, or no secret is configured.
pub async fn receive_webhook(
    cx: &Context,
    store: &dyn Store,
    billing: &Billing,
    body: &[u8],
    signature: &str,
) -> Result<bool> {
    let mut uow = store.begin(Mode::Read).await?;
    let now = uow.now().await;
    uow.rollback().await;
    let event = billing.payments.verify_webhook(body, signature, now?);
    let event = &event.map_err(webhook_error)?;
    transact(store, |uow, _| {
        Box::pin(async move { receive(cx, uow, event).await })
    })
    .await
}

fn webhook_error(error: WebhookError) -> Error {
    match error {
        WebhookError::NotConfigured => Error::NotFound("webhook"),
        WebhookError::Malformed(_) => Error::invalid("body", "invalid", error.to_string()),
        WebhookError::Signature | WebhookError::Stale | WebhookError::OtherMode => {
            Error::invalid("Stripe-Signature", "invalid", error.to_string())
        }
    }
}

/// Stores the events whose webhooks were missed, for example while the installation was down. Returns their number. Call
/// it every few minutes. It has a position of its own, because a later event can be delivered before an earlier one.
///
/// # Errors
/// `PAYMENT_PROVIDER_UNAVAILABLE` if the provider fails.
pub async fn catch_up(cx: &Context, store: &dyn Store, billing: &Billing) -> Result<usize> {
    let since = last_look(store).await?;
    let events = billing.payments.events_since(since).await;
    let events = events.map_err(payments_error)?;
    let mut received = 0;
    for event in &events {
        let is_new = transact(store, |uow, _| {
            Box::pin(async move { receive(cx, uow, event).await })
        });
        received += usize::from(is_new.await?);
    }
    if let Some(last) = events.iter().map(|event| event.created_at).max() {
        feed_position::advance(store, FeedCursor::PROVIDER, last.seconds()).await?;
    }
    Ok(received)
}

/// Returns the instant since which events may have been missed.
async fn last_look(store: &dyn Store) -> Result<Timestamp> {
    if let Some(position) = feed_position::position(store, FeedCursor::PROVIDER).await? {
        return Ok(Timestamp::from_seconds(position).minus(OVERLAP));
    }
    let mut uow = store.begin(Mode::Read).await?;
    let now = uow.now().await;
    uow.rollback().await;
    Ok(now?.minus(FIRST_LOOK))
}

/// Removes at most `limit` events that were received more than 35 days ago. Returns the number of removed events; 0 means that
/// none is left.
///
/// # Errors
/// Only those of the store.
pub async fn remove_old_provider_events(uow: &mut dyn UnitOfWork, limit: u32) -> Result<u64> {
    let old = ReceivedEventQuery::ReceivedBefore(uow.now().await?.minus(RETENTION));
    remove_first::<ReceivedEvent>(uow, &old, limit).await
}
