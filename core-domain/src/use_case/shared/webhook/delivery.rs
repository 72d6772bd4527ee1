//! Messages to webhooks: reading, testing, replaying and claiming them, and storing their results.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::json;

use super::manage::{ReadsWebhooks, WritesWebhooks, get};
use crate::access::{
    AuditEvent, SystemScope, all_unowned, audited, ensure_not_deleted, unaudited, unowned_records,
};
use crate::kernel::{
    Cipher, Context, Effect, Error, ListQuery, Machine, Page, PlatformId, Record, Result,
    StoreError, Stored, Timestamp, WebhookDeliveryId, WebhookId,
};
use crate::port::{
    MAX_SEND_DURATION, Mode, Store, UnitOfWork, WebhookRequest, WebhookResponse, WebhookSendError,
    transact, transact_in,
};
use crate::shared::{
    ChangeEvent, Webhook, WebhookAttempt, WebhookDelivery, WebhookDeliveryEvent,
    WebhookDeliveryFilter, WebhookDeliveryQuery, WebhookEvent, WebhookOutcome, WebhookQuery,
    WebhookRef, WebhookSecret, WebhookStatus, change_message, test_message,
};
use crate::use_case::shared::due_queue;
use crate::use_case::shared::due_queue::DueRecord;

/// Maximum number of messages that one call of [`recover`] replays.
const BATCH: u32 = 100;

/// The result of recovering failed messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecoveryResult {
    /// The number of messages that will be sent again.
    pub replayed: usize,
    /// `true` if more messages may be left. Repeat the same request to recover them.
    pub has_more: bool,
}

/// Returns the messages of a webhook, newest first.
///
/// # Errors
/// - `NOT_FOUND` if the scope has no webhook with this id.
/// - `INVALID_CURSOR` if the cursor is invalid.
pub async fn list_deliveries(
    scope: &impl ReadsWebhooks,
    uow: &mut dyn UnitOfWork,
    webhook: &WebhookId,
    query: &ListQuery<WebhookDeliveryFilter>,
) -> Result<Page<Stored<WebhookDelivery>>> {
    let messages = WebhookDeliveryQuery::To {
        webhook: WebhookRef::from(&*get(scope, uow, webhook).await?),
        status: query.filter.status,
    };
    unowned_records::<WebhookDelivery>(uow)
        .page(&messages, &query.page())
        .await
}

/// Returns a message of a webhook.
///
/// # Errors
/// `NOT_FOUND` if the webhook or the message does not exist in the scope.
pub async fn get_delivery(
    scope: &impl ReadsWebhooks,
    uow: &mut dyn UnitOfWork,
    webhook: &WebhookId,
    delivery: &WebhookDeliveryId,
) -> Result<Stored<WebhookDelivery>> {
    let one = WebhookDeliveryQuery::One {
        webhook: WebhookRef::from(&*get(scope, uow, webhook).await?),
        id: delivery.clone(),
    };
    let found = unowned_records::<WebhookDelivery>(uow).first(&one).await?;
    found.ok_or(Error::NotFound(WebhookDelivery::KIND))
}

/// Queues a test message, which contains no event.
///
/// # Errors
/// - `NOT_FOUND` if the scope has no webhook with this id.
/// - `INVALID_STATE` if the webhook is disabled.
/// - `VERSION_CONFLICT` if `If-Match` names another version of the webhook.
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
    let (event_type, payload) = test_message(&webhook, now);
    let delivery = WebhookDelivery::queue(id, &webhook, None, event_type, payload, now);
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

/// Sends a message again with the same id, immediately and with all its attempts available again.
///
/// # Errors
/// - `NOT_FOUND` if the webhook or the message does not exist in the scope.
/// - `INVALID_STATE` if the message is pending or the webhook is disabled.
/// - `VERSION_CONFLICT` if `If-Match` names another version of the message.
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
    let next = seen.edit().into_replayed(uow.now().await?)?;
    let stored = unaudited::replace(uow, &seen, next).await?;
    uow.effects().add(Effect::WebhookQueued);
    let action = WebhookDeliveryEvent::Replay.transition().action;
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

