//! Organizations and who belongs to them.

use crate::kernel::{
    MemberId, Membership, Name, OrganizationId, PlatformId, Role, Slug, Timestamp, UserId,
    text_enum,
};
use crate::port::Record;

text_enum! {
    /// What an organization is for.
    pub enum OrganizationType {
        /// Owns a platform.
        Tenant = "tenant",
        /// Operates the installation. There is at most one.
        CoreOperator = "core-operator",
    }
}

/// An organization.
#[derive(Clone, Debug, PartialEq)]
pub struct Organization {
    /// The organization's id.
    pub id: OrganizationId,
    /// What people call it.
    pub name: Name,
    /// Its name in addresses; no two organizations share one.
    pub slug: Slug,
    /// What it is for.
    pub kind: OrganizationType,
    /// The platform that belongs to it.
    pub platform_id: Option<PlatformId>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

impl Record for Organization {
    type Query = OrganizationQuery;
    const KIND: &'static str = "organization";

    fn key(&self) -> &str {
        self.id.as_str()
    }
}

/// Questions about organizations.
#[derive(Clone, Debug, PartialEq)]
pub enum OrganizationQuery {
    /// The one with this slug.
    WithSlug(Slug),
    /// The one this platform belongs to.
    OfPlatform(PlatformId),
    /// Those of this type, oldest first.
    OfType(OrganizationType),
}

/// A user's membership in an organization.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// The membership's id.
    pub id: MemberId,
    /// The organization.
    pub organization_id: OrganizationId,
    /// The user; once in an organization.
    pub user_id: UserId,
    /// What they may do.
    pub role: Role,
    /// When they joined.
    pub created_at: Timestamp,
}

impl Record for Member {
    type Query = MemberQuery;
    const KIND: &'static str = "member";

    fn key(&self) -> &str {
        self.id.as_str()
    }
}

/// Questions about memberships.
#[derive(Clone, Debug, PartialEq)]
pub enum MemberQuery {
    /// The user's membership in the organization.
    Of(OrganizationId, UserId),
    /// All memberships of the user, oldest first.
    OfUser(UserId),
}

/// What a member of the organization is to the rest of the suite.
#[must_use]
pub fn membership(organization: &Organization, role: Role) -> Membership {
    Membership {
        organization_id: organization.id.clone(),
        platform_id: organization.platform_id.clone(),
        role,
        permissions: role.permissions(),
        operates: organization.kind == OrganizationType::CoreOperator,
    }
}
