//! Records as better-auth's clients know them: ids and ISO dates, and metadata that is an object in some answers and its text
//! in others.

use core_domain::iam::{Invitation, InvitationStatus, Member, Organization, User};
use core_domain::kernel::{
    Email, InvitationId, JsonText, Line, MemberId, Name, OrganizationId, Roles, Slug, Stored,
    Timestamp, UserId,
};
use core_domain::use_case::iam::organization::MemberOfOrganization;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// An organization.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct OrganizationView {
    id: OrganizationId,
    name: Name,
    slug: Slug,
    logo: Option<Line<0, 2048>>,
    created_at: Timestamp,
    /// An object in the answers to its creation and change, its text elsewhere.
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

    /// With its metadata as an object.
    pub(super) fn changed(organization: &Organization) -> Self {
        let metadata = organization.metadata.clone();
        Self::new(organization, metadata.unwrap_or_default())
    }

    /// With its metadata as text.
    pub(super) fn shown(organization: &Organization) -> Self {
        let metadata = organization
            .metadata
            .as_ref()
            .map(|text| JsonText::of(text.as_str()));
        Self::new(organization, metadata.unwrap_or_default())
    }
}

/// A membership.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct MemberView {
    id: MemberId,
    organization_id: OrganizationId,
    user_id: UserId,
    role: Roles,
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

/// Who a member is.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct MemberUser {
    id: UserId,
    name: Line<0, 255>,
    email: Email,
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

/// A membership and who it is.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct MemberWithUser {
    #[serde(flatten)]
    member: MemberView,
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

/// An invitation.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct InvitationView {
    id: InvitationId,
    organization_id: OrganizationId,
    email: Email,
    role: Roles,
    status: InvitationStatus,
    expires_at: Timestamp,
    created_at: Timestamp,
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
