//! What a verification of a chain found.

use schemars::JsonSchema;
use serde::Serialize;

use crate::kernel::{AuditId, text_enum};
use crate::shared::{AuditChain, AuditHead};

/// The most problems a report tells of.
const MOST_PROBLEMS: usize = 100;

text_enum! {
    /// What is wrong with a chain.
    pub enum ProblemKind {
        /// The entry is not what was sealed.
        EntryChanged = "entry_changed",
        /// The entry is gone.
        EntryMissing = "entry_missing",
        /// The entry cannot be read any more.
        EntryUnreadable = "entry_unreadable",
        /// The entry is in the audit, and is neither sealed in this chain nor waiting for it.
        EntryNotSealed = "entry_not_sealed",
        /// The link does not follow from the one before.
        ChainBroken = "chain_broken",
        /// Links are missing before this one.
        SealsMissing = "seals_missing",
        /// The seal was changed, stands in the chain twice, or cannot be read any more.
        SealChanged = "seal_changed",
        /// The end of the chain is missing.
        TailMissing = "tail_missing",
        /// What is noted of the chain's end is not where it ends.
        HeadChanged = "head_changed",
        /// The checkpoint is not signed by this installation, or says something else than its signature.
        CheckpointChanged = "checkpoint_changed",
        /// The checkpoint was signed when the chain was another one.
        CheckpointContradicts = "checkpoint_contradicts",
        /// A checkpoint that was made is gone.
        CheckpointMissing = "checkpoint_missing",
        /// A chain of the installation is gone, or its end is.
        ChainMissing = "chain_missing",
        /// No seal has this position in the installation any more, or more than one has it.
        PositionMissing = "position_missing",
    }
}

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// What is wrong.
    pub kind: ProblemKind,
    /// The number in the chain it is about; `null` for an entry that has none, and for what concerns the installation.
    pub seq: Option<i64>,
    /// The entry it is about, if it is about one.
    pub entry_id: Option<String>,
    /// The same for people.
    pub message: String,
}

/// The end of a chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ChainEnd {
    /// The number of the last link; 0 when there is none.
    pub seq: i64,
    /// The hash of the last link.
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

/// What was checked of the installation as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct InstallationReport {
    /// The number of checkpoints of the installation.
    pub checkpoints: u64,
    /// The number of chains.
    pub chains: u64,
    /// The number of sealed entries in all chains.
    pub entries: u64,
}

/// What a verification found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct VerifyReport {
    /// Whether nothing is wrong with what was checked.
    pub valid: bool,
    /// The chain: `installation`, or `platform:` and the platform's id.
    pub chain: AuditChain,
    /// The number of the first link that was to be checked.
    pub from: i64,
    /// The number of the last link that was checked: what to continue behind.
    pub to: i64,
    /// How many links were checked.
    pub checked: u64,
    /// Whether the end of the chain was reached.
    pub complete: bool,
    /// How many entries of the chain, as far as it was checked, wait to be sealed.
    pub unsealed: u64,
    /// Where the chain is noted to end.
    pub head: ChainEnd,
    /// The installation as a whole. Checked when an operator verifies the installation's own chain up to its end; otherwise
    /// `null`.
    pub installation: Option<InstallationReport>,
    /// What is wrong; 100 at the most are told of.
    pub problems: Vec<Problem>,
}

impl VerifyReport {
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

    /// Adds a problem of the installation as a whole.
    pub(super) fn installation_problem(&mut self, kind: ProblemKind, message: impl Into<String>) {
        self.problem(kind, None, None, message);
    }

    /// Whether no further problem is told of.
    pub(super) fn is_full(&self) -> bool {
        self.problems.len() >= MOST_PROBLEMS
    }

    pub(super) fn problem(
        &mut self,
        kind: ProblemKind,
        seq: Option<i64>,
        entry: Option<&AuditId>,
        message: impl Into<String>,
    ) {
        self.valid = false;
        if self.problems.len() < MOST_PROBLEMS {
            self.problems.push(Problem {
                kind,
                seq,
                entry_id: entry.map(ToString::to_string),
                message: message.into(),
            });
        }
    }
}
