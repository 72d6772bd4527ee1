//! What single members are granted or denied besides what their roles allow.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kernel::{
    GrantId, MemberId, OrganizationId, PermissionPattern, Timestamp, UnixSeconds, UserId,
};

/// A grant or denial. Kept with the membership, because every request of the member asks for it, and gone with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct PermissionGrant {
    /// The grant's id, which names the membership as well, see [`GrantId::member`].
    pub id: GrantId,
    /// What is granted or denied.
    pub permission: PermissionPattern,
    /// Whether it is granted; denied otherwise.
    pub granted: bool,
    /// Who granted or denied it.
    pub granted_by: UserId,
    /// From when on it counts for nothing.
    pub expires_at: Option<Timestamp>,
    /// Since when.
    pub created_at: Timestamp,
}

impl PermissionGrant {
    /// Tells whether it counts at this instant.
    #[must_use]
    pub fn counts(&self, now: Timestamp) -> bool {
        self.expires_at.is_none_or(|end| now < end)
    }
}

impl GrantId {
    /// A new id of a grant to this member.
    #[must_use]
    pub fn of_member(
        member: &MemberId,
        now: Timestamp,
        entropy: &dyn crate::kernel::Entropy,
    ) -> Option<Self> {
        let own = crate::kernel::new_uuid(now, entropy);
        Self::parse(&format!("{member}.{own}"))
    }

    /// The membership that the grant with this id belongs to; `None` for an id that was not made for a grant.
    #[must_use]
    pub fn member(&self) -> Option<MemberId> {
        let (member, _) = self.as_str().rsplit_once('.')?;
        MemberId::parse(member)
    }
}

/// Grants or denies a member a permission (interface: `POST /api/core/grants`).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GrantPermission {
    /// The member.
    pub user_id: UserId,
    /// The organization.
    pub org_id: OrganizationId,
    /// What is granted or denied.
    pub permission: PermissionPattern,
    /// Whether it is granted; denied otherwise.
    pub granted: bool,
    /// Who grants it: a caller who is a person says their own id, a service that of whom it acts for.
    pub granted_by: UserId,
    /// From when on it counts for nothing; Unix seconds. For good when left out.
    #[schemars(range(min = 1, max = 99_999_999_999_i64))]
    pub expires_at: Option<UnixSeconds>,
}