/// Sends failed messages again that were queued at or after `since`: at most 100, oldest first.
///
/// # Errors
/// - `NOT_FOUND` if the scope has no webhook with this id.
/// - `INVALID_STATE` if the webhook is disabled.
/// - `VERSION_CONFLICT` if `If-Match` names another version of the webhook.
pub async fn recover(
    cx: &Context,
    scope: &impl WritesWebhooks,
    uow: &mut dyn UnitOfWork,
    webhook: &WebhookId,
    since: Timestamp,
) -> Result<RecoveryResult> {
    let webhook = get(scope, uow, webhook).await?;
    cx.check_if_match(&webhook)?;
    ensure_enabled(&webhook)?;
    let failed = WebhookDeliveryQuery::FailedSince {
        webhook: WebhookRef::from(&*webhook),
        since,
    };
    let failed = unowned_records::<WebhookDelivery>(uow)
        .list(&failed, BATCH)
        .await?;
    let recovered = RecoveryResult {
        replayed: failed.len(),
        has_more: u32::try_from(failed.len()).is_ok_and(|count| count == BATCH),
    };
    if recovered.replayed == 0 {
        return Ok(recovered);
    }
    let now = uow.now().await?;
    let replayed = failed.into_iter().map(|seen| {
        let next = seen.edit().into_replayed(now)?;
        Ok((seen, next))
    });
    unaudited::replace_many(uow, replayed.collect::<Result<_>>()?).await?;
    uow.effects().add(Effect::WebhookQueued);
    let details = json!({ "since": since, "replayed": recovered.replayed });
    record(cx, uow, &webhook, "webhook.recovered", details).await?;
    Ok(recovered)
}

/// Checks that the webhook is enabled.
fn ensure_enabled(webhook: &Webhook) -> Result<()> {
    if webhook.status == WebhookStatus::Enabled {
        return Ok(());
    }
    let sendable = WebhookEvent::Disable.transition().from.iter().copied();
    Err(crate::kernel::IllegalTransition::new(webhook.status, sendable).into())
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
    audited::record_event(cx, uow, event).await
}

/// Time by which the messages of a suspended platform are postponed.
const SUSPENSION_DELAY: Duration = Duration::from_secs(5 * 60);

/// Maximum number of passes over the due messages in one unit of work.
const MAX_PASSES: usize = 16;

impl DueRecord for WebhookDelivery {
    const MAX_ATTEMPT_TIME: Duration = MAX_SEND_DURATION;

    fn attempts(&self) -> i64 {
        self.attempts
    }

    fn with_schedule(&self, attempts: i64, due_at: Timestamp, now: Timestamp) -> Self {
        Self {
            attempts,
            ..self.clone().postpone(due_at, now)
        }
    }
}

/// Maximum number of messages that one process sends at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DispatchLimits {
    /// The limit for all webhooks together.
    pub concurrency: u32,
    /// The limit for one webhook, so that a slow receiver does not delay others.
    pub concurrency_per_webhook: u32,
}

/// A claimed message. Until the claim expires, no other process sends it.
#[derive(Debug)]
pub struct ClaimedDelivery {
    pub(super) stored: Stored<WebhookDelivery>,
    pub(super) claimed_at: Timestamp,
    webhook: Stored<Webhook>,
}

impl ClaimedDelivery {
    /// Returns the id of the message.
    #[must_use]
    pub fn id(&self) -> &WebhookDeliveryId {
        &self.stored.id
    }

    /// Returns the id of the webhook that receives the message.
    #[must_use]
    pub fn webhook_id(&self) -> &WebhookId {
        &self.stored.webhook_id
    }

    /// Returns the HTTP request, signed with every secret that is in use.
    ///
    /// # Errors
    /// `INTERNAL_ERROR` if the secrets were encrypted with another key.
    pub fn request(&self, cipher: &Cipher) -> Result<WebhookRequest> {
        let (id, body) = (self.stored.id.as_str(), self.stored.payload.as_str());
        let mut signatures = Vec::new();
        for sealed in self.webhook.secrets_at(self.claimed_at) {
            let secret = cipher.open(self.webhook.id.as_str(), sealed)?;
            let secret = WebhookSecret::parse(&secret);
            signatures.extend(secret.map(|secret| secret.sign(id, self.claimed_at, body)));
        }
        Ok(WebhookRequest {
            url: self.webhook.url.clone(),
            id: id.to_owned(),
            timestamp: self.claimed_at.seconds().to_string(),
            signature: signatures.join(" "),
            body: body.to_owned(),
        })
    }
}

