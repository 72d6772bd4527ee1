//! Verifies a hash chain: computes every hash again, and compares every link with its entry, its neighbours and the
//! checkpoints.
//!
//! The store alone cannot show that the whole chain was rewritten. Therefore the checkpoints are signed and can be
//! stored elsewhere.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::verify_installation::verify_installation;
use super::verify_report::{ChainEnd, ProblemKind, VerifyReport};
use super::{Unreadable, begin_read, readable, skip_unreadable};
use crate::access::{SignedInScope, unowned_records};
use crate::kernel::{
    AuditId, Context, Ed25519Public, Error, PlatformId, Result, StoreError, Stored,
};
use crate::port::{Mode, Store, UnitOfWork};
use crate::shared::{
    AuditArchive, AuditChain, AuditCheckpoint, AuditCheckpointQuery, AuditEntry, AuditHead,
    AuditOrder, AuditQuery, AuditSeal, AuditSealQuery, AuditStream, GENESIS, MAX_UNCHECKED_ENTRIES,
    link_hash,
};
use crate::use_case::shared::{ChainBase, chain_base, newest_archive};

/// Maximum number of links that one call checks.
const MAX_LINKS: u32 = 100_000;

/// Number of links per read.
const PAGE: u32 = 500;

/// Selects the part of a chain that is verified.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VerifyQuery {
    /// The platform whose chain is verified. `null` means the platform that the caller acts for. For operators, `null`
    /// means the chain of the installation's own entries.
    pub platform_id: Option<PlatformId>,
    /// The number of the link after which the verification starts. Default: 0, the start of the chain. Archived links are
    /// skipped.
    #[schemars(range(min = 0))]
    #[serde(default)]
    pub after: i64,
    /// Maximum number of links to check, from 1 to 100,000. Larger values count as 100,000. Default: 100,000.
    #[schemars(range(min = 1))]
    pub limit: Option<u64>,
}

/// Verifies a chain or a part of it. Reads pages in separate units of work. Entries that are sealed during the
/// verification are checked too. If links were archived, the verification starts after them.
///
/// # Errors
/// - `NOT_FOUND` if the platform does not exist or belongs to another tenant.
/// - `FORBIDDEN` without the permission `audit:read`.
/// - `PLATFORM_SUSPENDED` if the platform is suspended.
pub async fn verify(
    cx: &Context,
    _: &SignedInScope,
    store: &dyn Store,
    key: &Ed25519Public,
    query: &VerifyQuery,
) -> Result<VerifyReport> {
    let details = json!({ "verifiedBehind": query.after });
    let platform = begin_read(cx, store, query.platform_id.as_ref(), details).await?;
    let chain = AuditChain::of(platform.as_ref());
    // Only operators can verify the chain of the installation.
    let of_installation = platform.is_none();
    let limit = query.limit.and_then(|limit| u32::try_from(limit).ok());
    let mut verification = Verification {
        report: VerifyReport::new(chain, query.after),
        key,
        previous: (query.after == 0).then(|| GENESIS.to_owned()),
        position: 0,
        checkpoint: 0,
        walk: EntryWalk::new(platform),
    };
    let mut goes_on = verification.begin(store).await?;
    let mut left = limit.map_or(MAX_LINKS, |limit| limit.min(MAX_LINKS));
    while goes_on && left > 0 && !verification.report.complete {
        let size = left.min(PAGE);
        left -= size;
        goes_on = verification.read_page(store, size).await?;
    }
    let mut report = verification.report;
    if of_installation && report.complete {
        verify_installation(store, key, &mut report).await?;
    }
    Ok(report)
}

/// Returns the newest archive, whose content a verification of the installation compares.
///
/// # Errors
/// Only those of the store.
pub async fn newest_archive_of(
    _: &SignedInScope,
    store: &dyn Store,
) -> Result<Option<Stored<AuditArchive>>> {
    let mut uow = store.begin(Mode::Read).await?;
    newest_archive(uow.as_mut()).await
}

