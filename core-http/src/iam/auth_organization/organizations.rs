//! A person's organizations: created, listed, chosen, shown, changed, deleted.

use std::sync::Arc;

use core_domain::access::{SessionScope, authorize_person};
use core_domain::iam::{MAX_METADATA_BYTES, OrganizationMetadata, UpdateOrganization};
use core_domain::kernel::{Code, Line, Name, OrganizationId, PageRequest, Patch, Result, Slug};
use core_domain::port::UnitOfWork;
use core_domain::use_case::iam::organization::{
    self, FoundOrganization, NewOwnOrganization, OwnMembership, list_invitations, list_members,
};
use core_domain::use_case::registry::organization_removal;
use http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::super::config::Iam;
use super::super::cookies::set_session_cookie;
use super::super::status::Status;
use super::common::{OnOwnOrganization, Own, both, find, named, own, own_named};
use super::views::{InvitationView, MemberView, MemberWithUser, OrganizationView};
use crate::kernel::{Cx, Endpoint, ErrorStyle, Input, Output, post, with};

const NOT_A_MEMBER: [Code; 2] = [Code::OrganizationNotFound, Code::UserIsNotMember];

/// How many members and invitations an organization is shown with.
const SHOWN: u32 = 100;

pub(super) fn rows(iam: &Arc<Iam>) -> Vec<Endpoint> {
    let mut rows = vec![
        post("/api/auth/organization/create", "createOwnOrganization")
            .summary("Creates an organization that the caller owns; the session acts for it.")
            .errors(ErrorStyle::TopLevelCode)
            .refuses(&[Code::OrganizationAlreadyExists])
            .writes(create),
        post("/api/auth/organization/check-slug", "checkOrganizationSlug")
            .summary("Tells whether a slug is free.")
            .errors(ErrorStyle::TopLevelCode)
            .refuses(&[Code::OrganizationSlugTaken])
            .reads(check_slug),
        post("/api/auth/organization/set-active", "setActiveOrganization")
            .summary("Lets the session act for an organization of the caller's, or for none.")
            .errors(ErrorStyle::TopLevelCode)
            .refuses(&NOT_A_MEMBER)
            .writes(with(iam, set_active)),
        post("/api/auth/organization/update", "updateOwnOrganization")
            .summary("Changes an organization.")
            .errors(ErrorStyle::TopLevelCode)
            .refuses(&[
                Code::OrganizationNotFound,
                Code::NotAllowedToUpdateOrganization,
                Code::OrganizationSlugTaken,
            ])
            .refuses_as(Code::UserIsNotMember, StatusCode::BAD_REQUEST)
            .writes(update),
        post("/api/auth/organization/delete", "deleteOwnOrganization")
            .summary("Deletes an organization that has no platform.")
            .ends_access()
            .errors(ErrorStyle::TopLevelCode)
            .refuses(&[Code::NotAllowedToDeleteOrganization, Code::Conflict])
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
            row.refuses(&NOT_A_MEMBER).reads(full)
        },
    ));
    let get_names = ["getOwnOrganization", "getOwnOrganizationByPost"];
    rows.extend(both(
        "/api/auth/organization/get-organization",
        get_names,
        |row| {
            let row = row.summary("An organization; null when none is active.");
            row.refuses(&NOT_A_MEMBER).reads(shown)
        },
    ));
    rows
}

/// The body of a creation.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct CreateOwnOrganization {
    name: Name,
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
    session: SessionScope,
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
    let person = authorize_person(cx)?;
    let own = organization::create_own(cx, &person, &session, uow, new).await?;
    Ok(Output::new(CreatedOrganization {
        organization: OrganizationView::changed(&own.organization),
        members: vec![MemberView::new(&own.member)],
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
    let body = input.body;
    let id = match body.organization_id {
        Patch::Clear => {
            organization::deactivate(cx, &session, uow).await?;
            return Ok(Output::new(None));
        }
        Patch::Set(id) => Some(id),
        Patch::Keep => None,
    };
    let name = named(id, body.organization_slug);
    let own = own_named(cx, &session, uow, name, NOT_A_MEMBER).await?;
    let stored = organization::activate(cx, &own.person, &session, uow, &own.membership).await?;
    let view = OrganizationView::shown(&own.membership.organization);
    let answer = Output::new(Some(view));
    Ok(match iam.presented_token(&cx.headers) {
        Some(token) => set_session_cookie(&iam, answer, &stored, &token),
        None => answer,
    })
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

/// An organization with its newest invitations and its members.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct FullOrganization {
    #[serde(flatten)]
    organization: OrganizationView,
    invitations: Vec<InvitationView>,
    members: Vec<MemberWithUser>,
}

/// The organization that is asked for; nothing when none is named and none is active.
async fn meant(
    cx: &Cx,
    session: &SessionScope,
    uow: &mut dyn UnitOfWork,
    query: &WhichOrganization,
) -> Result<Option<OwnMembership>> {
    let name = named(
        query.organization_id.clone(),
        query.organization_slug.clone(),
    );
    let (_, found) = find(cx, session, uow, name).await?;
    if matches!(found, FoundOrganization::NoneActive) {
        return Ok(None);
    }
    let [none, foreign] = NOT_A_MEMBER;
    found.own(none, foreign).map(Some)
}

async fn full(
    cx: &Cx,
    session: SessionScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(), WhichOrganization>,
) -> Result<Output<Option<FullOrganization>>> {
    let query = input.query;
    let Some(own) = meant(cx, &session, uow, &query).await? else {
        return Ok(Output::new(None));
    };
    let page = PageRequest::first(query.members_limit.unwrap_or(SHOWN).clamp(1, SHOWN));
    let members = list_members(&own, uow, &page).await?;
    let invitations = list_invitations(&own, uow, SHOWN).await?;
    Ok(Output::new(Some(FullOrganization {
        organization: OrganizationView::shown(&own.organization),
        invitations: invitations.iter().map(|i| InvitationView::new(i)).collect(),
        members: members.items.iter().map(MemberWithUser::new).collect(),
    })))
}

async fn shown(
    cx: &Cx,
    session: SessionScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(), WhichOrganization>,
) -> Result<Output<Option<OrganizationView>>> {
    let query = input.query;
    let Some(own) = meant(cx, &session, uow, &query).await? else {
        return Ok(Output::new(None));
    };
    Ok(Output::new(Some(OrganizationView::shown(
        &own.organization,
    ))))
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
    name: Option<Name>,
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

impl OnOwnOrganization for UpdateOwnOrganization {
    const REFUSALS: [Code; 2] = NOT_A_MEMBER;

    fn organization_id(&self) -> Option<&OrganizationId> {
        self.organization_id.as_ref()
    }
}

async fn update(
    cx: &Cx,
    own: Own,
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
    let changed = organization::update_own(cx, &own.person, uow, &own.membership, command).await?;
    Ok(Output::new(OrganizationView::changed(&changed)))
}

/// The body of a deletion.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct DeleteOwnOrganization {
    organization_id: OrganizationId,
}

async fn delete(
    cx: &Cx,
    session: SessionScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), DeleteOwnOrganization>,
) -> Result<Output<OrganizationView>> {
    let own = own(
        cx,
        &session,
        uow,
        Some(input.body.organization_id),
        NOT_A_MEMBER,
    )
    .await?;
    let gone = OrganizationView::shown(&own.membership.organization);
    organization_removal::delete(cx, &own.person, uow, &own.membership).await?;
    Ok(Output::new(gone))
}
