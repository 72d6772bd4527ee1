//! Sealing the audit log. Committed entries are linked to their chains in separate units of work, so that writers never
//! wait for a chain.
//!
//! An entry is staged when it is committed. A unit of sealing writes the seals and heads of many entries, and promotes
//! these entries, which also writes the indexes that lists read. So each entry is sealed exactly once, even if a
//! process crashes, and an entry that is committed late is sealed late. Any number of nodes may seal: the unit that
//! locks the head of the feed continues alone. A chain is only extended from the head that was read.

use std::collections::{BTreeMap, BTreeSet};

use super::webhook;
use crate::access::{unaudited, unowned_records};
use crate::kernel::{
    AuditCheckpointId, AuditId, Context, Ed25519Private, Effect, Error, Result, StoreError, Stored,
};
use crate::port::{Mode, Staged, Store, UnitOfWork, transact_in};
use crate::shared::{
    AuditChain, AuditCheckpoint, AuditEntry, AuditHead, AuditHeadQuery, AuditSeal, AuditSealQuery,
    AuditStream, ChangeEvent, InstallationStatement, MAX_UNCHECKED_ENTRIES, MAX_UNCHECKED_TIME,
};

/// Maximum number of entries that one unit of work seals.
const MAX_SEALED_ENTRIES: u32 = 256;

/// Maximum number of chains for which one unit of work signs checkpoints.
const MAX_CHECKPOINTS: u32 = 64;

/// The result of sealing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SealResult {
    /// The number of sealed entries.
    pub entries: usize,
    /// `true` if entries may be left: the limit was reached, or another node is sealing.
    pub has_more: bool,
}

/// Seals staged entries, oldest first, and signs checkpoints of chains with [`MAX_UNCHECKED_ENTRIES`] new links.
/// Several nodes may call it concurrently.
///
/// # Errors
/// Only those of the store; entries that were not sealed remain staged.
pub async fn seal(cx: &Context, store: &dyn Store, key: &Ed25519Private) -> Result<SealResult> {
    if !any_waiting(store).await? {
        return Ok(SealResult::default());
    }
    let mut unreadable = BTreeSet::new();
    loop {
        match seal_batch(cx, store, key, &unreadable).await {
            // A webhook that cannot be decoded receives no events. It must not prevent entries from being sealed.
            Err(Error::Store(StoreError::Corrupt { key, .. })) if !unreadable.contains(&key) => {
                unreadable.insert(key);
            }
            outcome => return outcome,
        }
    }
}

async fn any_waiting(store: &dyn Store) -> Result<bool> {
    let mut uow = store.begin(Mode::Auto).await?;
    let first = unowned_records::<AuditEntry>(uow.as_mut())
        .list_staged(1)
        .await?;
    Ok(!first.is_empty())
}

async fn seal_batch(
    cx: &Context,
    store: &dyn Store,
    key: &Ed25519Private,
    unreadable: &BTreeSet<String>,
) -> Result<SealResult> {
    transact_in(Mode::ReadCommitted, store, |uow, _| {
        Box::pin(async move {
            let Some(feed) = claim_feed(uow).await? else {
                let (entries, more) = (0, true);
                return Ok(SealResult {
                    entries,
                    has_more: more,
                });
            };
            let mut batch = Batch::read(uow, feed).await?;
            let links = batch.link(cx, uow, key).await?;
            webhook::fan_out(cx, uow, &links.events, unreadable).await?;
            batch.write(uow, links).await
        })
    })
    .await
}

/// Returns the head of the feed, locked by this unit of work. `None` if another unit has locked it.
pub(super) async fn claim_feed(uow: &mut dyn UnitOfWork) -> Result<Option<Stored<AuditHead>>> {
    let feed = AuditHeadQuery::OfChain(AuditChain::feed());
    let mut claimed = unowned_records::<AuditHead>(uow).claim(&feed, 1).await?;
    if let Some(claimed) = claimed.pop() {
        return Ok(Some(claimed));
    }
    let held = unowned_records::<AuditHead>(uow)
        .find(AuditChain::feed())
        .await?;
    if held.is_some() {
        return Ok(None);
    }
    let first = unaudited::insert(uow, AuditHead::empty(AuditChain::feed())).await;
    first.map(Some).map_err(conflict_as_retry)
}

/// Turns a conflict into a retry: the next run of the unit sees the change of the other process.
fn conflict_as_retry(error: Error) -> Error {
    match error {
        Error::Store(error) => Error::Store(error.conflict_as_retry()),
        error => error,
    }
}

/// The head of a chain before and after the links that a unit of work adds.
struct HeadChange {
    seen: Option<Stored<AuditHead>>,
    next: AuditHead,
}

