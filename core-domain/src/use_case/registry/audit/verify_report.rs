//! The report of a verification.

use schemars::JsonSchema;
use serde::Serialize;

use crate::kernel::{AuditId, text_enum};
use crate::shared::{AuditArchive, AuditChain, AuditHead};

/// Maximum number of problems in a report.
const MAX_PROBLEMS: usize = 100;

text_enum! {
    /// The type of a problem.
    pub enum ProblemKind {
        /// The entry was changed after it was sealed.
        EntryChanged = "entry_changed",
        /// The entry is missing.
        EntryMissing = "entry_missing",
        /// The entry cannot be read.
        EntryUnreadable = "entry_unreadable",
        /// The entry exists but is neither sealed in this chain nor waiting for sealing.
        EntryNotSealed = "entry_not_sealed",
        /// The link does not contain the hash of the previous link.
        ChainBroken = "chain_broken",
        /// Links are missing before this link.
        SealsMissing = "seals_missing",
        /// The seal was changed, occurs twice in the chain, or cannot be read.
        SealChanged = "seal_changed",
        /// The end of the chain is missing.
        TailMissing = "tail_missing",
        /// The recorded end of the chain differs from its actual end.
        HeadChanged = "head_changed",
        /// The signature of the checkpoint is not from this installation, or does not match its content.
        CheckpointChanged = "checkpoint_changed",
        /// The chain differs from the chain that the checkpoint signed.
        CheckpointContradicts = "checkpoint_contradicts",
        /// A checkpoint is missing.
        CheckpointMissing = "checkpoint_missing",
        /// A chain of the installation or the end of a chain is missing.
        ChainMissing = "chain_missing",
        /// A position in the installation has no seal, or more than one.
        PositionMissing = "position_missing",
        /// The record or the content of an archive was changed or is missing.
        ArchiveChanged = "archive_changed",
    }
}

/// A problem that the verification found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// The type of the problem.
    pub kind: ProblemKind,
    /// The number of the affected link in the chain; `null` if no link is affected or the problem concerns the
    /// installation.
    pub seq: Option<i64>,
    /// The id of the affected entry; `null` if no entry is affected.
    pub entry_id: Option<String>,
    /// A description of the problem for people.
    pub message: String,
}

/// The recorded end of a chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ChainEnd {
    /// The number of the last link; 0 for an empty chain.
    pub seq: i64,
    /// The hash of the last link; 64 zeros for an empty chain.
    pub hash: String,
}

impl From<&AuditHead> for ChainEnd {
    fn from(head: &AuditHead) -> Self {
        Self {
            seq: head.seq,
            hash: head.hash.clone(),
        }
    }
}

/// The result of the verification of the whole installation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct InstallationReport {
    /// The number of checkpoints of the whole installation that are not archived.
    pub checkpoints: u64,
    /// The number of hash chains in the installation.
    pub chains: u64,
    /// The number of sealed entries in all chains that are not archived.
    pub entries: u64,
}

/// The result of a verification.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct VerifyReport {
    /// Whether the checked part has no problems.
    pub valid: bool,
    /// The verified chain: `installation`, or `platform:` followed by the platform's id.
    pub chain: AuditChain,
    /// The number of the first link that was to be checked. Archived links are skipped.
    pub from: i64,
    /// The number of the last link that was checked. Continue a verification with this number as `after`.
    pub to: i64,
    /// The number of links that were checked.
    pub checked: u64,
    /// Whether the verification reached the end of the chain.
    pub complete: bool,
    /// The number of entries in the checked part that wait to be sealed.
    pub unsealed: u64,
    /// The recorded end of the chain.
    pub head: ChainEnd,
    /// The result for the whole installation. It is only present if an operator verifies the installation's own chain
    /// up to its end; otherwise `null`.
    pub installation: Option<InstallationReport>,
    /// The problems that were found, at most 100.
    pub problems: Vec<Problem>,
}

impl VerifyReport {
    /// Creates a report without problems.
    pub(super) fn new(chain: AuditChain, after: i64) -> Self {
        Self {
            valid: true,
            head: ChainEnd::from(&AuditHead::empty(chain.clone())),
            chain,
            from: after.saturating_add(1),
            to: after,
            checked: 0,
            complete: false,
            unsealed: 0,
            installation: None,
            problems: Vec::new(),
        }
    }

    /// Skips the links up to this one.
    pub(super) const fn start_after(&mut self, seq: i64) {
        self.from = seq.saturating_add(1);
        self.to = seq;
    }

    /// Reports that this part of an archive was changed.
    pub(super) fn add_changed_archive(&mut self, archive: &AuditArchive, part: &str) {
        let message = format!(
            "the {part} of the archive of {} is not valid",
            archive.month
        );
        self.add_installation_problem(ProblemKind::ArchiveChanged, message);
    }

    /// Compares the digest of an archive's content with the signed digest. `None` stands for a missing archive.
    pub fn compare_archive(&mut self, archive: &AuditArchive, digest: Option<&str>) {
        let message = match digest {
            Some(digest) if digest == archive.digest => return,
            Some(_) => format!(
                "the content of the archive of {} differs from the signed content",
                archive.month
            ),
            None => format!("the archive of {} is missing", archive.month),
        };
        self.add_installation_problem(ProblemKind::ArchiveChanged, message);
    }

    /// Adds a problem that concerns the whole installation.
    pub(super) fn add_installation_problem(
        &mut self,
        kind: ProblemKind,
        message: impl Into<String>,
    ) {
        self.add_problem(kind, None, None, message);
    }

    /// Returns whether the report has the maximum number of problems.
    pub(super) fn is_full(&self) -> bool {
        self.problems.len() >= MAX_PROBLEMS
    }

    /// Adds a problem, unless the report is full, and marks the report as invalid.
    pub(super) fn add_problem(
        &mut self,
        kind: ProblemKind,
        seq: Option<i64>,
        entry: Option<&AuditId>,
        message: impl Into<String>,
    ) {
        self.valid = false;
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(Problem {
                kind,
                seq,
                entry_id: entry.map(ToString::to_string),
                message: message.into(),
            });
        }
    }
}
