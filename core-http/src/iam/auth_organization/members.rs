//! The members of a person's organizations.

use core_domain::access::SessionScope;
use core_domain::kernel::{
    Code, Email, MemberId, OrganizationId, PageRequest, PermissionPattern, Result, Role, Roles,
};
use core_domain::port::UnitOfWork;
use core_domain::use_case::iam::organization::{self, MemberName, list_members};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use super::super::bounds::MAX_PERMISSION_QUERY;
use super::common::{OnOwnOrganization, Own, both, own};
use super::views::{MemberView, MemberWithUser};
use crate::kernel::{Cx, Endpoint, ErrorStyle, Input, Output, post};

const OF_LIST: [Code; 2] = [Code::NoActiveOrganization, Code::NotMemberOfThis];
const OF_CHANGE: [Code; 2] = [Code::NoActiveOrganization, Code::MemberNotFound];

/// How many members a list has at most.
const MOST: u32 = 100;

pub(super) fn rows() -> Vec<Endpoint> {
    let mut rows = vec![
        post(
            "/api/auth/organization/has-permission",
            "hasOrganizationPermission",
        )
        .summary("Tells whether the caller has these permissions in an organization.")
        .errors(ErrorStyle::TopLevelCode)
        .refuses(&OF_LIST)
        .reads(has_permission),
        post(
            "/api/auth/organization/update-member-role",
            "updateMemberRole",
        )
        .summary("Gives a member other roles; one owner always stays.")
        .errors(ErrorStyle::TopLevelCode)
        .refuses(&OF_CHANGE)
        .refuses(&[
            Code::NotAllowedToUpdateMember,
            Code::OrganizationWithoutOwner,
            Code::RoleNotFound,
            Code::StepUpRequired,
        ])
        .writes(update_role),
        post("/api/auth/organization/remove-member", "removeMember")
            .summary("Removes a member, named by id or address; one owner always stays.")
            .errors(ErrorStyle::TopLevelCode)
            .refuses(&OF_CHANGE)
            .refuses(&[
                Code::NotAllowedToDeleteMember,
                Code::OnlyOwner,
                Code::StepUpRequired,
            ])
            .writes(remove),
        post("/api/auth/organization/leave", "leaveOrganization")
            .summary("Leaves an organization; its only owner cannot.")
            .ends_access()
            .errors(ErrorStyle::TopLevelCode)
            .refuses(&OF_CHANGE)
            .refuses(&[Code::OnlyOwner])
            .writes(leave),
    ];
    let names = ["listMembers", "listMembersByPost"];
    rows.extend(both("/api/auth/organization/list-members", names, |row| {
        row.summary("The members of an organization.")
            .refuses(&OF_LIST)
            .reads(list)
    }));
    let names = ["getActiveMember", "getActiveMemberByPost"];
    rows.extend(both(
        "/api/auth/organization/get-active-member",
        names,
        |row| {
            let row = row.summary("The caller in the active organization.");
            row.refuses(&OF_LIST).reads(active)
        },
    ));
    let names = ["getActiveMemberRole", "getActiveMemberRoleByPost"];
    rows.extend(both(
        "/api/auth/organization/get-active-member-role",
        names,
        |row| {
            let row = row.summary("The caller's roles in the active organization.");
            row.refuses(&OF_LIST).reads(active_role)
        },
    ));
    rows
}

/// In which direction a list is sorted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum SortDirection {
    #[default]
    Asc,
    Desc,
}

/// By what a list of members is sorted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
enum SortBy {
    #[default]
    CreatedAt,
    Role,
    UserId,
}

/// Which members.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct MembersQuery {
    organization_id: Option<OrganizationId>,
    #[schemars(range(min = 1))]
    limit: Option<u32>,
    /// How many are left out in front.
    #[schemars(range(max = 1000))]
    offset: Option<u32>,
    #[serde(default)]
    sort_by: SortBy,
    #[serde(default)]
    sort_direction: SortDirection,
}

/// Members.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct MemberList {
    members: Vec<MemberWithUser>,
    /// How many there are in all.
    total: u64,
}

async fn list(
    cx: &Cx,
    session: SessionScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(), MembersQuery>,
) -> Result<Output<MemberList>> {
    let query = input.query;
    let own = own(cx, &session, uow, query.organization_id, OF_LIST).await?;
    // An organization has so few members that all of them are one page.
    let all = u32::try_from(core_domain::iam::MAX_MEMBERS).unwrap_or(u32::MAX);
    let page = list_members(&own.membership, uow, &PageRequest::first(all)).await?;
    let mut members = page.items;
    match query.sort_by {
        SortBy::CreatedAt => {}
        SortBy::Role => members.sort_by(|a, b| a.member.role.as_str().cmp(b.member.role.as_str())),
        SortBy::UserId => members.sort_by(|a, b| a.member.user_id.cmp(&b.member.user_id)),
    }
    if query.sort_direction == SortDirection::Desc {
        members.reverse();
    }
    let offset = usize::try_from(query.offset.unwrap_or(0)).unwrap_or(usize::MAX);
    let limit = query.limit.unwrap_or(MOST).clamp(1, MOST);
    let shown = members
        .iter()
        .skip(offset)
        .take(usize::try_from(limit).unwrap_or(usize::MAX));
    Ok(Output::new(MemberList {
        members: shown.map(MemberWithUser::new).collect(),
        total: page.total,
    }))
}

