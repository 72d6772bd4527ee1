//! Organizations and who belongs to them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{PermissionGrant, RoleMappings};
use crate::kernel::{
    BoundedJson, Email, JsonText, Line, MemberId, Name, OrganizationId, OrganizationName,
    PlatformId, Roles, Slug, Timestamp, UserId, record, text_enum, update_command,
};

/// The largest metadata of an organization, in bytes of JSON.
pub const MAX_METADATA_BYTES: usize = 16 * 1024;

/// The metadata of an organization, as a request sets it.
pub type OrganizationMetadata = BoundedJson<MAX_METADATA_BYTES>;

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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct Organization {
    /// The organization's id.
    pub id: OrganizationId,
    /// What people call it.
    pub name: Name,
    /// Its name in addresses; no two organizations share one.
    pub slug: Slug,
    /// What it is for.
    #[serde(rename = "type")]
    pub kind: OrganizationType,
    /// The platform that belongs to it.
    pub platform_id: Option<PlatformId>,
    /// Address of its picture.
    pub logo: Option<Line<0, 2048>>,
    /// What its members keep with it; an object.
    #[cfg_attr(
        any(test, feature = "proptest"),
        proptest(strategy = "crate::kernel::strategy::opt_json_text()")
    )]
    pub metadata: Option<JsonText>,
    /// What its roles allow.
    #[serde(skip)]
    pub roles: RoleMappings,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

impl Organization {
    /// Tells whether its owners and admins operate the installation.
    #[must_use]
    pub fn operates(&self) -> bool {
        self.kind == OrganizationType::CoreOperator
    }
}

record! {
    Organization as "organization" by id, asked OrganizationQuery;
    audited in |organization| organization.platform_id.as_ref(), touched updated_at;
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct Member {
    /// The membership's id.
    pub id: MemberId,
    /// The organization.
    pub organization_id: OrganizationId,
    /// The user; once in an organization.
    pub user_id: UserId,
    /// Their roles.
    pub role: Roles,
    /// What they are granted or denied besides.
    #[serde(skip)]
    #[cfg_attr(
        any(test, feature = "proptest"),
        proptest(strategy = "crate::kernel::strategy::few()")
    )]
    pub grants: Vec<PermissionGrant>,
    /// When they joined.
    pub created_at: Timestamp,
}

record! {
    Member as "member" by id, asked MemberQuery;
    audited;
}

/// Questions about memberships.
#[derive(Clone, Debug, PartialEq)]
pub enum MemberQuery {
    /// The user's membership in the organization.
    Of(OrganizationId, UserId),
    /// All memberships of the user, oldest first.
    OfUser(UserId),
    /// The user's memberships as an owner.
    OwnedBy(UserId),
    /// All members of the organization, oldest first.
    OfOrganization(OrganizationId),
    /// The owners of the organization, oldest first.
    OwnersOf(OrganizationId),
    /// The members of the organization who have grants or denials, newest first.
    WithGrants(OrganizationId),
}

update_command! {
    /// Changes an organization.
    pub struct UpdateOrganization for Organization {
        set {
            /// The organization's name.
            name: OrganizationName,
            /// Its name in addresses.
            slug: Slug,
        }
        optional {
            /// Address of its picture.
            logo: Line<0, 2048>,
            /// What its members keep with it: an object of at most 16 KiB.
            metadata: OrganizationMetadata,
        }
    }
}

/// Creates an organization without a platform, for a service (interface: `POST /api/core/organizations`).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreateOrganization {
    /// The organization's name.
    pub name: OrganizationName,
    /// Its name in addresses.
    pub slug: Slug,
    /// Who owns it.
    pub owner_id: UserId,
    /// What it is for.
    #[serde(rename = "type", default = "tenant")]
    pub kind: OrganizationType,
}

const fn tenant() -> OrganizationType {
    OrganizationType::Tenant
}

/// Sets up an organization with its platform.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct SetUpOrganization {
    /// The name of the organization and its platform.
    pub name: OrganizationName,
    /// The slug of both.
    pub slug: Slug,
}

/// Creates the operator organization; every field may be left out. `ownerId` wins over `email`; without both, the
/// organization has no members and the service key alone operates the installation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Bootstrap {
    /// The organization's name. Default: `Core Operator`.
    pub name: Option<OrganizationName>,
    /// Its name in addresses; `core-operator` when not said.
    pub slug: Option<Slug>,
    /// Who shall own it.
    pub owner_id: Option<UserId>,
    /// The confirmed address of the owner.
    pub email: Option<Email>,
}