/// A verification in progress.
struct Verification<'k> {
    report: VerifyReport,
    key: &'k Ed25519Public,
    /// The hash of the last checked link; `None` if it is unknown.
    previous: Option<String>,
    /// The position of the last checked link in the installation.
    position: i64,
    /// The number of the link at which the last checkpoint is, or must be.
    checkpoint: i64,
    walk: EntryWalk,
}

/// A part of a chain, read in one unit of work.
struct ChainPage {
    seals: Vec<Stored<AuditSeal>>,
    entries: BTreeMap<AuditId, Stored<AuditEntry>>,
    checkpoints: Vec<Stored<AuditCheckpoint>>,
    head: Option<Stored<AuditHead>>,
    is_last: bool,
}

impl Verification<'_> {
    /// Finds the link after which the verification starts. Returns whether the verification can continue.
    async fn begin(&mut self, store: &dyn Store) -> Result<bool> {
        let mut uow = store.begin(Mode::Read).await?;
        match self.begin_in(uow.as_mut()).await {
            Err(Error::Store(StoreError::Corrupt { key, .. })) => {
                self.report_unreadable(&key);
                Ok(false)
            }
            outcome => outcome,
        }
    }

    async fn begin_in(&mut self, uow: &mut dyn UnitOfWork) -> Result<bool> {
        if let Some(archive) = newest_archive(uow).await? {
            let base = chain_base(uow, &self.report.chain, archive.position).await?;
            if base.seq > 0 && self.report.to <= base.seq {
                self.begin_after_archive(uow, &archive, base).await?;
                return Ok(true);
            }
        }
        match self.report.to {
            0 => Ok(true),
            after => self.begin_after(uow, after).await,
        }
    }

    /// Starts after the last archived link. A checkpoint states its hash.
    async fn begin_after_archive(
        &mut self,
        uow: &mut dyn UnitOfWork,
        archive: &AuditArchive,
        base: ChainBase,
    ) -> Result<()> {
        if !archive.is_signed_by(self.key) {
            self.report.add_changed_archive(archive, "signature");
        }
        let signed = base.checkpoints(uow, &self.report.chain, self.key).await?;
        if signed.is_empty() {
            self.missing_checkpoint(base.seq);
        }
        self.report.start_after(base.seq);
        self.previous = Some(base.hash);
        self.position = archive.position;
        self.checkpoint = base.seq;
        Ok(())
    }

    /// Reads the link after which the verification starts. Returns whether the link exists.
    async fn begin_after(&mut self, uow: &mut dyn UnitOfWork, after: i64) -> Result<bool> {
        let link = AuditSealQuery::OfChain(self.report.chain.clone(), after - 1);
        let link = unowned_records::<AuditSeal>(uow).first(&link).await?;
        let Some(link) = link.filter(|link| link.seq == after) else {
            let message =
                format!("the chain has no link {after} at which the verification can start");
            self.report
                .add_problem(ProblemKind::SealsMissing, Some(after), None, message);
            return Ok(false);
        };
        self.previous = Some(link.hash.clone());
        self.position = link.position;
        let before =
            AuditCheckpointQuery::OfChain(self.report.chain.clone(), after - MAX_UNCHECKED_ENTRIES);
        let before = unowned_records::<AuditCheckpoint>(uow)
            .list(&before, PAGE)
            .await?;
        let last = before
            .iter()
            .map(|made| made.seq)
            .filter(|seq| *seq <= after)
            .max();
        // A missing checkpoint is reported by a verification of the part before.
        self.checkpoint = last.unwrap_or(if after < MAX_UNCHECKED_ENTRIES {
            0
        } else {
            after
        });
        let entry = unowned_records::<AuditEntry>(uow).find(&link.entry_id);
        // An unreadable entry is reported by a verification of the part before.
        if let Ok(Some(entry)) = entry.await {
            self.walk.start_after(&entry);
        }
        Ok(true)
    }

    /// Checks the next links. Returns whether the verification can continue.
    async fn read_page(&mut self, store: &dyn Store, size: u32) -> Result<bool> {
        let mut unreadable = Unreadable::new();
        let page = loop {
            let mut uow = store.begin(Mode::Read).await?;
            match self.page(uow.as_mut(), size, &unreadable).await {
                Err(error) if skip_unreadable(&error, &mut unreadable) => {}
                // Only entries can be skipped, so this is a seal or a checkpoint.
                Err(Error::Store(StoreError::Corrupt { key, .. })) => {
                    self.report_unreadable(&key);
                    return Ok(false);
                }
                page => break page?,
            }
        };
        for seal in &page.seals {
            self.check_link(seal, page.entries.get(&seal.entry_id), &unreadable);
        }
        self.check_checkpoints(&page);
        if page.is_last {
            self.check_end(&page);
        }
        self.walk
            .check(store, &mut self.report, page.is_last)
            .await?;
        self.report.complete = page.is_last;
        Ok(true)
    }

    /// Reports a seal or a checkpoint that cannot be read.
    fn report_unreadable(&mut self, key: &str) {
        let message = format!("a seal or checkpoint cannot be read: {key}");
        let entry = AuditId::parse(key);
        let kind = ProblemKind::SealChanged;
        self.report.add_problem(kind, None, entry.as_ref(), message);
    }

    /// Reads the next links with their entries and checkpoints.
    async fn page(
        &self,
        uow: &mut dyn UnitOfWork,
        size: u32,
        unreadable: &Unreadable,
    ) -> Result<ChainPage> {
        let chain = &self.report.chain;
        let behind = AuditSealQuery::OfChain(chain.clone(), self.report.to);
        // One additional link shows whether the chain continues.
        let mut seals = unowned_records::<AuditSeal>(uow)
            .list(&behind, size + 1)
            .await?;
        let is_last = seals.len() <= size as usize;
        seals.truncate(size as usize);
        let ids = readable(seals.iter().map(|seal| &seal.entry_id), unreadable);
        let entries = unowned_records::<AuditEntry>(uow).get_many(&ids).await?;
        let behind = AuditCheckpointQuery::OfChain(chain.clone(), self.report.to);
        let checkpoints = unowned_records::<AuditCheckpoint>(uow);
        Ok(ChainPage {
            checkpoints: checkpoints.list(&behind, size).await?,
            head: unowned_records::<AuditHead>(uow).find(chain).await?,
            entries: entries.into_iter().map(|e| (e.id.clone(), e)).collect(),
            seals,
            is_last,
        })
    }

    /// Checks the number, the hashes and the entry of a link.
    fn check_link(
        &mut self,
        seal: &Stored<AuditSeal>,
        entry: Option<&Stored<AuditEntry>>,
        unreadable: &Unreadable,
    ) {
        let (seq, id) = (Some(seal.seq), Some(&seal.entry_id));
        let expected = self.report.to + 1;
        let in_place = seal.seq == expected;
        if seal.seq > expected {
            let message = format!("the links {expected} to {} are missing", seal.seq - 1);
            self.report
                .add_problem(ProblemKind::SealsMissing, Some(expected), None, message);
        } else if seal.seq < expected {
            let message = "the number occurs twice in the chain";
            self.report
                .add_problem(ProblemKind::SealChanged, seq, id, message);
        }
        let follows = self.previous.as_ref() == Some(&seal.previous_hash);
        if in_place && self.previous.is_some() && !follows {
            let message = "the link does not contain the hash of the previous link";
            self.report
                .add_problem(ProblemKind::ChainBroken, seq, id, message);
        }
        if seal.position <= self.position || seal.version() != 1 {
            let message = "the seal was changed";
            self.report
                .add_problem(ProblemKind::SealChanged, seq, id, message);
        }
        match entry {
            Some(entry) => self.check_entry(seal, entry),
            None if unreadable.contains(seal.entry_id.as_str()) => {
                let message = "the entry cannot be read";
                self.report
                    .add_problem(ProblemKind::EntryUnreadable, seq, id, message);
            }
            None => {
                let message = "the entry is missing";
                self.report
                    .add_problem(ProblemKind::EntryMissing, seq, id, message);
            }
        }
        self.previous = Some(seal.hash.clone());
        self.position = seal.position;
        self.report.to = self.report.to.max(seal.seq);
        self.report.checked += 1;
    }

    /// Checks that an entry is unchanged since it was sealed.
    fn check_entry(&mut self, seal: &AuditSeal, entry: &Stored<AuditEntry>) {
        let is_sealed = link_hash(&seal.previous_hash, Some(entry)) == seal.hash;
        if is_sealed && entry.version() == 1 && entry.stream == seal.stream {
            self.walk.record_checked(entry);
            return;
        }
        let message = "the entry or its seal was changed after sealing";
        let (seq, id) = (Some(seal.seq), Some(&seal.entry_id));
        self.report
            .add_problem(ProblemKind::EntryChanged, seq, id, message);
    }

    /// Checks the signatures and hashes of the checkpoints of a page.
    fn check_checkpoints(&mut self, page: &ChainPage) {
        let links: BTreeMap<i64, &str> = page
            .seals
            .iter()
            .map(|seal| (seal.seq, seal.hash.as_str()))
            .collect();
        for checkpoint in &page.checkpoints {
            let seq = checkpoint.seq;
            if seq > self.report.to && !page.is_last {
                break;
            }
            self.expect_checkpoints(seq.min(self.report.to + 1) - 1);
            if seq <= self.report.to {
                self.checkpoint = seq;
            }
            let signed = checkpoint.is_signed_by(self.key) && checkpoint.version() == 1;
            let (kind, message) = match links.get(&seq) {
                _ if !signed => (
                    ProblemKind::CheckpointChanged,
                    format!(
                        "the checkpoint at {seq} does not match the signature of this installation"
                    ),
                ),
                Some(hash) if *hash == checkpoint.hash => continue,
                Some(_) => (
                    ProblemKind::CheckpointContradicts,
                    format!("the hash at {seq} differs from the signed hash"),
                ),
                None if seq > self.report.to => (
                    ProblemKind::TailMissing,
                    format!("a checkpoint was signed at {seq}, after the end of the chain"),
                ),
                None => (
                    ProblemKind::SealsMissing,
                    format!("a checkpoint was signed at {seq}, but the chain has no such link"),
                ),
            };
            self.report.add_problem(kind, Some(seq), None, message);
        }
        self.expect_checkpoints(self.report.to);
    }

    /// Reports the checkpoints that are missing up to this link. A checkpoint is required after every
    /// [`MAX_UNCHECKED_ENTRIES`] links.
    fn expect_checkpoints(&mut self, until: i64) {
        while until - self.checkpoint >= MAX_UNCHECKED_ENTRIES {
            self.checkpoint += MAX_UNCHECKED_ENTRIES;
            self.missing_checkpoint(self.checkpoint);
        }
    }

    /// Reports a missing checkpoint.
    fn missing_checkpoint(&mut self, seq: i64) {
        let message = format!("the checkpoint at {seq} is missing");
        self.report
            .add_problem(ProblemKind::CheckpointMissing, Some(seq), None, message);
    }

    /// Compares the end of the chain with its recorded end.
    fn check_end(&mut self, page: &ChainPage) {
        let empty = AuditHead::empty(self.report.chain.clone());
        let head = page.head.as_deref().unwrap_or(&empty);
        self.report.head = ChainEnd::from(head);
        let (end, last) = (self.report.to, head.checkpoint_seq);
        if head.seq > end {
            let message = format!("the links {} to {} are missing", end + 1, head.seq);
            self.report
                .add_problem(ProblemKind::TailMissing, Some(end + 1), None, message);
        } else if head.seq < end
            || self
                .previous
                .as_ref()
                .is_some_and(|hash| *hash != head.hash)
        {
            let message = format!(
                "the recorded end of the chain is {}, which differs from its actual end",
                head.seq
            );
            self.report
                .add_problem(ProblemKind::HeadChanged, Some(end), None, message);
        }
        if last > self.checkpoint && last <= end {
            self.missing_checkpoint(last);
        }
    }
}

