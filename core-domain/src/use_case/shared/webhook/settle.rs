//! Writing down what became of an attempt.

use super::super::due_queue;
use super::claim::ClaimedDelivery;
use crate::access::{SystemScope, audited, unaudited, unowned};
use crate::kernel::{Context, Machine, Result, WebhookId};
use crate::port::{Store, UnitOfWork, WebhookAnswer, WebhookSendError, transact};
use crate::shared::{Webhook, WebhookAttempt, WebhookEvent, WebhookOutcome};

/// What became of a claimed message.
#[derive(Debug)]
pub enum DeliveryResult {
    /// It was sent, and this came of it after so many milliseconds.
    Tried(std::result::Result<WebhookAnswer, WebhookSendError>, u32),
    /// Nobody tried it to the end: it may be claimed again at once, and the attempt does not count.
    Released,
}

/// Writes down what became of a message, in a unit of work of its own: the message, and what that means for its webhook.
///
/// # Errors
/// When the store failed; the message comes again when its claim has run out.
pub async fn settle_delivery(
    cx: &Context,
    store: &dyn Store,
    claimed: &ClaimedDelivery,
    result: &DeliveryResult,
) -> Result<()> {
    let (answer, duration_ms) = match result {
        DeliveryResult::Tried(answer, duration_ms) => (answer, *duration_ms),
        DeliveryResult::Released => return release(store, claimed).await,
    };
    let outcome = &outcome(claimed, answer, duration_ms);
    transact(store, |uow, _| {
        Box::pin(async move {
            let now = uow.now().await?;
            let next = claimed
                .stored
                .edit()
                .after(outcome, now, cx.entropy.as_ref())?;
            if !due_queue::write_back(uow, &claimed.stored, next).await? {
                // It took too long: somebody else has the message now.
                return Ok(());
            }
            update_health(cx, uow, claimed.webhook_id(), outcome).await
        })
    })
    .await
}

async fn release(store: &dyn Store, claimed: &ClaimedDelivery) -> Result<()> {
    transact(store, |uow, _| {
        Box::pin(due_queue::release(uow, &claimed.stored))
    })
    .await
}

fn outcome(
    claimed: &ClaimedDelivery,
    answer: &std::result::Result<WebhookAnswer, WebhookSendError>,
    duration_ms: u32,
) -> WebhookOutcome {
    let answered = answer.as_ref().ok();
    let error = match answer {
        Ok(answer) if (200..300).contains(&answer.status) => None,
        Ok(answer) => Some(format!("the receiver answered {}", answer.status)),
        Err(error) => Some(error.to_string()),
    };
    WebhookOutcome {
        attempt: WebhookAttempt {
            at: claimed.claimed_at,
            status: answered.map(|answer| answer.status),
            duration_ms,
            error,
            body: answered.map(|answer| answer.body.clone()),
        },
        retry_after: answered.and_then(|answer| answer.retry_after.clone()),
    }
}

/// What an attempt means for its webhook. One that was deleted meanwhile has nothing to note.
async fn update_health(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    webhook: &WebhookId,
    outcome: &WebhookOutcome,
) -> Result<()> {
    let Some(seen) = unowned::<Webhook>(uow).find(webhook).await? else {
        return Ok(());
    };
    let next = if outcome.is_success() {
        seen.edit().delivered()
    } else {
        seen.edit().failed(uow.now().await?, outcome.is_gone())
    };
    if next == *seen {
        return Ok(());
    }
    if next.status == seen.status {
        unaudited::replace(uow, &seen, next).await?;
        return Ok(());
    }
    let (scope, action) = (SystemScope::new(), WebhookEvent::Disable.of_event().action);
    audited::replace(cx, &scope, uow, &seen, next, action).await?;
    Ok(())
}
