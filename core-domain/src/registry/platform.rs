//! Platforms (interface: "Platform (registry)").

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::PlatformStatus;
use crate::kernel::{
    Line, Name, OrganizationId, PlatformId, Reason, Slug, Timestamp, UserId, record, text_enum,
    update_command,
};

text_enum! {
    /// How much a platform may use.
    pub enum Tier {
        /// To begin with.
        Starter = "starter",
        /// More.
        Growth = "growth",
        /// Most.
        Scale = "scale",
    }
}

impl Tier {
    /// What a platform has until billing or an operator says otherwise.
    #[must_use]
    pub const fn starter() -> Self {
        Self::Starter
    }
}

/// The id of an account at the infrastructure provider.
pub type AccountName = Line<1, 255>;

/// A platform: the tenant of the suite.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct Platform {
    /// The platform's id; never changes.
    pub id: PlatformId,
    /// What people call it.
    pub name: Name,
    /// Its name in addresses; no two platforms that are not deleted share one. Never changes.
    pub slug: Slug,
    /// Where it stands.
    pub status: PlatformStatus,
    /// How much it may use.
    pub tier: Tier,
    /// Its account at the infrastructure provider; the installation's own when there is none.
    pub cf_account_id: Option<AccountName>,
    /// The repository its code is in.
    pub repo_name: Option<Line<1, 255>>,
    /// Its customer at the payment provider.
    pub payment_customer_id: Option<String>,
    /// Who set it up.
    pub owner_user_id: Option<UserId>,
    /// The organization it belongs to; decides which callers reach it.
    #[serde(skip)]
    pub organization_id: Option<OrganizationId>,
    /// Since when it is cancelled.
    pub cancelled_at: Option<Timestamp>,
    /// Why.
    pub cancellation_reason: Option<Reason>,
    /// Since when its callers are refused. Kept while it is cancelled or deleted, until it is restored.
    pub suspended_at: Option<Timestamp>,
    /// Why.
    pub suspension_reason: Option<Reason>,
    /// When its trial ends.
    pub trial_ends_at: Option<Timestamp>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// When it was deleted.
    pub deleted_at: Option<Timestamp>,
    /// Whether everything of it is being removed for good. Nothing of it changes any more.
    #[serde(skip)]
    pub purging: bool,
}

record! {
    Platform as "platform" by id, asked PlatformQuery;
    audited in |platform| Some(&platform.id), touched updated_at;
}

impl Platform {
    /// Tells whether its callers are refused.
    #[must_use]
    pub const fn is_suspended(&self) -> bool {
        self.suspended_at.is_some()
    }

    /// A new platform.
    #[must_use]
    pub fn create(
        id: PlatformId,
        owner: PlatformOwner,
        command: CreatePlatform,
        now: Timestamp,
    ) -> Self {
        Self {
            id,
            name: command.name,
            slug: command.slug,
            status: PlatformStatus::Active,
            tier: command.tier,
            cf_account_id: command.cf_account_id,
            repo_name: command.repo_name,
            payment_customer_id: None,
            owner_user_id: owner.user_id,
            organization_id: owner.organization_id,
            cancelled_at: None,
            cancellation_reason: None,
            suspended_at: None,
            suspension_reason: None,
            trial_ends_at: None,
            created_at: now,
            updated_at: now,
            deleted_at: None,
            purging: false,
        }
    }
}

/// Whose a platform is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlatformOwner {
    /// Who set it up.
    pub user_id: Option<UserId>,
    /// The organization it belongs to.
    pub organization_id: Option<OrganizationId>,
}

/// Questions about platforms; newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlatformQuery {
    /// All.
    All {
        /// Deleted ones too.
        deleted: bool,
    },
    /// Those of an organization that are not deleted.
    Of(OrganizationId),
    /// The one with this id, provided it is not deleted.
    WithId(PlatformId),
    /// Those that belong to an organization, deleted ones too.
    BelongingTo(OrganizationId),
    /// The one with this slug that is not deleted.
    WithSlug(Slug),
}

/// Creates a platform.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreatePlatform {
    /// What people call it.
    pub name: Name,
    /// Its name in addresses.
    pub slug: Slug,
    /// How much it may use; operators and billing give more than `starter`.
    #[serde(default = "Tier::starter")]
    pub tier: Tier,
    /// Its account at the infrastructure provider.
    pub cf_account_id: Option<AccountName>,
    /// The repository its code is in.
    pub repo_name: Option<Line<1, 255>>,
}

text_enum! {
    /// The statuses a change sets by name.
    pub enum SettableStatus {
        /// To be used again.
        Active = "active",
        /// Its callers are to be refused.
        Suspended = "suspended",
        /// To be deleted.
        Deleted = "deleted",
    }
}

update_command! {
    /// Changes a platform.
    pub struct UpdatePlatform for Platform {
        set {
            /// What people call it.
            name: Name,
        }
        also {
            /// How much it may use; for operators.
            tier: Option<Tier>,
            /// Where it stands; needs `platform:manage`.
            status: Option<SettableStatus>,
        }
        optional {
            /// Its account at the infrastructure provider; `null` takes it away.
            cf_account_id: AccountName,
            /// The repository its code is in; `null` takes it away.
            repo_name: Line<1, 255>,
        }
    }
}
