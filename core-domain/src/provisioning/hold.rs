//! Holds: what keeps jobs from being claimed. Steps that run go on.

use super::{LaneKey, is_undo_kind};
use crate::kernel::{HoldId, Timestamp, record, text_enum};

/// What a hold is on.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub enum HoldScope {
    /// Every job.
    All,
    /// The jobs of a kind.
    Kind(String),
    /// The jobs of a lane.
    Lane(LaneKey),
}

text_enum! {
    /// Why there is a hold.
    pub enum HoldSource {
        /// The platform is suspended. Its jobs of kind [`DEPROVISION`] go on.
        Suspension = "suspension",
        /// An operator wants it.
        Operator = "operator",
    }
}

/// A hold.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct JobHold {
    /// The hold's id.
    pub id: HoldId,
    /// What it is on.
    pub scope: HoldScope,
    /// Why, by source; a source has at most one hold on a scope.
    pub source: HoldSource,
    /// Why, in words.
    pub reason: Option<String>,
    /// Who set it.
    pub actor: String,
    /// When.
    pub created_at: Timestamp,
}

/// The kind of the jobs that remove a platform's infrastructure. A suspension does not hold them: a suspended platform
/// can be taken down.
pub const DEPROVISION: &str = "platform.deprovision";

impl JobHold {
    /// Tells whether it keeps a job of this kind in this lane from being claimed.
    #[must_use]
    pub fn holds(&self, lane: &LaneKey, kind: &str) -> bool {
        let in_scope = match &self.scope {
            HoldScope::All => true,
            HoldScope::Kind(held) => held == kind,
            HoldScope::Lane(held) => held == lane,
        };
        in_scope && self.source.holds(kind)
    }
}

impl HoldSource {
    /// Returns whether a hold of this source keeps a job of this kind from being claimed.
    #[must_use]
    pub fn holds(self, kind: &str) -> bool {
        // Undoing goes before a removal, which would wait for it.
        let takes_down = kind == DEPROVISION || is_undo_kind(kind);
        self != Self::Suspension || !takes_down
    }
}

record! {
    JobHold as "job hold" by id, asked JobHoldQuery;
    audited;
}

/// Questions about holds; oldest first unless they say otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobHoldQuery {
    /// Those on exactly one of these: a hold on everything is not one on a lane.
    On(Vec<HoldScope>),
    /// Those on everything or on a kind.
    Wide,
    /// All of them, newest first.
    All,
}
