//! Claiming the messages that are due.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::super::due_queue::{self, DueRecord};
use crate::access::{SystemScope, ensure_not_deleted, unaudited, unowned};
use crate::kernel::{Cipher, PlatformId, Result, Stored, Timestamp, WebhookDeliveryId, WebhookId};
use crate::port::{LONGEST_SENDING, Mode, Store, UnitOfWork, WebhookRequest, transact_in};
use crate::shared::{Webhook, WebhookDelivery, WebhookDeliveryQuery, WebhookSecret, WebhookStatus};

/// How long the messages of a suspended platform are put off at a time.
const SUSPENDED_FOR: Duration = Duration::from_secs(5 * 60);

/// How often at most the due messages are looked through in one unit of work.
const MAX_PASSES: usize = 16;

impl DueRecord for WebhookDelivery {
    const LONGEST_ATTEMPT: Duration = LONGEST_SENDING;

    fn attempts(&self) -> i64 {
        self.attempts
    }

    fn rescheduled(&self, attempts: i64, due_at: Timestamp, now: Timestamp) -> Self {
        Self {
            attempts,
            ..self.clone().put_off(due_at, now)
        }
    }
}

/// How many messages one process sends at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DispatchLimits {
    /// To all webhooks together.
    pub concurrency: u32,
    /// To one webhook: a receiver that takes its time holds up no other.
    pub concurrency_per_webhook: u32,
}

/// A message that is to be sent, and is nobody else's for a while.
#[derive(Debug)]
pub struct ClaimedDelivery {
    pub(super) stored: Stored<WebhookDelivery>,
    pub(super) claimed_at: Timestamp,
    webhook: Stored<Webhook>,
}

impl ClaimedDelivery {
    /// The message's id.
    #[must_use]
    pub fn id(&self) -> &WebhookDeliveryId {
        &self.stored.id
    }

    /// To which webhook.
    #[must_use]
    pub fn webhook_id(&self) -> &WebhookId {
        &self.stored.webhook_id
    }

    /// The request, signed with every secret that signs at the moment.
    ///
    /// # Errors
    /// `INTERNAL_ERROR` when the secrets were encrypted with another key.
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

/// Claims as many of the messages that are due as there are places for beside those under way. What may not be sent is dealt
/// with on the way: messages of a suspended platform wait, those of a deleted one or of a disabled webhook are given up.
///
/// # Errors
/// When the store failed.
pub async fn claim_deliveries(
    store: &dyn Store,
    limits: DispatchLimits,
    under_way: &BTreeMap<WebhookId, u32>,
) -> Result<Vec<ClaimedDelivery>> {
    let free = limits.concurrency.saturating_sub(under_way.values().sum());
    let due_at = |now| due(now, limits.concurrency_per_webhook, under_way);
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

/// The messages that are due, but for those to webhooks that have as many under way as they may.
fn due(now: Timestamp, most: u32, under_way: &BTreeMap<WebhookId, u32>) -> WebhookDeliveryQuery {
    let full = under_way.iter().filter(|(_, count)| **count >= most);
    let except = full.map(|(webhook, _)| webhook.clone()).collect();
    WebhookDeliveryQuery::DueAt { now, except }
}

/// Whether the messages of a platform are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PlatformState {
    Active,
    Suspended,
    Gone,
}

/// One unit of work that claims.
struct Claim {
    now: Timestamp,
    per_webhook: u32,
    under_way: BTreeMap<WebhookId, u32>,
    platforms: BTreeMap<PlatformId, PlatformState>,
    claimed: Vec<ClaimedDelivery>,
}

impl Claim {
    /// Each pass takes some of what is due, or leaves a webhook out of the next: the first ones due may all be to one.
    async fn run(&mut self, uow: &mut dyn UnitOfWork, mut free: u32) -> Result<()> {
        for _ in 0..MAX_PASSES {
            let due = due(self.now, self.per_webhook, &self.under_way);
            let found = unowned::<WebhookDelivery>(uow).claim(&due, free).await?;
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
        let webhooks = unowned::<Webhook>(uow).get_many(&ids).await?;
        let (mut changes, mut receivers) = (Vec::new(), BTreeMap::new());
        for seen in found {
            let webhook = webhooks
                .iter()
                .find(|webhook| webhook.id == seen.webhook_id);
            let state = self.platform_state(uow, seen.platform_id.as_ref()).await?;
            let next = match (webhook, state) {
                (None, _) | (_, PlatformState::Gone) => seen
                    .edit()
                    .given_up("There is no such platform or webhook any more.", self.now)?,
                (Some(webhook), _) if webhook.status == WebhookStatus::Disabled => {
                    seen.edit().given_up("The webhook is disabled.", self.now)?
                }
                (_, PlatformState::Suspended) => {
                    seen.edit().put_off(self.now.plus(SUSPENDED_FOR), self.now)
                }
                (Some(webhook), PlatformState::Active) => {
                    let under_way = self.under_way.entry(seen.webhook_id.clone()).or_default();
                    if *under_way >= self.per_webhook {
                        continue;
                    }
                    *under_way += 1;
                    receivers.insert(seen.id.clone(), webhook.clone());
                    seen.claimed(self.now)
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
            Some(found) if ensure_not_deleted(found.platform()).is_err() => PlatformState::Gone,
            Some(found) if found.suspension().is_some() => PlatformState::Suspended,
            Some(_) => PlatformState::Active,
            None => PlatformState::Gone,
        };
        self.platforms.insert(platform.clone(), state);
        Ok(state)
    }
}
