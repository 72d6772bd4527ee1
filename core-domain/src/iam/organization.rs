//! Organizations and their members.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{PermissionGrant, RoleMappings};
use crate::kernel::{
    BoundedJson, Email, JsonText, Line, MemberId, Name, OrganizationId, OrganizationName,
    PlatformId, Roles, Slug, Timestamp, UserId, record, text_enum, update_command,
};

/// Maximum size of the metadata of an organization, in bytes of JSON.
pub const MAX_METADATA_BYTES: usize = 16 * 1024;

/// The metadata of an organization in a request body.
pub type OrganizationMetadata = BoundedJson<MAX_METADATA_BYTES>;

text_enum! {
    /// The type of an organization.
    pub enum OrganizationType {
        /// Owns one platform. The default.
        Tenant = "tenant",
        /// Operates the installation. At most one organization has this type.
        CoreOperator = "core-operator",
    }
}

/// An organization, which owns a platform or operates the installation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct Organization {
    /// The unique id of the organization.
    pub id: OrganizationId,
    /// The display name of the organization.
    pub name: Name,
    /// The name of the organization in URLs, unique among all organizations.
    pub slug: Slug,
    /// The type of the organization.
    #[serde(rename = "type")]
    pub kind: OrganizationType,
    /// The platform that the organization owns; `null` if it has none.
    pub platform_id: Option<PlatformId>,
    /// The URL of the logo; `null` if none is set.
    pub logo: Option<Line<0, 2048>>,
    /// Custom data of the organization's members: a JSON object, or `null` if none is set.
    #[cfg_attr(
        any(test, feature = "proptest"),
        proptest(strategy = "crate::kernel::strategy::opt_json_text()")
    )]
    pub metadata: Option<JsonText>,
    /// The role mappings, which override the built-in roles.
    #[serde(skip)]
    pub roles: RoleMappings,
    /// The time at which the organization was created.
    pub created_at: Timestamp,
    /// The time of the last change.
    pub updated_at: Timestamp,
}

impl Organization {
    /// Returns whether the owners and admins of this organization operate the installation.
    #[must_use]
    pub fn operates(&self) -> bool {
        self.kind == OrganizationType::CoreOperator
    }
}

record! {
    Organization as "organization" by id, asked OrganizationQuery;
    audited in |organization| organization.platform_id.as_ref(), touched updated_at;
}

/// Queries on organizations.
#[derive(Clone, Debug, PartialEq)]
pub enum OrganizationQuery {
    /// The organization with this slug.
    WithSlug(Slug),
    /// The organization that owns this platform.
    OfPlatform(PlatformId),
    /// The organizations of this type, oldest first.
    OfType(OrganizationType),
}

/// The membership of a user in an organization.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct Member {
    /// The unique id of the membership.
    pub id: MemberId,
    /// The organization that the user belongs to.
    pub organization_id: OrganizationId,
    /// The user. A user has at most one membership in an organization.
    pub user_id: UserId,
    /// The roles of the user in the organization, comma-separated.
    pub role: Roles,
    /// The permissions that are granted or denied to this member in addition to the roles.
    #[serde(skip)]
    #[cfg_attr(
        any(test, feature = "proptest"),
        proptest(strategy = "crate::kernel::strategy::few()")
    )]
    pub grants: Vec<PermissionGrant>,
    /// The time at which the user joined the organization.
    pub created_at: Timestamp,
}

record! {
    Member as "member" by id, asked MemberQuery;
    audited;
}

/// Queries on memberships.
#[derive(Clone, Debug, PartialEq)]
pub enum MemberQuery {
    /// The membership of the user in the organization.
    Of(OrganizationId, UserId),
    /// All memberships of the user, oldest first.
    OfUser(UserId),
    /// The memberships in which the user is an owner.
    OwnedBy(UserId),
    /// All members of the organization, oldest first.
    OfOrganization(OrganizationId),
    /// The owners of the organization, oldest first.
    OwnersOf(OrganizationId),
    /// The members of the organization with at least one grant or denial, newest first.
    WithGrants(OrganizationId),
}

update_command! {
    /// Changes fields of an organization. Omitted fields stay unchanged.
    pub struct UpdateOrganization for Organization {
        set {
            /// The new display name.
            name: OrganizationName,
            /// The new name in URLs. Must be unique among all organizations.
            slug: Slug,
        }
        optional {
            /// The URL of the logo; `null` removes it.
            logo: Line<0, 2048>,
            /// Custom data: a JSON object of at most 16 KiB. `null` removes it.
            metadata: OrganizationMetadata,
        }
    }
}

/// Creates an organization without a platform.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreateOrganization {
    /// The display name of the organization.
    pub name: OrganizationName,
    /// The name of the organization in URLs. Must be unique.
    pub slug: Slug,
    /// The id of the user who will own the organization.
    pub owner_id: UserId,
    /// The type of the organization. Default: `tenant`.
    #[serde(rename = "type", default = "tenant")]
    pub kind: OrganizationType,
}

const fn tenant() -> OrganizationType {
    OrganizationType::Tenant
}

/// Creates an organization together with its platform.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct SetUpOrganization {
    /// The display name of the organization and of its platform.
    pub name: OrganizationName,
    /// The slug of the organization and of its platform. Must be unique.
    pub slug: Slug,
}

/// Creates the operator organization. All fields are optional. If both `ownerId` and `email` are set, `ownerId` is
/// used. Without both, the organization has no members, and only the service key can operate the installation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Bootstrap {
    /// The display name of the organization. Default: `Core Operator`.
    pub name: Option<OrganizationName>,
    /// The name of the organization in URLs. Default: `core-operator`.
    pub slug: Option<Slug>,
    /// The id of the user who will own the organization.
    pub owner_id: Option<UserId>,
    /// The verified email address of the user who will own the organization.
    pub email: Option<Email>,
}