/// The entries that a unit of work seals, and the heads of their chains.
struct Batch {
    entries: Vec<Staged<AuditEntry>>,
    heads: BTreeMap<AuditChain, HeadChange>,
    feed: HeadChange,
}

impl Batch {
    async fn read(uow: &mut dyn UnitOfWork, feed: Stored<AuditHead>) -> Result<Self> {
        let entries = unowned_records::<AuditEntry>(uow)
            .list_staged(MAX_SEALED_ENTRIES)
            .await?;
        let chains = entries.iter().filter_map(|staged| staged.record.as_ref());
        let chains = chains.map(|entry| entry.platform_id.as_ref());
        let chains: BTreeSet<AuditChain> = chains.chain([None]).map(AuditChain::of).collect();
        let names: Vec<&str> = chains.iter().map(AsRef::as_ref).collect();
        let seen = unowned_records::<AuditHead>(uow).get_many(&names).await?;
        let mut heads: BTreeMap<AuditChain, HeadChange> = chains
            .into_iter()
            .map(|chain| (chain.clone(), HeadChange::new(chain)))
            .collect();
        for head in seen {
            heads.insert(head.chain.clone(), HeadChange::of(head));
        }
        Ok(Self {
            entries,
            heads,
            feed: HeadChange::of(feed),
        })
    }

    /// Links every entry to its chain, in the order of the ids.
    async fn link(
        &mut self,
        cx: &Context,
        uow: &mut dyn UnitOfWork,
        key: &Ed25519Private,
    ) -> Result<NewRecords> {
        let now = uow.now().await?;
        let mut links = NewRecords::default();
        for staged in &self.entries {
            let Some(id) = AuditId::parse(&staged.id) else {
                continue;
            };
            // An entry that cannot be decoded is linked as `null`, so that the chain shows its existence.
            let entry = staged.record.as_deref();
            let platform = entry.and_then(|entry| entry.platform_id.as_ref());
            let chain = AuditChain::of(platform);
            let head = &mut self
                .heads
                .entry(chain.clone())
                .or_insert_with(|| HeadChange::new(chain))
                .next;
            self.feed.next.count_link(entry);
            let seal = head.append(&id, entry, self.feed.next.seq, now);
            let change = entry.filter(|entry| entry.stream == AuditStream::Changes);
            let event = change.map(|entry| ChangeEvent::of(seal.position, entry));
            links.events.extend(event);
            links.seals.push(seal);
            if head.seq - head.checkpoint_seq >= MAX_UNCHECKED_ENTRIES {
                let id = AuditCheckpointId::generate(now, cx.entropy.as_ref());
                let signed = AuditCheckpoint::sign(key, id, platform.cloned(), head, now);
                links.checkpoints.push(signed);
                head.mark_checkpointed();
            }
        }
        Ok(links)
    }

    async fn write(self, uow: &mut dyn UnitOfWork, links: NewRecords) -> Result<SealResult> {
        let entries = self.entries.len();
        if entries == 0 {
            return Ok(SealResult::default());
        }
        unaudited::append_many(uow, links.seals).await?;
        unaudited::append_many(uow, links.checkpoints).await?;
        let mut grown = vec![self.feed];
        grown.extend(self.heads.into_values());
        write_heads(uow, grown).await?;
        let keys = self.entries.iter().map(|staged| staged.id.as_str());
        let promoted = unaudited::promote::<AuditEntry>(uow, &keys.collect::<Vec<_>>()).await?;
        if promoted != entries as u64 {
            return Err(StoreError::retry("another process has sealed these entries").into());
        }
        uow.effects().add(Effect::AuditSealed);
        Ok(SealResult {
            entries,
            has_more: entries >= MAX_SEALED_ENTRIES as usize,
        })
    }
}

/// The records that a unit of work adds.
#[derive(Default)]
struct NewRecords {
    seals: Vec<AuditSeal>,
    checkpoints: Vec<AuditCheckpoint>,
    /// The events to send to webhooks.
    events: Vec<ChangeEvent>,
}

impl HeadChange {
    fn new(chain: AuditChain) -> Self {
        Self {
            seen: None,
            next: AuditHead::empty(chain),
        }
    }

    fn of(seen: Stored<AuditHead>) -> Self {
        Self {
            next: seen.edit(),
            seen: Some(seen),
        }
    }

    fn has_grown(&self) -> bool {
        let seen = self.seen.as_ref();
        self.next.seq > seen.map_or(0, |seen| seen.seq)
    }
}

