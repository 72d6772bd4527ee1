//! Platforms (interface: "Platform (registry)").

use super::PlatformStatus;
use crate::kernel::{Name, OrganizationId, PlatformId, Reason, Slug, Timestamp, UserId, text_enum};
use crate::port::Record;

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

/// A platform: the tenant of the suite.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// Its account at the infrastructure provider.
    pub cf_account_id: Option<String>,
    /// The repository its code is in.
    pub repo_name: Option<String>,
    /// Its customer at the payment provider.
    pub payment_customer_id: Option<String>,
    /// Who set it up.
    pub owner_user_id: Option<UserId>,
    /// The organization it belongs to; decides which callers reach it, and is not shown.
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
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// When it was deleted.
    pub deleted_at: Option<Timestamp>,
    /// Whether everything of it is being removed for good; not shown. Nothing of it changes any more.
    pub purging: bool,
}

impl Platform {
    /// Tells whether its callers are refused.
    #[must_use]
    pub const fn is_suspended(&self) -> bool {
        self.suspended_at.is_some()
    }
}

impl Record for Platform {
    type Query = PlatformQuery;
    const KIND: &'static str = "platform";

    fn key(&self) -> &str {
        self.id.as_str()
    }
}

/// Questions about platforms; newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlatformQuery {
    /// All.
    All {
        /// Deleted ones too.
        deleted: bool,
    },
    /// Those an organization reaches: its own, and the one it acts for. Without deleted ones.
    Of {
        /// The organization.
        organization_id: OrganizationId,
        /// The platform it acts for.
        platform_id: Option<PlatformId>,
    },
    /// The one with this slug that is not deleted.
    WithSlug(Slug),
}