/// Claims due messages, within the limits and in addition to those in progress. Also handles due messages that must not
/// be sent: those of a suspended platform are postponed; those of a deleted platform or a disabled webhook fail.
///
/// # Errors
/// Only those of the store.
pub async fn claim_deliveries(
    store: &dyn Store,
    limits: DispatchLimits,
    under_way: &BTreeMap<WebhookId, u32>,
) -> Result<Vec<ClaimedDelivery>> {
    let free = limits.concurrency.saturating_sub(under_way.values().sum());
    let due_at = |now| due_query(now, limits.concurrency_per_webhook, under_way);
    if free == 0 || !due_queue::is_any_due::<WebhookDelivery>(store, due_at).await? {
        return Ok(Vec::new());
    }
    transact_in(Mode::ReadCommitted, store, |uow, _| {
        Box::pin(async move {
            let mut claim = Claim {
                now: uow.now().await?,
                per_webhook: limits.concurrency_per_webhook,
                under_way: under_way.clone(),
                platforms: BTreeMap::new(),
                claimed: Vec::new(),
            };
            claim.run(uow, free).await?;
            Ok(claim.claimed)
        })
    })
    .await
}

/// Returns the query for due messages, without webhooks that have reached their limit of messages in progress.
fn due_query(
    now: Timestamp,
    most: u32,
    under_way: &BTreeMap<WebhookId, u32>,
) -> WebhookDeliveryQuery {
    let full = under_way.iter().filter(|(_, count)| **count >= most);
    let except = full.map(|(webhook, _)| webhook.clone()).collect();
    WebhookDeliveryQuery::DueAt { now, except }
}

/// The state of a platform, which decides whether its messages are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PlatformState {
    Active,
    Suspended,
    Deleted,
}

/// The state of one unit of work that claims messages.
struct Claim {
    now: Timestamp,
    per_webhook: u32,
    under_way: BTreeMap<WebhookId, u32>,
    platforms: BTreeMap<PlatformId, PlatformState>,
    claimed: Vec<ClaimedDelivery>,
}

impl Claim {
    /// Claims in several passes, because the first due messages may all be for one webhook. A webhook that reaches its
    /// limit is left out of the next pass.
    async fn run(&mut self, uow: &mut dyn UnitOfWork, mut free: u32) -> Result<()> {
        for _ in 0..MAX_PASSES {
            let due = due_query(self.now, self.per_webhook, &self.under_way);
            let found = unowned_records::<WebhookDelivery>(uow)
                .claim(&due, free)
                .await?;
            if found.is_empty() {
                break;
            }
            let is_last = found.len() < free as usize;
            let before = self.claimed.len();
            self.process(uow, found).await?;
            free = free.saturating_sub(u32::try_from(self.claimed.len() - before).unwrap_or(free));
            if is_last || free == 0 {
                break;
            }
        }
        Ok(())
    }

    async fn process(
        &mut self,
        uow: &mut dyn UnitOfWork,
        found: Vec<Stored<WebhookDelivery>>,
    ) -> Result<()> {
        let ids: BTreeSet<&str> = found.iter().map(|d| d.webhook_id.as_str()).collect();
        let ids: Vec<&str> = ids.into_iter().collect();
        let webhooks = unowned_records::<Webhook>(uow).get_many(&ids).await?;
        let (mut changes, mut receivers) = (Vec::new(), BTreeMap::new());
        for seen in found {
            let webhook = webhooks
                .iter()
                .find(|webhook| webhook.id == seen.webhook_id);
            let state = self.platform_state(uow, seen.platform_id.as_ref()).await?;
            let next = match (webhook, state) {
                (None, _) | (_, PlatformState::Deleted) => seen
                    .edit()
                    .into_failed("The platform or webhook was deleted.", self.now)?,
                (Some(webhook), _) if webhook.status == WebhookStatus::Disabled => seen
                    .edit()
                    .into_failed("The webhook is disabled.", self.now)?,
                (_, PlatformState::Suspended) => seen
                    .edit()
                    .postpone(self.now.plus(SUSPENSION_DELAY), self.now),
                (Some(webhook), PlatformState::Active) => {
                    let in_progress = self.under_way.entry(seen.webhook_id.clone()).or_default();
                    if *in_progress >= self.per_webhook {
                        continue;
                    }
                    *in_progress += 1;
                    receivers.insert(seen.id.clone(), webhook.clone());
                    seen.with_claim(self.now)
                }
            };
            changes.push((seen, next));
        }
        let stored = unaudited::replace_many(uow, changes).await?;
        let claimed_at = self.now;
        let claimed = stored.into_iter().filter_map(|stored| {
            let webhook = receivers.remove(&stored.id)?;
            Some(ClaimedDelivery {
                stored,
                claimed_at,
                webhook,
            })
        });
        self.claimed.extend(claimed);
        Ok(())
    }

