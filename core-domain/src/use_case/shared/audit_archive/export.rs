//! Exporting a month of the audit log to a blob, and recording it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;

use super::base::{ChainBase, chain_base, newest_archive};
use crate::access::{AuditEvent, audited, unaudited, unowned_records};
use crate::kernel::{
    AuditCheckpointId, Context, Ed25519Private, Ed25519Public, Error, Month, Result, StoreError,
    Stored,
};
use crate::port::{BlobError, Blobs, Cause, Mode, StagedBlob, Store, UnitOfWork, transact_in};
use crate::shared::{
    ArchiveFault, ArchiveWriter, AuditArchive, AuditChain, AuditCheckpoint, AuditCheckpointQuery,
    AuditEntry, AuditHead, AuditHeadQuery, AuditSeal, AuditSealQuery, GENESIS,
};
use crate::use_case::shared::maintenance_lease::LeaseHolder;
use crate::use_case::shared::seal::claim_feed;

/// Number of links per read.
const PAGE: u32 = 250;

/// Number of checkpoints per read.
const CHECKPOINTS: u32 = 1_000;

/// Number of bytes that are written to the blob at once.
const CHUNK: usize = 256 * 1024;

/// Number of the newest seals of a month that are searched for the highest position. An entry that was committed later
/// than this many newer entries is in the archive of the next month.
const NEWEST_SEALS: u32 = 1_000;

/// The stores and keys that an export uses.
struct Export<'e> {
    cx: &'e Context,
    store: &'e dyn Store,
    blobs: &'e dyn Blobs,
    key: &'e Ed25519Private,
    public: Ed25519Public,
    holder: &'e LeaseHolder,
}

/// The part of the log that the next archive contains.
struct Part {
    month: Month,
    /// The smallest text that sorts after all ids of the month.
    keys_before: String,
    /// The position before the first link.
    after: i64,
    /// The position of the last link.
    position: i64,
    /// The digest of the previous archive.
    previous: String,
    /// The position and hash of the last checkpoint of the feed that may be removed.
    feed: (i64, String),
}

/// Returns the event in the audit log of the installation. It has what identifies the file.
fn archived_event(archive: &AuditArchive) -> AuditEvent {
    AuditEvent {
        action: "audit.archived",
        entity_id: archive.month.clone(),
        details: Some(json!({
            "digest": archive.digest, "previous": archive.previous, "links": archive.links(),
        })),
        ..AuditEvent::default()
    }
}

/// Exports and records the next month that ended before `retention`, while this process holds the lease. Returns its
/// archive; `None` if there is no such month, or if the last archive is not yet removed.
///
/// # Errors
/// - `INTERNAL_ERROR` if the log is damaged. Nothing is removed then.
/// - `SERVICE_UNAVAILABLE` if entries of the month are not yet sealed, or if another process holds the lease.
/// - `UPSTREAM_ERROR` if the blob cannot be stored.
pub async fn archive_next_month(
    cx: &Context,
    store: &dyn Store,
    blobs: &dyn Blobs,
    key: &Ed25519Private,
    holder: &LeaseHolder,
    retention: Duration,
) -> Result<Option<AuditArchive>> {
    let export = Export {
        cx,
        store,
        blobs,
        key,
        public: key.public(),
        holder,
    };
    let mut uow = store.begin(Mode::Read).await?;
    let part = export.next_part(uow.as_mut(), retention).await;
    uow.rollback().await;
    match part? {
        Some(part) => export.archive(part).await.map(Some),
        None => Ok(None),
    }
}

