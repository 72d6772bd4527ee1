//! Holds on jobs. A hold prevents jobs from being claimed; running jobs are not interrupted.

use super::{LaneKey, is_undo_kind};
use crate::kernel::{HoldId, Timestamp, record, text_enum};

/// The kind of jobs that remove the infrastructure of a platform. A suspension does not hold them, so a suspended
/// platform can be removed.
pub const DEPROVISION: &str = "platform.deprovision";

/// The jobs that a hold applies to.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub enum HoldScope {
    /// All jobs of the installation.
    All,
    /// The jobs of one kind.
    Kind(String),
    /// The jobs of one lane.
    Lane(LaneKey),
}

text_enum! {
    /// The source of a hold.
    pub enum HoldSource {
        /// The platform is suspended. Jobs that remove the platform and undo jobs are not held.
        Suspension = "suspension",
        /// An operator created the hold.
        Operator = "operator",
    }
}

/// A hold on a set of jobs.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct JobHold {
    /// Unique id of the hold.
    pub id: HoldId,
    /// The jobs that the hold applies to.
    pub scope: HoldScope,
    /// The source of the hold. There is at most one hold per scope and source.
    pub source: HoldSource,
    /// The reason for the hold, in words; `None` if none was given.
    pub reason: Option<String>,
    /// The id of the caller that created the hold.
    pub actor: String,
    /// The time at which the hold was created.
    pub created_at: Timestamp,
}

impl JobHold {
    /// Returns whether the hold prevents a job of this kind in this lane from being claimed.
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
    /// Returns whether holds from this source prevent jobs of this kind from being claimed.
    #[must_use]
    pub fn holds(self, kind: &str) -> bool {
        // A removal waits for undo jobs, so these must run as well.
        let takes_down = kind == DEPROVISION || is_undo_kind(kind);
        self != Self::Suspension || !takes_down
    }
}

record! {
    JobHold as "job hold" by id, asked JobHoldQuery;
    audited;
}

/// Queries for holds. Results are ordered from oldest to newest unless stated otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobHoldQuery {
    /// The holds on exactly these scopes. A hold on all jobs does not count as a hold on a lane.
    On(Vec<HoldScope>),
    /// The holds on all jobs or on a kind.
    Wide,
    /// All holds, newest first.
    All,
}
