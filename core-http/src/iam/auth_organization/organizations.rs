//! A person's organizations: created, listed, chosen, shown, changed, deleted.

use std::sync::Arc;

use core_domain::access::{
    MemberScope, MembershipScope, NewOrganizationScope, SessionScope, authorize_person,
};
use core_domain::iam::{MAX_METADATA_BYTES, OrganizationMetadata, UpdateOrganization};
use core_domain::kernel::{
    Code, Line, OrganizationId, OrganizationName, PageRequest, Patch, Result, Slug, grant,
};
use core_domain::port::UnitOfWork;
use core_domain::use_case::iam::organization::{
    self, NewOwnOrganization, list_invitations, list_members,
};
use core_domain::use_case::registry::organization_removal;
use http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::super::config::Iam;
use super::super::cookies::set_session_cookie;
use super::super::status::Status;
use super::common::{NamesOrganization, both, names_organization};
use super::views::{InvitationView, MemberView, MemberWithUser, OrganizationView};
use crate::kernel::{BySession, Cx, Endpoint, ErrorStyle, Input, Output, post, with};

/// How many members and invitations an organization is shown with.
const SHOWN: u32 = 100;

pub(super) fn rows(iam: &Arc<Iam>) -> Vec<Endpoint> {
    let mut rows = vec![
        post("/api/auth/organization/create", "createOwnOrganization")
            .summary("Creates an organization that the caller owns; the session acts for it.")
            .errors(ErrorStyle::TopLevelCode)
            .refuses(&[Code::OrganizationAlreadyExists, Code::LimitReached])
            .writes(create),
        post("/api/auth/organization/check-slug", "checkOrganizationSlug")
            .summary("Tells whether a slug is free.")
            .errors(ErrorStyle::TopLevelCode)
            .refuses(&[Code::OrganizationSlugTaken])
            .reads(check_slug),
        post("/api/auth/organization/set-active", "setActiveOrganization")
            .summary("Lets the session act for an organization of the caller's, or for none.")
            .errors(ErrorStyle::TopLevelCode)
            .rewords(Code::NoActiveOrganization, Code::OrganizationNotFound)
            .rewords(Code::NotFound, Code::UserIsNotMember)
            .writes(with(iam, set_active)),
        post("/api/auth/organization/update", "updateOwnOrganization")
            .summary("Changes an organization.")
            .errors(ErrorStyle::TopLevelCode)
            .refuses(&[Code::OrganizationSlugTaken])
            .rewords(Code::NoActiveOrganization, Code::OrganizationNotFound)
            .rewords(Code::NotFound, Code::UserIsNotMember)
            .rewords(Code::Forbidden, Code::NotAllowedToUpdateOrganization)
            .refuses_as(Code::UserIsNotMember, StatusCode::BAD_REQUEST)
            .writes(update),
        post("/api/auth/organization/delete", "deleteOwnOrganization")
            .summary("Deletes an organization that has no platform.")
            .ends_access()
            .errors(ErrorStyle::TopLevelCode)
            .refuses(&[Code::Conflict])
            .rewords(Code::NotFound, Code::UserIsNotMember)
            .rewords(Code::Forbidden, Code::NotAllowedToDeleteOrganization)
            .refuses_as(Code::UserIsNotMember, StatusCode::BAD_REQUEST)
            .writes(delete),
    ];
    let list_names = ["listOwnOrganizations", "listOwnOrganizationsByPost"];
    rows.extend(both("/api/auth/organization/list", list_names, |row| {
        row.summary("The caller's organizations.").reads(list)
    }));
    let full_names = ["getFullOrganization", "getFullOrganizationByPost"];
    rows.extend(both(
        "/api/auth/organization/get-full-organization",
        full_names,
        |row| {
            let row = row.summary(
                "An organization with its members and invitations; null when none is active.",
            );
            row.rewords(Code::NotFound, Code::UserIsNotMember)
                .reads(full)
        },
    ));
    let get_names = ["getOwnOrganization", "getOwnOrganizationByPost"];
    rows.extend(both(
        "/api/auth/organization/get-organization",
        get_names,
        |row| {
            let row = row.summary("An organization; null when none is active.");
            row.refuses(&[Code::PlatformSuspended])
                .rewords(Code::NotFound, Code::UserIsNotMember)
                .reads(shown)
        },
    ));
    rows
}

