//! Removing the archived records of the audit log.

use std::collections::BTreeMap;

use super::base::newest_archive;
use crate::access::{unaudited, unowned_records};
use crate::kernel::{Result, StoreError, Stored};
use crate::port::UnitOfWork;
use crate::shared::{
    AuditArchive, AuditChain, AuditCheckpoint, AuditCheckpointQuery, AuditEntry, AuditHead,
    AuditSeal, AuditSealQuery, AuditStream,
};
use crate::use_case::shared::seal::claim_feed;
use crate::use_case::shared::sweep::MAX_SLICE;

/// Removes at most `limit` entries with their seals, or at most `limit` checkpoints, that the newest archive contains.
/// Returns the number of removed entries or checkpoints; 0 means that none is left, which is recorded.
///
/// # Errors
/// Only those of the store.
pub async fn remove_archived(uow: &mut dyn UnitOfWork, limit: u32) -> Result<u64> {
    let newest = newest_archive(uow).await?;
    let Some(archive) = newest.filter(|newest| newest.removed_at.is_none()) else {
        return Ok(0);
    };
    let limit = limit.min(MAX_SLICE);
    let removed = remove_entries(uow, &archive, limit).await?;
    if removed > 0 {
        return Ok(removed);
    }
    let removed = remove_checkpoints(uow, &archive, limit).await?;
    if removed > 0 {
        return Ok(removed);
    }
    let mut next = archive.edit();
    next.removed_at = Some(uow.now().await?);
    unaudited::replace(uow, &archive, next).await?;
    Ok(0)
}

/// Removes entries and their seals, and subtracts them from the totals of their chains.
async fn remove_entries(
    uow: &mut dyn UnitOfWork,
    archive: &AuditArchive,
    limit: u32,
) -> Result<u64> {
    let archived = AuditSealQuery::Archived {
        keys_before: archive.keys_before.clone(),
        until: archive.position,
    };
    let seals = unowned_records::<AuditSeal>(uow)
        .list(&archived, limit)
        .await?;
    if seals.is_empty() {
        return Ok(0);
    }
    subtract(uow, &seals).await?;
    let keys: Vec<&str> = seals.iter().map(|seal| seal.entry_id.as_str()).collect();
    unaudited::remove_archived::<AuditEntry>(uow, &keys).await?;
    unaudited::remove_archived::<AuditSeal>(uow, &keys).await
}

/// Subtracts the changes among these links from the totals of their chains and of the feed.
async fn subtract(uow: &mut dyn UnitOfWork, seals: &[Stored<AuditSeal>]) -> Result<()> {
    let Some(feed) = claim_feed(uow).await? else {
        return Err(StoreError::retry("another process is sealing entries").into());
    };
    let mut removed: BTreeMap<&AuditChain, i64> = BTreeMap::new();
    for seal in seals {
        if seal.stream == AuditStream::Changes {
            *removed.entry(&seal.chain).or_default() += 1;
        }
    }
    let names: Vec<&str> = removed.keys().map(|chain| chain.as_ref()).collect();
    let heads = unowned_records::<AuditHead>(uow).get_many(&names).await?;
    let total = removed.values().sum();
    let with_count = heads
        .into_iter()
        .filter_map(|head| Some((*removed.get(&head.chain)?, head)));
    let changes = with_count.chain([(total, feed)]).map(|(count, seen)| {
        let mut next = seen.edit();
        next.removed_changes += count;
        (seen, next)
    });
    unaudited::replace_many(uow, changes.collect()).await?;
    Ok(())
}

async fn remove_checkpoints(
    uow: &mut dyn UnitOfWork,
    archive: &AuditArchive,
    limit: u32,
) -> Result<u64> {
    let archived = AuditCheckpointQuery::Between(String::new(), archive.keys_before.clone());
    let checkpoints = unowned_records::<AuditCheckpoint>(uow)
        .list(&archived, limit)
        .await?;
    let keys: Vec<&str> = checkpoints.iter().map(|it| it.id.as_str()).collect();
    if keys.is_empty() {
        return Ok(0);
    }
    unaudited::remove_archived::<AuditCheckpoint>(uow, &keys).await
}
