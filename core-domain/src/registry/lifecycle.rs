//! Platform lifecycle records: one for every change of status, never changed.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::PlatformStatus;
#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::json;
use crate::kernel::{LifecycleId, PlatformId, Reason, Timestamp, record};

/// A change of a platform's status (interface: "Platform lifecycle record").
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct LifecycleRecord {
    /// The record's id.
    pub id: LifecycleId,
    /// The platform.
    pub platform_id: PlatformId,
    /// The status before; `None` when the platform was created.
    pub from_status: Option<PlatformStatus>,
    /// The status after.
    pub to_status: PlatformStatus,
    /// Who did it: a user's id or the name of a service.
    pub triggered_by: String,
    /// What kind of caller that is: `user`, `service` or `system`.
    pub trigger_type: String,
    /// Why, in their words.
    pub reason: Option<Reason>,
    /// The request behind it and the event.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "json()"))]
    pub metadata: Value,
    /// When.
    pub created_at: Timestamp,
}

record! {
    LifecycleRecord as "lifecycle record" by id, asked LifecycleQuery;
    of platform_id;
}

/// Questions about the lifecycle records of a platform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LifecycleQuery {
    /// All, newest first.
    All,
}
