//! Platform lifecycle records: one for every change of status, never changed.

use serde_json::Value;

use super::PlatformStatus;
use crate::kernel::{LifecycleId, PlatformId, Reason, Timestamp};
use crate::port::Record;

/// A change of a platform's status (interface: "Platform lifecycle record").
#[derive(Clone, Debug, PartialEq)]
pub struct LifecycleRecord {
    /// The record's id.
    pub id: LifecycleId,
    /// The platform.
    pub platform_id: PlatformId,
    /// The status before; `None` when the platform was made.
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
    pub metadata: Value,
    /// When.
    pub created_at: Timestamp,
}

impl Record for LifecycleRecord {
    type Query = LifecycleQuery;
    const KIND: &'static str = "lifecycle record";

    fn key(&self) -> &str {
        self.id.as_str()
    }
}

/// Questions about lifecycle records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LifecycleQuery {
    /// Those of a platform, newest first.
    OfPlatform(PlatformId),
}
