//! Verifies the installation as a whole: its checkpoints, the positions of its seals, and the number of its chains.

use super::verify_report::{InstallationReport, ProblemKind, VerifyReport};
use crate::access::unowned_records;
use crate::kernel::{Ed25519Public, Error, Result, StoreError, Stored};
use crate::port::{Mode, Store, UnitOfWork};
use crate::shared::{
    AuditArchive, AuditArchiveQuery, AuditChain, AuditCheckpoint, AuditCheckpointQuery, AuditHead,
    AuditHeadQuery, AuditSeal, AuditSealQuery, GENESIS, InstallationStatement,
};
use crate::use_case::shared::chain_base;

/// Number of checkpoints per read.
const PAGE: u32 = 500;

/// Maximum number of archives that are checked: those of 800 years.
const MAX_ARCHIVES: u32 = 10_000;

/// Number of seals per read in the search for missing positions.
const ROWS: u32 = 1_000;

/// Verifies the installation. Reads pages in separate units of work.
///
/// # Errors
/// Only those of the store.
pub(super) async fn verify_installation(
    store: &dyn Store,
    key: &Ed25519Public,
    report: &mut VerifyReport,
) -> Result<()> {
    let archives = check_archives(store, key, report).await?;
    let mut verification = Verification {
        key,
        archived_until: archives.position,
        position: archives.feed_position,
        last: InstallationStatement {
            previous: String::new(),
            chains: 0,
            entries: 0,
        },
        hash: archives.feed_hash,
        found: InstallationReport::default(),
        has_holes: false,
        report,
    };
    loop {
        let mut uow = store.begin(Mode::Read).await?;
        match verification.read_page(store, uow.as_mut()).await {
            Ok(true) => {}
            Ok(false) => break,
            Err(Error::Store(StoreError::Corrupt { key, .. })) => {
                let message = format!("a row of the installation cannot be read: {key}");
                let kind = ProblemKind::CheckpointChanged;
                verification.report.add_installation_problem(kind, message);
                break;
            }
            Err(error) => return Err(error),
        }
    }
    let found = verification.found;
    report.installation = Some(found);
    Ok(())
}

/// The part of the installation that is archived.
struct Archives {
    /// The position of the last archived link.
    position: i64,
    /// The position of the last archived checkpoint of the feed.
    feed_position: i64,
    /// The hash of that checkpoint.
    feed_hash: String,
    /// The digest of the newest archive.
    digest: String,
}

/// Checks that the archives are signed and follow each other.
async fn check_archives(
    store: &dyn Store,
    key: &Ed25519Public,
    report: &mut VerifyReport,
) -> Result<Archives> {
    let mut archives = Archives {
        position: 0,
        feed_position: 0,
        feed_hash: GENESIS.to_owned(),
        digest: GENESIS.to_owned(),
    };
    let mut uow = store.begin(Mode::Read).await?;
    let found = unowned_records::<AuditArchive>(uow.as_mut())
        .list(&AuditArchiveQuery::OldestFirst, MAX_ARCHIVES)
        .await?;
    for archive in &found {
        if !archive.is_signed_by(key) {
            report.add_changed_archive(archive, "signature");
        } else if archive.after != archives.position || archive.previous != archives.digest {
            report.add_changed_archive(archive, "predecessor");
        }
        archives.position = archive.position;
        archives.feed_position = archive.feed_position;
        archives.feed_hash.clone_from(&archive.feed_hash);
        archives.digest.clone_from(&archive.digest);
    }
    Ok(archives)
}

/// Returns the present recorded end of the installation.
async fn recorded_end(store: &dyn Store) -> Result<i64> {
    let mut uow = store.begin(Mode::Read).await?;
    let feed = unowned_records::<AuditHead>(uow.as_mut())
        .find(AuditChain::feed())
        .await?;
    Ok(feed.map_or(0, |feed| feed.seq))
}

/// A verification in progress.
struct Verification<'v> {
    key: &'v Ed25519Public,
    /// The position of the last archived link. Seals up to there may be removed.
    archived_until: i64,
    /// The position of the last checked checkpoint.
    position: i64,
    /// The statement of the last checked checkpoint.
    last: InstallationStatement,
    /// The hash of the last checked checkpoint.
    hash: String,
    found: InstallationReport,
    /// `true` if a position without a seal was found.
    has_holes: bool,
    report: &'v mut VerifyReport,
}

