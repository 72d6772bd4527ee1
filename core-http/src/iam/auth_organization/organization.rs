//! The caller's organizations: creating, listing, selecting, reading, updating and deleting them.

use std::sync::Arc;

use core_domain::access::{
    MemberScope, MembershipScope, NewOrganizationScope, SessionScope, authorize_person,
};
use core_domain::iam::{MAX_METADATA_BYTES, OrganizationMetadata, UpdateOrganization};
use core_domain::kernel::{
    Code, Line, OrganizationId, OrganizationName, PageQuery, Patch, Result, Slug, permission,
};
use core_domain::port::UnitOfWork;
use core_domain::use_case::iam::organization::{
    self, NewOwnOrganization, list_invitations, list_members,
};
use core_domain::use_case::registry::tenant;
use http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::super::config::Iam;
use super::super::cookies::set_session_cookie;
use super::super::status::Status;
use super::common::{NamesOrganization, get_and_post, names_organization};
use super::views::{InvitationView, MemberView, MemberWithUser, OrganizationView};
use crate::kernel::{BySession, Cx, Endpoint, ErrorStyle, Input, Output, post, with};

/// Maximum number of members and of invitations in a full organization.
const MAX_LISTED: u32 = 100;

pub(super) fn rows(iam: &Arc<Iam>) -> Vec<Endpoint> {
    let mut rows = vec![
        post("/api/auth/organization/create", "createOwnOrganization")
            .summary("Creates an organization that the caller owns.")
            .description(
                "The organization has no platform. The session acts for it from then on, unless \
                 `keepCurrentActiveOrganization` is set. A slug that is already taken is refused.",
            )
            .errors(ErrorStyle::TopLevelCode)
            .refuses(&[Code::OrganizationAlreadyExists, Code::LimitReached])
            .writes(create),
        post("/api/auth/organization/check-slug", "checkOrganizationSlug")
            .summary("Checks whether a slug is available.")
            .description(
                "Returns success if no organization has the slug. The slug is not reserved for \
                 the caller.",
            )
            .errors(ErrorStyle::TopLevelCode)
            .refuses(&[Code::OrganizationSlugTaken])
            .reads(check_slug),
        post("/api/auth/organization/set-active", "setActiveOrganization")
            .summary("Selects the active organization of the session.")
            .description(
                "The session acts for the organization from the next request on, also if its \
                 platform is suspended. `organizationId: null` clears the active organization. \
                 When an organization is selected, the session cookie is set again.",
            )
            .errors(ErrorStyle::TopLevelCode)
            .replaces_code(Code::NoActiveOrganization, Code::OrganizationNotFound)
            .replaces_code(Code::NotFound, Code::UserIsNotMember)
            .writes(with(iam, set_active)),
        post("/api/auth/organization/update", "updateOwnOrganization")
            .summary("Updates an organization.")
            .description(
                "Changes the fields that are present and keeps the others. The change is recorded \
                 in the audit log.",
            )
            .errors(ErrorStyle::TopLevelCode)
            .refuses(&[Code::OrganizationSlugTaken])
            .replaces_code(Code::NoActiveOrganization, Code::OrganizationNotFound)
            .replaces_code(Code::NotFound, Code::UserIsNotMember)
            .replaces_code(Code::Forbidden, Code::NotAllowedToUpdateOrganization)
            .refuses_as(Code::UserIsNotMember, StatusCode::BAD_REQUEST)
            .writes(update),
        post("/api/auth/organization/delete", "deleteOwnOrganization")
            .summary("Deletes an organization without platforms.")
            .description(
                "Deletes the organization with its memberships and invitations; sessions no \
                 longer act for it. An organization with a platform is refused; delete the \
                 platform first. The operator organization cannot be deleted.",
            )
            .ends_access()
            .errors(ErrorStyle::TopLevelCode)
            .refuses(&[Code::Conflict])
            .replaces_code(Code::NotFound, Code::UserIsNotMember)
            .replaces_code(Code::Forbidden, Code::NotAllowedToDeleteOrganization)
            .refuses_as(Code::UserIsNotMember, StatusCode::BAD_REQUEST)
            .writes(delete),
    ];
    let list_names = ["listOwnOrganizations", "listOwnOrganizationsByPost"];
    rows.extend(get_and_post(
        "/api/auth/organization/list",
        list_names,
        |row| {
            row.summary("Lists the caller's organizations.")
            .description(
                "Returns at most 100 organizations, the one that the caller joined first at the \
                 beginning.",
            )
            .reads(list)
        },
    ));
    let full_names = ["getFullOrganization", "getFullOrganizationByPost"];
    rows.extend(get_and_post(
        "/api/auth/organization/get-full-organization",
        full_names,
        |row| {
            let row = row.summary("Returns an organization with its members and invitations.")
            .description(
                "Returns `null` if no organization is named and none is active. Contains at most \
                 100 members, oldest first, and the 100 newest invitations. The invitations are \
                 empty for callers who may not read them.",
            );
            row.replaces_code(Code::NotFound, Code::UserIsNotMember)
                .reads(full)
        },
    ));
    let get_names = ["getOwnOrganization", "getOwnOrganizationByPost"];
    rows.extend(get_and_post(
        "/api/auth/organization/get-organization",
        get_names,
        |row| {
            let row = row
                .summary("Returns an organization.")
                .description("Returns `null` if no organization is named and none is active.");
            row.refuses(&[Code::PlatformSuspended])
                .replaces_code(Code::NotFound, Code::UserIsNotMember)
                .reads(get)
        },
    ));
    rows
}

