//! The suspension flag the gateway obeys.

use crate::kernel::{PlatformId, Reason, Timestamp, record};

/// Says that a platform is suspended. It is there for as long as that is so.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct PlatformSuspension {
    /// The platform.
    pub platform_id: PlatformId,
    /// Why, if somebody said so.
    pub reason: Option<Reason>,
    /// Whether an operator wants it: then only an operator lifts it.
    pub by_operator: bool,
    /// Since when.
    pub created_at: Timestamp,
}

record! {
    PlatformSuspension as "platform suspension" by platform_id, asked PlatformSuspensionQuery;
}

/// Questions about suspensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlatformSuspensionQuery {
    /// All, oldest first.
    All,
}