impl Verification<'_> {
    /// Checks the next checkpoints, and the end after the last one. Returns whether there may be more.
    async fn read_page(&mut self, store: &dyn Store, uow: &mut dyn UnitOfWork) -> Result<bool> {
        let behind = AuditCheckpointQuery::OfChain(AuditChain::feed(), self.position);
        let checkpoints = unowned_records::<AuditCheckpoint>(uow)
            .list(&behind, PAGE)
            .await?;
        for checkpoint in &checkpoints {
            self.check_checkpoint(uow, checkpoint).await?;
        }
        let is_last = checkpoints.len() < PAGE as usize;
        if is_last {
            self.check_end(store, uow).await?;
        }
        Ok(!is_last)
    }

    /// Checks the signature of a checkpoint and the positions up to it.
    async fn check_checkpoint(
        &mut self,
        uow: &mut dyn UnitOfWork,
        checkpoint: &Stored<AuditCheckpoint>,
    ) -> Result<()> {
        let (seq, before) = (checkpoint.seq, self.position);
        self.found.checkpoints += 1;
        let stated = checkpoint.installation(self.key);
        let stated = stated.filter(|_| checkpoint.version() == 1);
        let Some(stated) = stated else {
            let message = format!(
                "the installation's checkpoint at {seq} does not match the signature of this installation"
            );
            self.problem(ProblemKind::CheckpointChanged, message);
            self.check_positions(uow, before, seq).await?;
            self.position = seq;
            self.hash.clone_from(&checkpoint.hash);
            return Ok(());
        };
        if stated.previous != self.hash {
            let message =
                format!("a checkpoint of the installation between {before} and {seq} is missing");
            self.problem(ProblemKind::CheckpointMissing, message);
        }
        if stated.chains < self.last.chains || stated.entries < self.last.entries {
            let message = format!(
                "there were {} chains at {before} and {} at {seq}",
                self.last.chains, stated.chains
            );
            self.problem(ProblemKind::ChainMissing, message);
        }
        self.check_positions(uow, before, seq).await?;
        self.position = seq;
        self.hash.clone_from(&checkpoint.hash);
        self.last = stated;
        Ok(())
    }

    /// Checks that every position after `after` and up to `to` has exactly one seal.
    async fn check_positions(
        &mut self,
        uow: &mut dyn UnitOfWork,
        after: i64,
        to: i64,
    ) -> Result<()> {
        let (after, to) = (after.max(self.archived_until), to.max(self.archived_until));
        let positions = AuditSealQuery::Positions(after, to);
        let count = unowned_records::<AuditSeal>(uow).count(&positions).await?;
        self.found.entries += count;
        if i64::try_from(count).unwrap_or(i64::MAX) == (to - after).max(0) {
            return Ok(());
        }
        self.has_holes = true;
        let mut expected = after + 1;
        loop {
            let rest = AuditSealQuery::Positions(expected - 1, to);
            let seals = unowned_records::<AuditSeal>(uow).list(&rest, ROWS).await?;
            for seal in &seals {
                if seal.position < expected {
                    let message = format!("the position {} has two seals", seal.position);
                    self.problem(ProblemKind::PositionMissing, message);
                }
                self.missing_positions(expected, seal.position - 1);
                expected = seal.position + 1;
            }
            if seals.len() < ROWS as usize || self.report.is_full() {
                break;
            }
        }
        self.missing_positions(expected, to);
        Ok(())
    }

    /// Reports a range of positions without a seal.
    fn missing_positions(&mut self, from: i64, to: i64) {
        if from <= to {
            let message = format!("no seal has the positions {from} to {to} of the installation");
            self.problem(ProblemKind::PositionMissing, message);
        }
    }

    /// Checks the seals after the last checkpoint, and the recorded end of the installation.
    async fn check_end(&mut self, store: &dyn Store, uow: &mut dyn UnitOfWork) -> Result<()> {
        let feed = unowned_records::<AuditHead>(uow)
            .find(AuditChain::feed())
            .await?;
        let feed = feed.map_or_else(|| AuditHead::empty(AuditChain::feed()), Stored::into_inner);
        if feed.hash != self.hash || feed.checkpoint_seq != self.position {
            let message = format!(
                "the installation's last checkpoint, at {}, is missing or was changed",
                feed.checkpoint_seq
            );
            self.problem(ProblemKind::CheckpointMissing, message);
        }
        let beyond = AuditSealQuery::Positions(feed.seq.max(self.position), i64::MAX);
        let beyond = unowned_records::<AuditSeal>(uow).first(&beyond).await?;
        let is_beyond = match beyond {
            // In another cell, the unit can see what was sealed since it read the end.
            Some(seal) => seal.position > recorded_end(store).await?,
            None => false,
        };
        if feed.seq < self.position || is_beyond {
            let message = format!(
                "the recorded end of the installation is {}, which differs from its actual end",
                feed.seq
            );
            self.problem(ProblemKind::HeadChanged, message);
        }
        self.check_positions(uow, self.position, feed.seq).await?;
        self.found.chains = unowned_records::<AuditHead>(uow)
            .count(&AuditHeadQuery::Chains)
            .await?;
        let has_lost_chains = self.found.chains < self.last.chains;
        if has_lost_chains {
            let message = format!(
                "there are {} chains, and there were {} at {}",
                self.found.chains, self.last.chains, self.position
            );
            self.problem(ProblemKind::ChainMissing, message);
        }
        if self.has_holes {
            self.name_missing_chains(uow).await?;
        }
        Ok(())
    }

    /// Reports the chains whose last links are missing.
    async fn name_missing_chains(&mut self, uow: &mut dyn UnitOfWork) -> Result<()> {
        let heads = unowned_records::<AuditHead>(uow);
        for head in heads.list(&AuditHeadQuery::Chains, u32::MAX).await? {
            if self.report.is_full() {
                break;
            }
            let last = AuditSealQuery::OfChain(head.chain.clone(), head.seq - 1);
            if head.seq > 0
                && unowned_records::<AuditSeal>(uow)
                    .first(&last)
                    .await?
                    .is_none()
                && !self.is_archived(uow, &head).await?
            {
                let (chain, seq) = (head.chain.as_ref(), head.seq);
                let message =
                    format!("the chain {chain} is noted to end at {seq}, and its end is gone");
                self.problem(ProblemKind::ChainMissing, message);
            }
        }
        Ok(())
    }

    /// Returns whether all links of a chain are archived. Then a checkpoint states its end.
    async fn is_archived(&self, uow: &mut dyn UnitOfWork, head: &AuditHead) -> Result<bool> {
        if self.archived_until == 0 {
            return Ok(false);
        }
        let base = chain_base(uow, &head.chain, self.archived_until).await?;
        let signed = base.checkpoints(uow, &head.chain, self.key).await?;
        Ok(signed.iter().any(|signed| signed.seq == head.seq))
    }

    /// Adds a problem to the report.
    fn problem(&mut self, kind: ProblemKind, message: String) {
        self.report.add_installation_problem(kind, message);
    }
}