impl Export<'_> {
    /// Returns the part of the first month that has entries and passed its retention.
    async fn next_part(
        &self,
        uow: &mut dyn UnitOfWork,
        retention: Duration,
    ) -> Result<Option<Part>> {
        let newest = newest_archive(uow).await?;
        if newest
            .as_ref()
            .is_some_and(|newest| newest.removed_at.is_none())
        {
            return Ok(None);
        }
        let after = newest.as_ref().map_or(0, |newest| newest.position);
        let behind = AuditSealQuery::Positions(after, i64::MAX);
        let Some(first) = unowned_records::<AuditSeal>(uow).first(&behind).await? else {
            return Ok(None);
        };
        let entry = unowned_records::<AuditEntry>(uow)
            .find(&first.entry_id)
            .await?;
        let entry =
            entry.ok_or_else(|| damage_error(&ArchiveFault::EntryChanged(first.position)))?;
        let mut month = Month::of(entry.created_at);
        if let Some(archived) = newest.as_ref().and_then(|newest| newest.month()) {
            month = month.max(archived.next());
        }
        let kept_since = uow.now().await?.minus(retention);
        while month.next().start() <= kept_since {
            let keys_before = month.next().first_key();
            if let Some(position) = last_position(uow, &keys_before, after).await? {
                ensure_sealed(uow, &keys_before).await?;
                let feed = self.feed_base(uow, &keys_before, newest.as_deref()).await?;
                return Ok(Some(Part {
                    month,
                    keys_before,
                    after,
                    position,
                    previous: newest.map_or_else(|| GENESIS.to_owned(), |it| it.digest.clone()),
                    feed,
                }));
            }
            month = month.next();
        }
        Ok(None)
    }

    /// Returns the position and hash of the last checkpoint of the feed before this key.
    async fn feed_base(
        &self,
        uow: &mut dyn UnitOfWork,
        keys_before: &str,
        newest: Option<&AuditArchive>,
    ) -> Result<(i64, String)> {
        let last =
            AuditCheckpointQuery::NewestOfChainBefore(AuditChain::feed(), keys_before.to_owned());
        let last = unowned_records::<AuditCheckpoint>(uow).first(&last).await?;
        let Some(last) = last else {
            return Ok(newest.map_or_else(
                || (0, GENESIS.to_owned()),
                |newest| (newest.feed_position, newest.feed_hash.clone()),
            ));
        };
        if last.installation(&self.public).is_none() {
            let (chain, seq) = (last.chain.as_ref().to_owned(), last.seq);
            return Err(damage_error(&ArchiveFault::CheckpointChanged {
                chain,
                seq,
            }));
        }
        Ok((last.seq, last.hash.clone()))
    }

    async fn archive(&self, part: Part) -> Result<AuditArchive> {
        let mut file = File {
            staged: self.blobs.stage().await.map_err(upstream_error)?,
            buffer: Vec::with_capacity(CHUNK),
        };
        let mut writer = ArchiveWriter::after(part.after);
        self.write_links(&part, &mut writer, &mut file).await?;
        let bases = self.sign_bases(&part, &writer).await?;
        self.write_checkpoints(&part, &mut writer, &mut file)
            .await?;
        for checkpoint in &bases {
            file.append(writer.checkpoint(checkpoint)).await?;
        }
        let (feed_position, feed_hash) = part.feed;
        let mut archive = AuditArchive {
            month: part.month.to_string(),
            keys_before: part.keys_before,
            after: part.after,
            position: part.position,
            feed_position,
            feed_hash,
            digest: writer.digest(),
            previous: part.previous,
            archived_at: self.store.begin(Mode::Auto).await?.now().await?,
            jws: String::new(),
            removed_at: None,
        };
        archive = archive.sign(self.key);
        file.append(ArchiveWriter::statement(&archive)).await?;
        file.store(&archive.blob_key()).await?;
        self.renew_lease().await?;
        transact_in(Mode::ReadCommitted, self.store, |uow, _| {
            let archive = archive.clone();
            Box::pin(async move {
                audited::record_event(self.cx, uow, archived_event(&archive)).await?;
                unaudited::insert(uow, archive).await
            })
        })
        .await?;
        Ok(archive)
    }

    /// Writes the links of the part in the order of their positions.
    async fn write_links(
        &self,
        part: &Part,
        writer: &mut ArchiveWriter,
        file: &mut File,
    ) -> Result<()> {
        let mut position = part.after;
        while position < part.position {
            self.renew_lease().await?;
            let mut uow = self.store.begin(Mode::Read).await?;
            let uow = uow.as_mut();
            let next = AuditSealQuery::Positions(position, part.position);
            let seals = unowned_records::<AuditSeal>(uow).list(&next, PAGE).await?;
            let Some(last) = seals.last() else {
                let expected = position + 1;
                return Err(damage_error(&ArchiveFault::PositionMissing { expected }));
            };
            position = last.position;
            let ids: Vec<&str> = seals.iter().map(|seal| seal.entry_id.as_str()).collect();
            let entries = unowned_records::<AuditEntry>(uow).get_many(&ids).await?;
            let entries: BTreeMap<&str, &Stored<AuditEntry>> = entries
                .iter()
                .map(|entry| (entry.id.as_str(), entry))
                .collect();
            for seal in &seals {
                let entry = entries.get(seal.entry_id.as_str());
                let entry = entry.filter(|entry| {
                    (entry.version(), seal.version()) == (1, 1) && entry.stream == seal.stream
                });
                let changed = || damage_error(&ArchiveFault::EntryChanged(seal.position));
                let entry = entry.ok_or_else(changed)?;
                let (line, is_first) = writer
                    .link(seal, entry)
                    .map_err(|fault| damage_error(&fault))?;
                if is_first {
                    self.check_start(uow, seal).await?;
                }
                file.append(line).await?;
            }
        }
        Ok(())
    }

    /// Checks that the first link of a chain in the archive follows its last archived link, or is the first of its chain.
    async fn check_start(&self, uow: &mut dyn UnitOfWork, seal: &AuditSeal) -> Result<()> {
        let base = ChainBase {
            seq: seal.seq - 1,
            hash: seal.previous_hash.clone(),
        };
        if base.seq == 0 {
            return Ok(());
        }
        let signed = base.checkpoints(uow, &seal.chain, &self.public).await?;
        if signed.is_empty() {
            return Err(damage_error(&ArchiveFault::ChainBroken(seal.position)));
        }
        Ok(())
    }

    /// Signs a checkpoint of the last archived link of every chain, unless it has one that will not be removed. Returns
    /// these checkpoints.
    async fn sign_bases(
        &self,
        part: &Part,
        writer: &ArchiveWriter,
    ) -> Result<Vec<AuditCheckpoint>> {
        let mut bases = Vec::new();
        let mut batches = unaudited::Batches::<AuditHead>::of(AuditHeadQuery::Chains);
        loop {
            let mut uow = self.store.begin(Mode::Read).await?;
            let heads = batches.next(unowned_records(uow.as_mut())).await?;
            uow.rollback().await;
            let Some(heads) = heads else {
                return Ok(bases);
            };
            self.renew_lease().await?;
            let chains: Vec<AuditChain> = heads.iter().map(|head| head.chain.clone()).collect();
            let chains = &chains;
            let signed = transact_in(Mode::ReadCommitted, self.store, |uow, _| {
                Box::pin(self.sign_bases_of(uow, chains, part, writer))
            });
            bases.extend(signed.await?);
        }
    }

    /// Signs the checkpoints of some chains. No chain grows while the feed is claimed.
    async fn sign_bases_of(
        &self,
        uow: &mut dyn UnitOfWork,
        chains: &[AuditChain],
        part: &Part,
        writer: &ArchiveWriter,
    ) -> Result<Vec<AuditCheckpoint>> {
        if claim_feed(uow).await?.is_none() {
            return Err(StoreError::retry("another process is sealing entries").into());
        }
        let now = uow.now().await?;
        let (mut bases, mut new) = (Vec::new(), Vec::new());
        for chain in chains {
            let base = chain_base(uow, chain, part.position).await?;
            if base.seq == 0 {
                continue;
            }
            let signed = base.checkpoints(uow, chain, &self.public).await?;
            let agrees = writer
                .ends_with(chain.as_ref(), base.seq, &base.hash)
                // The checkpoint of an earlier archive states the end of a chain without new links.
                .unwrap_or(!signed.is_empty());
            if !agrees {
                let (chain, seq) = (chain.as_ref().to_owned(), base.seq);
                return Err(damage_error(&ArchiveFault::CheckpointChanged {
                    chain,
                    seq,
                }));
            }
            let stays = |found: &AuditCheckpoint| found.id.as_str() >= part.keys_before.as_str();
            let found = signed.into_iter().find(stays);
            let found = found.unwrap_or_else(|| {
                let id = AuditCheckpointId::generate(now, self.cx.entropy.as_ref());
                let end = AuditHead {
                    seq: base.seq,
                    hash: base.hash,
                    ..AuditHead::empty(chain.clone())
                };
                let signed = AuditCheckpoint::sign(self.key, id, chain.platform_id(), &end, now)
                    .sign_archived(self.key, part.position);
                new.push(signed.clone());
                signed
            });
            bases.push(found);
        }
        unaudited::append_many(uow, new).await?;
        Ok(bases)
    }

    /// Writes the checkpoints that are removed with the month.
    async fn write_checkpoints(
        &self,
        part: &Part,
        writer: &mut ArchiveWriter,
        file: &mut File,
    ) -> Result<()> {
        let mut after = String::new();
        loop {
            self.renew_lease().await?;
            let mut uow = self.store.begin(Mode::Read).await?;
            let next = AuditCheckpointQuery::Between(after, part.keys_before.clone());
            let checkpoints = unowned_records::<AuditCheckpoint>(uow.as_mut())
                .list(&next, CHECKPOINTS)
                .await?;
            uow.rollback().await;
            for checkpoint in &checkpoints {
                file.append(writer.checkpoint(checkpoint)).await?;
            }
            match checkpoints.last() {
                Some(last) => after = last.id.to_string(),
                None => return Ok(()),
            }
        }
    }

    async fn renew_lease(&self) -> Result<()> {
        if self.holder.acquire(self.store).await? {
            return Ok(());
        }
        let problem = "another process holds the lease of the sweep";
        Err(Error::Unavailable(problem.to_owned()))
    }
}

