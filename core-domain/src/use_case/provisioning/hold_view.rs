//! Holds as operators see and set them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kinds::Kinds;
use crate::kernel::{Error, HoldId, Line, PlatformId, Reason, Result, Timestamp, text_enum};
use crate::provisioning::{HoldScope, HoldSource, JobHold, LaneKey};

text_enum! {
    /// What a hold is on.
    pub enum HoldOn {
        /// Every job.
        All = "all",
        /// The jobs of a kind.
        Kind = "kind",
        /// The jobs of a platform.
        Platform = "platform",
    }
}

/// Keeps jobs from being claimed.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreateHold {
    /// What shall be held.
    pub scope: HoldOn,
    /// The kind; with `kind` alone.
    pub kind: Option<Line<1, 100>>,
    /// The platform; with `platform` alone.
    pub platform_id: Option<PlatformId>,
    /// Why, in words; jobs show it.
    pub reason: Option<Reason>,
}

impl CreateHold {
    /// What is to be held.
    ///
    /// # Errors
    /// `VALIDATION_ERROR` when kind or platform are missing, do not go with the scope, or no kind is called so.
    pub(super) fn held(&self, kinds: &Kinds) -> Result<HoldScope> {
        let (kind, platform) = (self.kind.as_ref(), self.platform_id.as_ref());
        match (self.scope, kind, platform) {
            (HoldOn::All, None, None) => Ok(HoldScope::All),
            (HoldOn::Kind, Some(kind), None) if kinds.knows(kind.as_str()) => {
                Ok(HoldScope::Kind(kind.to_string()))
            }
            (HoldOn::Kind, Some(_), None) => Err(Error::invalid(
                "kind",
                "unknown",
                "no kind of jobs is called so",
            )),
            (HoldOn::Platform, None, Some(id)) => Ok(HoldScope::Lane(LaneKey::platform(id))),
            (HoldOn::Kind, None, _) => Err(missing("kind")),
            (HoldOn::Platform, _, None) => Err(missing("platformId")),
            (HoldOn::Kind | HoldOn::All, _, Some(_)) => Err(contradiction("platformId")),
            (HoldOn::Platform | HoldOn::All, Some(_), _) => Err(contradiction("kind")),
        }
    }
}

fn missing(field: &str) -> Error {
    Error::invalid(field, "required", "is required with this scope")
}

fn contradiction(field: &str) -> Error {
    Error::invalid(field, "unexpected", "does not go with this scope")
}

/// A hold as the interface shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HoldView {
    /// The hold's id.
    pub id: HoldId,
    /// What it is on.
    pub scope: HoldOn,
    /// The kind that is held.
    pub kind: Option<String>,
    /// The platform whose jobs are held.
    pub platform_id: Option<PlatformId>,
    /// Why there is a hold: one of a suspension is lifted with it alone.
    pub source: HoldSource,
    /// Why, in words.
    pub reason: Option<String>,
    /// Who set it.
    pub actor: String,
    /// When.
    pub created_at: Timestamp,
}

impl From<&JobHold> for HoldView {
    fn from(hold: &JobHold) -> Self {
        let (scope, kind, platform_id) = match &hold.scope {
            HoldScope::All => (HoldOn::All, None, None),
            HoldScope::Kind(kind) => (HoldOn::Kind, Some(kind.clone()), None),
            HoldScope::Lane(lane) => (HoldOn::Platform, None, lane.platform_id()),
        };
        Self {
            id: hold.id.clone(),
            scope,
            kind,
            platform_id,
            source: hold.source,
            reason: hold.reason.clone(),
            actor: hold.actor.clone(),
            created_at: hold.created_at,
        }
    }
}