/// The body of a creation.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct CreateOwnOrganization {
    name: OrganizationName,
    slug: Slug,
    /// Address of its picture.
    logo: Option<Line<0, 2048>>,
    /// Anything its members keep with it, of at most 16 KiB.
    #[schemars(
        with = "Option<Map<String, Value>>",
        extend("x-maxBytes" = MAX_METADATA_BYTES)
    )]
    metadata: Option<OrganizationMetadata>,
    /// The session goes on to act for what it acts for.
    #[serde(default)]
    keep_current_active_organization: bool,
}

/// A new organization.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct CreatedOrganization {
    #[serde(flatten)]
    organization: OrganizationView,
    /// Its owner.
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
        organization: OrganizationView::changed(&own.organization),
        members: vec![MemberView::new(&own.owner)],
    }))
}

/// The body of a question for a slug.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct CheckSlug {
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
    let views = organizations.iter().map(|o| OrganizationView::shown(o));
    Ok(Output::new(views.collect()))
}

/// The body of a choice.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SetActive {
    /// `null` for none.
    #[serde(default)]
    organization_id: Patch<OrganizationId>,
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
    let answer = Output::new(Some(OrganizationView::shown(&organization)));
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

/// Which organization; the active one when none is named.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct WhichOrganization {
    organization_id: Option<OrganizationId>,
    organization_slug: Option<Slug>,
    /// How many members are shown.
    #[schemars(range(min = 1))]
    members_limit: Option<u32>,
}

/// An organization with its newest invitations, for those who may read them, and its members.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct FullOrganization {
    #[serde(flatten)]
    organization: OrganizationView,
    invitations: Vec<InvitationView>,
    members: Vec<MemberWithUser>,
}

impl NamesOrganization for WhichOrganization {
    fn id(&self) -> Option<&OrganizationId> {
        self.organization_id.as_ref()
    }

    fn slug(&self) -> Option<&Slug> {
        self.organization_slug.as_ref()
    }
}

async fn full(
    _: &Cx,
    scope: BySession<Option<MembershipScope<grant::MemberRead>>>,
    uow: &mut dyn UnitOfWork,
    input: Input<(), WhichOrganization>,
) -> Result<Output<Option<FullOrganization>>> {
    let Some(scope) = &*scope else {
        return Ok(Output::new(None));
    };
    let members = input.query.members_limit.unwrap_or(SHOWN).clamp(1, SHOWN);
    let members = list_members(scope, uow, members).await?;
    let invitations = match scope.also() {
        Ok(scope) => {
            list_invitations(&scope, uow, &PageRequest::first(SHOWN))
                .await?
                .items
        }
        Err(_) => Vec::new(),
    };
    Ok(Output::new(Some(FullOrganization {
        organization: OrganizationView::shown(scope.organization()),
        invitations: invitations.iter().map(|i| InvitationView::new(i)).collect(),
        members: members.iter().map(MemberWithUser::new).collect(),
    })))
}

async fn shown(
    _: &Cx,
    scope: BySession<Option<MemberScope>>,
    _: &mut dyn UnitOfWork,
    _: Input<(), WhichOrganization>,
) -> Result<Output<Option<OrganizationView>>> {
    let scope = scope.scope.as_ref();
    let view = scope.map(|scope| OrganizationView::shown(scope.organization()));
    Ok(Output::new(view))
}

/// The body of a change.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct UpdateOwnOrganization {
    data: OrganizationChange,
    organization_id: Option<OrganizationId>,
}

/// What is changed.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
struct OrganizationChange {
    name: Option<OrganizationName>,
    slug: Option<Slug>,
    /// Address of its picture; `null` takes it away.
    #[serde(default)]
    logo: Patch<Line<0, 2048>>,
    /// Anything its members keep with it, of at most 16 KiB; `null` takes it away.
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
    scope: BySession<MembershipScope<grant::OrganizationUpdate>>,
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
    Ok(Output::new(OrganizationView::changed(&changed)))
}

/// The body of a deletion.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct DeleteOwnOrganization {
    organization_id: OrganizationId,
}

impl NamesOrganization for DeleteOwnOrganization {
    fn id(&self) -> Option<&OrganizationId> {
        Some(&self.organization_id)
    }
}

async fn delete(
    cx: &Cx,
    scope: BySession<MembershipScope<grant::OrganizationDelete>>,
    uow: &mut dyn UnitOfWork,
    _: Input<(), (), DeleteOwnOrganization>,
) -> Result<Output<OrganizationView>> {
    organization_removal::delete(cx, &scope, uow).await?;
    Ok(Output::new(OrganizationView::shown(scope.organization())))
}