async fn write_heads(uow: &mut dyn UnitOfWork, heads: Vec<HeadChange>) -> Result<()> {
    let (mut new, mut changed) = (Vec::new(), Vec::new());
    for HeadChange { seen, next } in heads.into_iter().filter(HeadChange::has_grown) {
        match seen {
            Some(seen) => changed.push((seen, next)),
            None => new.push(next),
        }
    }
    let inserted = unaudited::insert_many(uow, new).await;
    inserted.map_err(conflict_as_retry)?;
    unaudited::replace_many(uow, changed).await?;
    Ok(())
}

/// Signs checkpoints of chains with links that have waited for one for an hour. Returns the number of checkpoints.
///
/// # Errors
/// Only those of the store.
pub async fn sign_due_checkpoints(
    cx: &Context,
    store: &dyn Store,
    key: &Ed25519Private,
) -> Result<usize> {
    if !any_due(store).await? {
        return Ok(0);
    }
    transact_in(Mode::ReadCommitted, store, |uow, _| {
        Box::pin(async move {
            let now = uow.now().await?;
            let due = AuditHeadQuery::UncheckedSince(now.minus(MAX_UNCHECKED_TIME));
            let heads = unowned_records::<AuditHead>(uow)
                .claim(&due, MAX_CHECKPOINTS)
                .await?;
            let (mut signed, mut changed) = (Vec::new(), Vec::new());
            for seen in heads {
                let id = AuditCheckpointId::generate(now, cx.entropy.as_ref());
                signed.push(AuditCheckpoint::sign(
                    key,
                    id,
                    seen.chain.platform_id(),
                    &seen,
                    now,
                ));
                let mut next = seen.edit();
                next.mark_checkpointed();
                changed.push((seen, next));
            }
            let count = signed.len();
            unaudited::append_many(uow, signed).await?;
            unaudited::replace_many(uow, changed).await?;
            Ok(count)
        })
    })
    .await
}

async fn any_due(store: &dyn Store) -> Result<bool> {
    let mut uow = store.begin(Mode::Auto).await?;
    let since = uow.now().await?.minus(MAX_UNCHECKED_TIME);
    let due = AuditHeadQuery::UncheckedSince(since);
    let first = unowned_records::<AuditHead>(uow.as_mut())
        .first(&due)
        .await?;
    Ok(first.is_some())
}

/// Signs a checkpoint of the installation if it is due. It is due after a thousand sealed entries, or when an entry has
/// waited for one for an hour. Returns whether a checkpoint was signed. Several nodes may call it concurrently.
///
/// # Errors
/// Only those of the store.
pub async fn sign_due_installation_checkpoint(
    cx: &Context,
    store: &dyn Store,
    key: &Ed25519Private,
) -> Result<bool> {
    let mut uow = store.begin(Mode::Read).await?;
    let head = unowned_records::<AuditHead>(uow.as_mut())
        .find(AuditChain::feed())
        .await?;
    let seems_due = match head {
        Some(head) => is_due(uow.as_mut(), &head).await?,
        None => false,
    };
    uow.rollback().await;
    if !seems_due {
        return Ok(false);
    }
    transact_in(Mode::ReadCommitted, store, |uow, _| {
        Box::pin(async move {
            // While this unit of work has locked the head, no chain is created and nothing is sealed.
            let Some(feed) = claim_feed(uow).await? else {
                return Ok(false);
            };
            if !is_due(uow, &feed).await? {
                return Ok(false);
            }
            let now = uow.now().await?;
            let statement = InstallationStatement {
                previous: feed.hash.clone(),
                chains: unowned_records::<AuditHead>(uow)
                    .count(&AuditHeadQuery::Chains)
                    .await?,
                entries: u64::try_from(feed.seq).unwrap_or_default(),
            };
            let id = AuditCheckpointId::generate(now, cx.entropy.as_ref());
            let signed = AuditCheckpoint::sign_installation(key, id, feed.seq, statement, now);
            let mut next = feed.edit();
            next.hash.clone_from(&signed.hash);
            next.mark_checkpointed();
            unaudited::append(uow, signed).await?;
            unaudited::replace(uow, &feed, next).await?;
            Ok(true)
        })
    })
    .await
}

async fn is_due(uow: &mut dyn UnitOfWork, feed: &AuditHead) -> Result<bool> {
    let unchecked = feed.seq - feed.checkpoint_seq;
    if unchecked == 0 || unchecked >= MAX_UNCHECKED_ENTRIES {
        return Ok(unchecked > 0);
    }
    let behind = AuditSealQuery::Positions(feed.checkpoint_seq, feed.seq);
    let first = unowned_records::<AuditSeal>(uow).first(&behind).await?;
    let since = uow.now().await?.minus(MAX_UNCHECKED_TIME);
    // If the first seal is missing, a checkpoint is signed immediately.
    Ok(first.is_none_or(|seal| seal.sealed_at <= since))
}
