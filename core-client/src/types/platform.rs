//! Platforms.

use serde::{Deserialize, Serialize};

use super::open_enum::open_enum;

open_enum! {
    /// The status of a platform.
    pub enum PlatformStatus {
        /// The platform accepts requests.
        Active = "active",
        /// Requests of the platform are refused with 451.
        Suspended = "suspended",
        /// The subscription of the platform has ended.
        Cancelled = "cancelled",
        /// The platform is deleted.
        Deleted = "deleted",
    }
}

/// A platform: the unit that owns sites, workers, databases and people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Platform {
    /// The id of the platform. It never changes.
    pub id: String,
    /// The name of the platform in addresses. It never changes.
    pub slug: String,
    /// The display name of the platform.
    pub name: String,
    /// The status of the platform.
    pub status: PlatformStatus,
    /// The tier of the platform, which limits how much it may use.
    pub tier: String,
    /// The reason for the suspension; `None` if none was given.
    pub suspension_reason: Option<String>,
    /// The time at which the platform was created.
    pub created_at: String,
}
