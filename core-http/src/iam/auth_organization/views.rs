//! Records in the format of better-auth's clients: ids and ISO dates. Metadata is an object in some responses and JSON
//! text in others.

use core_domain::iam::{Invitation, InvitationStatus, Member, Organization, User};
use core_domain::kernel::{
    Email, InvitationId, JsonText, Line, MemberId, Name, OrganizationId, Roles, Slug, Stored,
    Timestamp, UserId,
};
use core_domain::use_case::iam::organization::MemberOfOrganization;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// An organization of the caller.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct OrganizationView {
    /// The id of the organization.
    id: OrganizationId,
    /// The name of the organization.
    name: Name,
    /// The slug of the organization, unique in the installation.
    slug: Slug,
    /// URL of the logo; `null` without one.
    logo: Option<Line<0, 2048>>,
    /// The time at which the organization was created.
    created_at: Timestamp,
    /// Free-form data: an object in responses to create and update, JSON text in all others. `null` without data.
    #[schemars(with = "Value")]
    metadata: JsonText,
}

impl OrganizationView {
    fn new(organization: &Organization, metadata: JsonText) -> Self {
        Self {
            id: organization.id.clone(),
            name: organization.name.clone(),
            slug: organization.slug.clone(),
            logo: organization.logo.clone(),
            created_at: organization.created_at,
            metadata,
        }
    }

    /// Creates the view with the metadata as an object.
    pub(super) fn with_metadata_object(organization: &Organization) -> Self {
        let metadata = organization.metadata.clone();
        Self::new(organization, metadata.unwrap_or_default())
    }

    /// Creates the view with the metadata as JSON text.
    pub(super) fn with_metadata_text(organization: &Organization) -> Self {
        let metadata = organization
            .metadata
            .as_ref()
            .map(|text| JsonText::of(text.as_str()));
        Self::new(organization, metadata.unwrap_or_default())
    }
}

/// A membership in an organization.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct MemberView {
    /// The id of the membership.
    id: MemberId,
    /// The organization of the membership.
    organization_id: OrganizationId,
    /// The user who is the member.
    user_id: UserId,
    /// The roles of the member, separated by commas.
    role: Roles,
    /// The time at which the user joined.
    created_at: Timestamp,
}

impl MemberView {
    pub(super) fn new(member: &Member) -> Self {
        Self {
            id: member.id.clone(),
            organization_id: member.organization_id.clone(),
            user_id: member.user_id.clone(),
            role: member.role.clone(),
            created_at: member.created_at,
        }
    }
}

/// The user of a membership.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct MemberUser {
    /// The id of the user.
    id: UserId,
    /// The name of the user; may be empty.
    name: Line<0, 255>,
    /// The email address of the user.
    email: Email,
    /// URL of the user's picture; `null` without one.
    image: Option<Line<0, 2048>>,
}

impl MemberUser {
    fn new(user: &Stored<User>) -> Self {
        Self {
            id: user.id.clone(),
            name: user.name.clone(),
            email: user.email.clone(),
            image: user.image.clone(),
        }
    }
}

/// A membership and its user.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct MemberWithUser {
    #[serde(flatten)]
    member: MemberView,
    /// The user who is the member; `null` if the user was deleted.
    user: Option<MemberUser>,
}

impl MemberWithUser {
    pub(super) fn new(found: &MemberOfOrganization) -> Self {
        Self {
            member: MemberView::new(&found.member),
            user: found.user.as_ref().map(MemberUser::new),
        }
    }
}

/// An invitation to an organization.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct InvitationView {
    /// The id of the invitation.
    id: InvitationId,
    /// The organization that the person is invited to.
    organization_id: OrganizationId,
    /// The email address of the invited person.
    email: Email,
    /// The roles that the person gets, separated by commas.
    role: Roles,
    /// The status of the invitation.
    status: InvitationStatus,
    /// The time at which the invitation expires.
    expires_at: Timestamp,
    /// The time at which the invitation was created.
    created_at: Timestamp,
    /// The user who sent the invitation.
    inviter_id: UserId,
}

impl InvitationView {
    pub(super) fn new(invitation: &Invitation) -> Self {
        Self {
            id: invitation.id.clone(),
            organization_id: invitation.organization_id.clone(),
            email: invitation.email.clone(),
            role: invitation.role.clone(),
            status: invitation.status,
            expires_at: invitation.expires_at,
            created_at: invitation.created_at,
            inviter_id: invitation.inviter_id.clone(),
        }
    }
}
