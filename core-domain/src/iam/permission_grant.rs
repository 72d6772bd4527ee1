//! Permissions that are granted or denied to single members, in addition to their roles.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kernel::{
    GrantId, MemberId, OrganizationId, PermissionPattern, Timestamp, UnixSeconds, UserId,
};

/// A grant or denial of a permission. It is stored inside the membership, because every request of the member needs it,
/// and is deleted with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct PermissionGrant {
    /// The id of the grant. It contains the membership id; see [`GrantId::member`].
    pub id: GrantId,
    /// The permission pattern that is granted or denied.
    pub permission: PermissionPattern,
    /// `true` for a grant, `false` for a denial.
    pub granted: bool,
    /// The user who granted or denied it.
    pub granted_by: UserId,
    /// The time at which it stops to apply; `null` if it does not expire.
    pub expires_at: Option<Timestamp>,
    /// The time at which it was created.
    pub created_at: Timestamp,
}

impl PermissionGrant {
    /// Returns whether the grant or denial applies at the given time.
    #[must_use]
    pub fn is_active(&self, now: Timestamp) -> bool {
        self.expires_at.is_none_or(|end| now < end)
    }
}

impl GrantId {
    /// Generates a new id for a grant to this member.
    #[must_use]
    pub fn generate_for_member(
        member: &MemberId,
        now: Timestamp,
        entropy: &dyn crate::kernel::Entropy,
    ) -> Option<Self> {
        let own = crate::kernel::new_uuid(now, entropy);
        Self::parse(&format!("{member}.{own}"))
    }

    /// Returns the membership that a grant with this id belongs to; `None` if the id is not the id of a grant.
    #[must_use]
    pub fn member(&self) -> Option<MemberId> {
        let (member, _) = self.as_str().rsplit_once('.')?;
        MemberId::parse(member)
    }
}

/// Grants or denies a permission to a member of an organization.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GrantPermission {
    /// The id of the user, who must be a member.
    pub user_id: UserId,
    /// The id of the organization.
    pub org_id: OrganizationId,
    /// The permission pattern to grant or deny.
    pub permission: PermissionPattern,
    /// `true` grants the permission, `false` denies it.
    pub granted: bool,
    /// The user who grants it. A person must give their own id, a service the id of the user it acts for.
    pub granted_by: UserId,
    /// The time at which the grant or denial stops to apply, in Unix seconds. Default: it does not expire.
    #[schemars(range(min = 1, max = 99_999_999_999_i64))]
    pub expires_at: Option<UnixSeconds>,
}