/// The new organization.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct CreateOwnOrganization {
    /// The name of the organization.
    name: OrganizationName,
    /// The slug of the organization, unique in the installation.
    slug: Slug,
    /// URL of the logo, at most 2048 characters. Default: none.
    logo: Option<Line<0, 2048>>,
    /// Free-form data of the organization, at most 16 KiB of JSON. Default: none.
    #[schemars(
        with = "Option<Map<String, Value>>",
        extend("x-maxBytes" = MAX_METADATA_BYTES)
    )]
    metadata: Option<OrganizationMetadata>,
    /// Whether the session keeps its active organization. Default: false.
    #[serde(default)]
    keep_current_active_organization: bool,
}

/// The new organization and its owner.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct CreatedOrganization {
    #[serde(flatten)]
    organization: OrganizationView,
    /// The membership of the owner.
    members: Vec<MemberView>,
}

async fn create(
    cx: &Cx,
    scope: NewOrganizationScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), CreateOwnOrganization>,
) -> Result<Output<CreatedOrganization>> {
    let body = input.body;
    let new = NewOwnOrganization {
        name: body.name,
        slug: body.slug,
        logo: body.logo,
        metadata: body.metadata,
        keep_active: body.keep_current_active_organization,
    };
    let own = organization::create_own(cx, &scope, uow, new).await?;
    Ok(Output::new(CreatedOrganization {
        organization: OrganizationView::with_metadata_object(&own.organization),
        members: vec![MemberView::new(&own.owner)],
    }))
}

/// The slug to check.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct CheckSlug {
    /// The slug to check for availability.
    slug: Slug,
}

async fn check_slug(
    cx: &Cx,
    _: SessionScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), CheckSlug>,
) -> Result<Output<Status>> {
    organization::check_slug(&authorize_person(cx)?, uow, &input.body.slug).await?;
    Ok(Output::new(Status::OK))
}

async fn list(
    cx: &Cx,
    _: SessionScope,
    uow: &mut dyn UnitOfWork,
    _: Input,
) -> Result<Output<Vec<OrganizationView>>> {
    let person = authorize_person(cx)?;
    let organizations = organization::list_own_organizations(&person, uow).await?;
    let views = organizations
        .iter()
        .map(|o| OrganizationView::with_metadata_text(o));
    Ok(Output::new(views.collect()))
}

/// The organization to select.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SetActive {
    /// The id of the organization; `null` clears the active organization. Takes precedence over the slug.
    #[serde(default)]
    organization_id: Patch<OrganizationId>,
    /// The slug of the organization. Ignored if the id is present.
    organization_slug: Option<Slug>,
}

async fn set_active(
    cx: &Cx,
    iam: Arc<Iam>,
    session: SessionScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), SetActive>,
) -> Result<Output<Option<OrganizationView>>> {
    if matches!(input.body.organization_id, Patch::Clear) {
        organization::deactivate(cx, &session, uow).await?;
        return Ok(Output::new(None));
    }
    let organization = input.body.organization_ref();
    let (organization, stored) = organization::activate(cx, &session, uow, organization).await?;
    let answer = Output::new(Some(OrganizationView::with_metadata_text(&organization)));
    Ok(match iam.presented_token(&cx.headers) {
        Some(token) => set_session_cookie(&iam, answer, &stored, &token),
        None => answer,
    })
}

impl NamesOrganization for SetActive {
    fn id(&self) -> Option<&OrganizationId> {
        match &self.organization_id {
            Patch::Set(id) => Some(id),
            Patch::Keep | Patch::Clear => None,
        }
    }

    fn slug(&self) -> Option<&Slug> {
        self.organization_slug.as_ref()
    }
}