    async fn platform_state(
        &mut self,
        uow: &mut dyn UnitOfWork,
        platform: Option<&PlatformId>,
    ) -> Result<PlatformState> {
        let Some(platform) = platform else {
            return Ok(PlatformState::Active);
        };
        if let Some(known) = self.platforms.get(platform) {
            return Ok(*known);
        }
        let state = match SystemScope::new().platform(uow, platform).await? {
            Some(found) if ensure_not_deleted(found.platform()).is_err() => PlatformState::Deleted,
            Some(found) if found.suspension().is_some() => PlatformState::Suspended,
            Some(_) => PlatformState::Active,
            None => PlatformState::Deleted,
        };
        self.platforms.insert(platform.clone(), state);
        Ok(state)
    }
}

/// The result of a claimed message.
#[derive(Debug)]
pub enum DeliveryResult {
    /// An attempt was made: its outcome, and its duration in milliseconds.
    Tried(std::result::Result<WebhookResponse, WebhookSendError>, u32),
    /// The attempt was interrupted. The message is due immediately, and the attempt does not count.
    Released,
}

/// Stores the result of a message in a unit of work of its own, and updates the failure count of its webhook.
///
/// # Errors
/// Only those of the store; the message is then due again when its claim expires.
pub async fn store_delivery_result(
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
                .after_attempt(outcome, now, cx.entropy.as_ref())?;
            if !due_queue::write_back(uow, &claimed.stored, next).await? {
                // The attempt took too long: another process has claimed the message.
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
    answer: &std::result::Result<WebhookResponse, WebhookSendError>,
    duration_ms: u32,
) -> WebhookOutcome {
    let answered = answer.as_ref().ok();
    let error = match answer {
        Ok(answer) if answer.is_success() => None,
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

/// Updates the failure count of the webhook after an attempt. Does nothing if the webhook was deleted.
async fn update_health(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    webhook: &WebhookId,
    outcome: &WebhookOutcome,
) -> Result<()> {
    let Some(seen) = unowned_records::<Webhook>(uow).find(webhook).await? else {
        return Ok(());
    };
    let next = if outcome.is_success() {
        seen.edit().after_success()
    } else {
        seen.edit()
            .after_failure(uow.now().await?, outcome.is_gone())
    };
    if next == *seen {
        return Ok(());
    }
    if next.status == seen.status {
        unaudited::replace(uow, &seen, next).await?;
        return Ok(());
    }
    let (scope, action) = (
        SystemScope::new(),
        WebhookEvent::Disable.transition().action,
    );
    audited::replace(cx, &scope, uow, &seen, next, action).await?;
    Ok(())
}

/// Queues a message for each event and each enabled webhook that receives it: webhooks of the event's platform and of
/// the installation. Call it in the unit of work that seals the events. Messages that already exist are not queued
/// again. Webhooks in `unreadable` cannot be decoded and are left out.
///
/// # Errors
/// Only those of the store.
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
            .filter(|webhook| webhook.receives(event))
            .peekable();
        if wanting.peek().is_none() {
            continue;
        }
        let payload = change_message(event);
        messages.extend(wanting.map(|webhook| {
            let id = WebhookDeliveryId::generate(now, cx.entropy.as_ref());
            let (event_id, event_type) = (event.id.clone(), event.event_type.as_str());
            WebhookDelivery::queue(
                id,
                webhook,
                Some(event_id),
                event_type,
                payload.clone(),
                now,
            )
        }));
    }
    insert_new(uow, messages).await
}

/// Inserts the messages that do not exist yet.
async fn insert_new(uow: &mut dyn UnitOfWork, messages: Vec<WebhookDelivery>) -> Result<()> {
    if messages.is_empty() {
        return Ok(());
    }
    uow.effects().add(Effect::WebhookQueued);
    let inserted = unaudited::insert_many(uow, messages.clone()).await;
    if !is_duplicate(&inserted) {
        return inserted.map(drop);
    }
    for message in messages {
        let inserted = unaudited::insert(uow, message).await;
        if !is_duplicate(&inserted) {
            inserted?;
        }
    }
    Ok(())
}

fn is_duplicate<T>(inserted: &Result<T>) -> bool {
    let conflict = |error: &Error| {
        matches!(
            error,
            Error::Store(StoreError::Conflict { index: "event", .. })
        )
    };
    inserted.as_ref().is_err_and(conflict)
}