/// Number of entries per read.
const ENTRIES_PER_READ: u32 = 500;

/// A pass over the entries of a chain, in parallel to the pass over its links.
///
/// Links are ordered by their time of sealing, entries by their creation time. So the pass over the entries goes up to
/// the latest entry whose link was checked.
pub(super) struct EntryWalk {
    platform: Option<PlatformId>,
    /// The entry up to which all were checked.
    walked: Option<AuditId>,
    /// The latest entry whose link was checked.
    reached: Option<AuditId>,
}

impl EntryWalk {
    pub(super) const fn new(platform: Option<PlatformId>) -> Self {
        Self {
            platform,
            walked: None,
            reached: None,
        }
    }

    /// Skips the entries before the link at which the verification starts.
    pub(super) fn start_after(&mut self, entry: &AuditEntry) {
        self.walked = Some(entry.id.clone());
    }

    /// Records that the link of this entry was checked.
    pub(super) fn record_checked(&mut self, entry: &AuditEntry) {
        self.reached = self.reached.take().max(Some(entry.id.clone()));
    }

    /// Checks the entries up to the latest checked link. At the end of the chain, checks all remaining entries.
    pub(super) async fn check(
        &mut self,
        store: &dyn Store,
        report: &mut VerifyReport,
        is_last: bool,
    ) -> Result<()> {
        let end = if is_last {
            None
        } else if self.reached > self.walked {
            self.reached.clone()
        } else {
            return Ok(());
        };
        for stream in AuditStream::ALL {
            match self
                .check_stream(store, report, *stream, end.as_ref())
                .await
            {
                Err(Error::Store(StoreError::Corrupt { key, .. })) => {
                    let entry = AuditId::parse(&key);
                    let message =
                        "the entry cannot be read, so the entries after it were not checked";
                    let kind = ProblemKind::EntryUnreadable;
                    report.add_problem(kind, None, entry.as_ref(), message);
                }
                outcome => outcome?,
            }
        }
        self.walked = end;
        Ok(())
    }