async fn active(
    cx: &Cx,
    session: SessionScope,
    uow: &mut dyn UnitOfWork,
    _: Input,
) -> Result<Output<MemberWithUser>> {
    let own = own(cx, &session, uow, None, OF_LIST).await?;
    let found = organization::member_with_user(uow, own.membership.member).await?;
    Ok(Output::new(MemberWithUser::new(&found)))
}

/// Roles.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct MemberRole {
    role: Roles,
}

async fn active_role(
    cx: &Cx,
    session: SessionScope,
    uow: &mut dyn UnitOfWork,
    _: Input,
) -> Result<Output<MemberRole>> {
    let own = own(cx, &session, uow, None, OF_LIST).await?;
    let role = own.membership.member.role.clone();
    Ok(Output::new(MemberRole { role }))
}

/// The body of a question for permissions.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct HasPermission {
    organization_id: Option<OrganizationId>,
    /// Actions by resource: `{"member": ["create", "update"]}`.
    #[schemars(extend("x-maxBytes" = MAX_PERMISSION_QUERY))]
    permissions: BTreeMap<String, Vec<String>>,
}

/// Whether the caller has them all.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct Permitted {
    /// Always null.
    error: Option<String>,
    success: bool,
}

async fn has_permission(
    cx: &Cx,
    session: SessionScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), HasPermission>,
) -> Result<Output<Permitted>> {
    let body = input.body;
    let own = own(cx, &session, uow, body.organization_id, OF_LIST).await?;
    let mut wanted = body.permissions.iter().flat_map(|(resource, actions)| {
        actions
            .iter()
            .map(move |action| format!("{resource}:{action}"))
    });
    let holds = |wanted: String| {
        let pattern = PermissionPattern::parse(&wanted);
        pattern.is_ok_and(|pattern| own.membership.may.permissions.covers(pattern.as_str()))
    };
    let success = wanted.all(holds);
    Ok(Output::new(Permitted {
        error: None,
        success,
    }))
}

/// A role, or several.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum OneOrMore {
    /// One, or several joined with commas.
    One(Roles),
    /// Several.
    More(#[schemars(length(min = 1, max = 10))] Vec<Role>),
}

impl OneOrMore {
    pub(super) fn roles(self) -> Result<Roles> {
        match self {
            Self::One(roles) => Ok(roles),
            Self::More(roles) => Roles::of(roles).ok_or_else(|| {
                core_domain::kernel::Error::invalid("role", "too_short", "names no role")
            }),
        }
    }
}

/// The body of a change of roles.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct UpdateMemberRole {
    member_id: MemberId,
    role: OneOrMore,
    organization_id: Option<OrganizationId>,
}

impl OnOwnOrganization for UpdateMemberRole {
    const REFUSALS: [Code; 2] = OF_CHANGE;

    fn organization_id(&self) -> Option<&OrganizationId> {
        self.organization_id.as_ref()
    }
}

async fn update_role(
    cx: &Cx,
    own: Own,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), UpdateMemberRole>,
) -> Result<Output<MemberView>> {
    let body = input.body;
    let roles = body.role.roles()?;
    let (person, membership) = (&own.person, &own.membership);
    let changed =
        organization::update_member_role(cx, person, uow, membership, &body.member_id, roles);
    Ok(Output::new(MemberView::new(&changed.await?.member)))
}

/// The body of a removal.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct RemoveMember {
    #[schemars(
        length(min = 1, max = 254),
        regex(pattern = r"^[^\u0000]*$"),
        example = "ada@example.org"
    )]
    member_id_or_email: String,
    organization_id: Option<OrganizationId>,
}

/// A member who was removed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct RemovedMember {
    member: MemberWithUser,
}

impl OnOwnOrganization for RemoveMember {
    const REFUSALS: [Code; 2] = OF_CHANGE;

    fn organization_id(&self) -> Option<&OrganizationId> {
        self.organization_id.as_ref()
    }
}

async fn remove(
    cx: &Cx,
    own: Own,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), RemoveMember>,
) -> Result<Output<RemovedMember>> {
    let body = input.body;
    let text = &body.member_id_or_email;
    let name = match (Email::parse(text), MemberId::parse(text)) {
        (Ok(email), _) => MemberName::Email(email),
        (_, Some(id)) => MemberName::Id(id),
        (_, None) => return Err(organization::no_such_member()),
    };
    let (person, membership) = (&own.person, &own.membership);
    let removed = organization::remove_member(cx, person, uow, membership, &name).await?;
    Ok(Output::new(RemovedMember {
        member: MemberWithUser::new(&removed),
    }))
}

/// The body of a departure.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Leave {
    organization_id: OrganizationId,
}

async fn leave(
    cx: &Cx,
    session: SessionScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), Leave>,
) -> Result<Output<MemberWithUser>> {
    let own = own(
        cx,
        &session,
        uow,
        Some(input.body.organization_id),
        OF_CHANGE,
    )
    .await?;
    let left = organization::leave(cx, &own.person, uow, &own.membership).await?;
    Ok(Output::new(MemberWithUser::new(&left)))
}