/// Returns the highest position after `after` among the newest entries before this key.
async fn last_position(
    uow: &mut dyn UnitOfWork,
    keys_before: &str,
    after: i64,
) -> Result<Option<i64>> {
    let newest = AuditSealQuery::NewestBefore(keys_before.to_owned());
    let newest = unowned_records::<AuditSeal>(uow)
        .list(&newest, NEWEST_SEALS)
        .await?;
    let positions = newest.iter().map(|seal| seal.position);
    Ok(positions.max().filter(|position| *position > after))
}

/// Returns an error if an entry before this key is not yet sealed.
async fn ensure_sealed(uow: &mut dyn UnitOfWork, keys_before: &str) -> Result<()> {
    let staged = unowned_records::<AuditEntry>(uow).list_staged(1).await?;
    if staged
        .iter()
        .all(|staged| staged.id.as_str() >= keys_before)
    {
        return Ok(());
    }
    let problem = "audit entries that are old enough for an archive are not yet sealed";
    Err(Error::Unavailable(problem.to_owned()))
}

/// The blob that is written.
struct File {
    staged: Box<dyn StagedBlob>,
    buffer: Vec<u8>,
}

impl File {
    async fn append(&mut self, line: Vec<u8>) -> Result<()> {
        self.buffer.extend(line);
        if self.buffer.len() < CHUNK {
            return Ok(());
        }
        let full = std::mem::replace(&mut self.buffer, Vec::with_capacity(CHUNK));
        self.staged.append(full).await.map_err(upstream_error)
    }

    async fn store(mut self, key: &str) -> Result<()> {
        let rest = self.staged.append(self.buffer);
        rest.await.map_err(upstream_error)?;
        self.staged.commit(key).await.map_err(upstream_error)
    }
}

fn damage_error(fault: &ArchiveFault) -> Error {
    Error::Internal(format!(
        "the audit log is damaged and cannot be archived: {fault}"
    ))
}

fn upstream_error(error: BlobError) -> Error {
    Error::Upstream(Cause::new(error).to_string())
}
