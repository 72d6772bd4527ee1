//! The shapes of platforms and their lifecycle (interface: "Platform (registry)", "Platform lifecycle record").

use core_domain::kernel::{LifecycleId, Name, PlatformId, Reason, Slug, Timestamp, UserId};
use core_domain::port::Stored;
use core_domain::registry::{LifecycleRecord, Platform, PlatformStatus, Tier};
use core_domain::use_case::registry::{NewPlatform, PlatformChange};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::kernel::Patch;

/// Body of `POST /api/v1/platforms`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CreatePlatform {
    name: Name,
    slug: Slug,
    #[serde(default = "starter")]
    tier: Tier,
    /// Its account at the infrastructure provider.
    #[schemars(length(max = 255))]
    cf_account_id: Option<String>,
    /// The repository its code is in.
    #[schemars(length(max = 255))]
    repo_name: Option<String>,
}

fn starter() -> Tier {
    Tier::Starter
}

impl From<CreatePlatform> for NewPlatform {
    fn from(body: CreatePlatform) -> Self {
        Self {
            name: body.name,
            slug: body.slug,
            tier: body.tier,
            cf_account_id: body.cf_account_id,
            repo_name: body.repo_name,
        }
    }
}

/// The statuses a `PATCH` sets.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum SettableStatus {
    Active,
    Suspended,
    Deleted,
}

/// Body of `PATCH /api/v1/platforms/{platformId}`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct UpdatePlatform {
    name: Option<Name>,
    tier: Option<Tier>,
    status: Option<SettableStatus>,
    /// Its account at the infrastructure provider; `null` takes it away.
    #[serde(default)]
    #[schemars(length(max = 255))]
    cf_account_id: Patch<String>,
    /// The repository its code is in; `null` takes it away.
    #[serde(default)]
    #[schemars(length(max = 255))]
    repo_name: Patch<String>,
}

impl From<UpdatePlatform> for PlatformChange {
    fn from(body: UpdatePlatform) -> Self {
        Self {
            name: body.name,
            tier: body.tier,
            status: body.status.map(|status| match status {
                SettableStatus::Active => PlatformStatus::Active,
                SettableStatus::Suspended => PlatformStatus::Suspended,
                SettableStatus::Deleted => PlatformStatus::Deleted,
            }),
            cf_account_id: body.cf_account_id.into_change(),
            repo_name: body.repo_name.into_change(),
        }
    }
}

/// Body of the requests that move a platform.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Why {
    /// Why, in the caller's words.
    pub(super) reason: Option<Reason>,
}

/// A platform.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PlatformShape {
    id: PlatformId,
    name: Name,
    slug: Slug,
    status: PlatformStatus,
    tier: Tier,
    cf_account_id: Option<String>,
    repo_name: Option<String>,
    payment_customer_id: Option<String>,
    owner_user_id: Option<UserId>,
    cancelled_at: Option<Timestamp>,
    cancellation_reason: Option<Reason>,
    suspended_at: Option<Timestamp>,
    suspension_reason: Option<Reason>,
    trial_ends_at: Option<Timestamp>,
    created_at: Timestamp,
    updated_at: Timestamp,
    deleted_at: Option<Timestamp>,
}

impl From<Stored<Platform>> for PlatformShape {
    fn from(stored: Stored<Platform>) -> Self {
        let platform = stored.into_inner();
        Self {
            id: platform.id,
            name: platform.name,
            slug: platform.slug,
            status: platform.status,
            tier: platform.tier,
            cf_account_id: platform.cf_account_id,
            repo_name: platform.repo_name,
            payment_customer_id: platform.payment_customer_id,
            owner_user_id: platform.owner_user_id,
            cancelled_at: platform.cancelled_at,
            cancellation_reason: platform.cancellation_reason,
            suspended_at: platform.suspended_at,
            suspension_reason: platform.suspension_reason,
            trial_ends_at: platform.trial_ends_at,
            created_at: platform.created_at,
            updated_at: platform.updated_at,
            deleted_at: platform.deleted_at,
        }
    }
}

/// A change of a platform's status.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct LifecycleShape {
    id: LifecycleId,
    platform_id: PlatformId,
    from_status: Option<PlatformStatus>,
    to_status: PlatformStatus,
    triggered_by: String,
    trigger_type: String,
    reason: Option<Reason>,
    metadata: Value,
    created_at: Timestamp,
}

impl From<Stored<LifecycleRecord>> for LifecycleShape {
    fn from(stored: Stored<LifecycleRecord>) -> Self {
        let record = stored.into_inner();
        Self {
            id: record.id,
            platform_id: record.platform_id,
            from_status: record.from_status,
            to_status: record.to_status,
            triggered_by: record.triggered_by,
            trigger_type: record.trigger_type,
            reason: record.reason,
            metadata: record.metadata,
            created_at: record.created_at,
        }
    }
}