/// Selects the organization. Default: the active organization.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct OrganizationSelector {
    /// The id of the organization. Takes precedence over the slug.
    organization_id: Option<OrganizationId>,
    /// The slug of the organization.
    organization_slug: Option<Slug>,
    /// The maximum number of members to return. Larger values are reduced to 100. Default: 100.
    #[schemars(range(min = 1))]
    members_limit: Option<u32>,
}

/// An organization with its members and invitations.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct FullOrganization {
    #[serde(flatten)]
    organization: OrganizationView,
    /// The newest invitations; empty for callers who may not read them.
    invitations: Vec<InvitationView>,
    /// The members and their users, oldest membership first.
    members: Vec<MemberWithUser>,
}

impl NamesOrganization for OrganizationSelector {
    fn id(&self) -> Option<&OrganizationId> {
        self.organization_id.as_ref()
    }

    fn slug(&self) -> Option<&Slug> {
        self.organization_slug.as_ref()
    }
}

async fn full(
    _: &Cx,
    scope: BySession<Option<MembershipScope<permission::MemberRead>>>,
    uow: &mut dyn UnitOfWork,
    input: Input<(), OrganizationSelector>,
) -> Result<Output<Option<FullOrganization>>> {
    let Some(scope) = &*scope else {
        return Ok(Output::new(None));
    };
    let members = input
        .query
        .members_limit
        .unwrap_or(MAX_LISTED)
        .clamp(1, MAX_LISTED);
    let members = list_members(scope, uow, members).await?;
    let invitations = match scope.authorize() {
        Ok(scope) => {
            let first = PageQuery::first(MAX_LISTED).without_count();
            list_invitations(&scope, uow, &first).await?.items
        }
        Err(_) => Vec::new(),
    };
    Ok(Output::new(Some(FullOrganization {
        organization: OrganizationView::with_metadata_text(scope.organization()),
        invitations: invitations.iter().map(|i| InvitationView::new(i)).collect(),
        members: members.iter().map(MemberWithUser::new).collect(),
    })))
}

async fn get(
    _: &Cx,
    scope: BySession<Option<MemberScope>>,
    _: &mut dyn UnitOfWork,
    _: Input<(), OrganizationSelector>,
) -> Result<Output<Option<OrganizationView>>> {
    let scope = scope.scope.as_ref();
    let view = scope.map(|scope| OrganizationView::with_metadata_text(scope.organization()));
    Ok(Output::new(view))
}

/// The organization and its new values.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct UpdateOwnOrganization {
    /// The fields to change.
    data: OrganizationChange,
    /// The organization. Default: the active organization.
    organization_id: Option<OrganizationId>,
}

/// The fields of the organization to change.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
struct OrganizationChange {
    /// The new name. If absent, the name is kept.
    name: Option<OrganizationName>,
    /// The new slug, unique in the installation. If absent, the slug is kept.
    slug: Option<Slug>,
    /// URL of the logo, at most 2048 characters. `null` removes the logo; if absent, it is kept.
    #[serde(default)]
    logo: Patch<Line<0, 2048>>,
    /// Free-form data, at most 16 KiB of JSON. `null` removes it; if absent, it is kept.
    #[serde(default)]
    #[schemars(
        with = "Patch<Map<String, Value>>",
        extend("x-maxBytes" = MAX_METADATA_BYTES)
    )]
    metadata: Patch<OrganizationMetadata>,
}

names_organization!(UpdateOwnOrganization);

async fn update(
    cx: &Cx,
    scope: BySession<MembershipScope<permission::OrganizationUpdate>>,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), UpdateOwnOrganization>,
) -> Result<Output<OrganizationView>> {
    let data = input.body.data;
    let command = UpdateOrganization {
        name: data.name,
        slug: data.slug,
        logo: data.logo,
        metadata: data.metadata,
    };
    let changed = organization::update(cx, &scope, uow, command).await?;
    Ok(Output::new(OrganizationView::with_metadata_object(
        &changed,
    )))
}

/// The organization to delete.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct DeleteOwnOrganization {
    /// The id of the organization.
    organization_id: OrganizationId,
}

impl NamesOrganization for DeleteOwnOrganization {
    fn id(&self) -> Option<&OrganizationId> {
        Some(&self.organization_id)
    }
}

async fn delete(
    cx: &Cx,
    scope: BySession<MembershipScope<permission::OrganizationDelete>>,
    uow: &mut dyn UnitOfWork,
    _: Input<(), (), DeleteOwnOrganization>,
) -> Result<Output<OrganizationView>> {
    tenant::delete(cx, &scope, uow).await?;
    Ok(Output::new(OrganizationView::with_metadata_text(
        scope.organization(),
    )))
}