    /// Checks the entries of one stream up to `end`; `None` means the last entry.
    async fn check_stream(
        &self,
        store: &dyn Store,
        report: &mut VerifyReport,
        stream: AuditStream,
        end: Option<&AuditId>,
    ) -> Result<()> {
        let mut entries = AuditQuery {
            stream,
            platform_id: self.platform.clone(),
            without_platform: self.platform.is_none(),
            order: AuditOrder::OldestFirst(self.walked.clone()),
            ..AuditQuery::default()
        };
        loop {
            let mut uow = store.begin(Mode::Read).await?;
            let uow = uow.as_mut();
            let page = unowned_records::<AuditEntry>(uow)
                .list(&entries, ENTRIES_PER_READ)
                .await?;
            let within = |entry: &&Stored<AuditEntry>| end.is_none_or(|end| entry.id <= *end);
            let ids: Vec<&AuditId> = page.iter().take_while(within).map(|e| &e.id).collect();
            check_sealed(uow, report, &ids).await?;
            match page.last() {
                Some(last) if ids.len() == ENTRIES_PER_READ as usize => {
                    entries.order = AuditOrder::OldestFirst(Some(last.id.clone()));
                }
                _ => return Ok(()),
            }
        }
    }
}

/// Checks that each of these entries is sealed in the chain or waits for sealing.
async fn check_sealed(
    uow: &mut dyn UnitOfWork,
    report: &mut VerifyReport,
    ids: &[&AuditId],
) -> Result<()> {
    let keys: Vec<&str> = ids.iter().map(|id| id.as_str()).collect();
    let seals = unowned_records::<AuditSeal>(uow).get_many(&keys).await?;
    let sealed = seals.iter().map(|seal| (&seal.entry_id, &seal.chain));
    let sealed: BTreeMap<_, _> = sealed.collect();
    let others = ids.iter().filter(|id| !sealed.contains_key(*id));
    let others: Vec<&str> = others.map(|id| id.as_str()).collect();
    let waiting = unowned_records::<AuditEntry>(uow)
        .staged_keys(&others)
        .await?;
    for id in ids {
        let message = match sealed.get(*id) {
            Some(chain) if **chain == report.chain => continue,
            Some(_) => "the entry is sealed in the chain of another platform",
            None if waiting.contains(id.as_str()) => {
                report.unsealed += 1;
                continue;
            }
            None => "the entry is neither sealed nor waiting for sealing",
        };
        report.add_problem(ProblemKind::EntryNotSealed, None, Some(id), message);
    }
    Ok(())
}
