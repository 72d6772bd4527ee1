//! The members of a person's organizations.

use core_domain::access::{MemberScope, MembershipScope};
use core_domain::kernel::{
    Code, Email, MemberId, OrganizationId, PermissionPattern, Result, Role, Roles, grant,
};
use core_domain::port::UnitOfWork;
use core_domain::use_case::iam::organization::{self, MemberName, MemberOrder, MembersSlice};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use super::super::bounds::MAX_PERMISSION_QUERY;
use super::common::{NamesOrganization, both, names_organization};
use super::views::{MemberView, MemberWithUser};
use crate::kernel::{BySession, Cx, Endpoint, ErrorStyle, Input, Output, Row, post};

/// How many members a list has at most.
const MOST: u32 = 100;

/// The words of rows that show something of an organization.
fn reading(row: Row) -> Row {
    row.refuses(&[Code::NoActiveOrganization, Code::PlatformSuspended])
        .rewords(Code::NotFound, Code::NotMemberOfThis)
}

/// The words of rows that change memberships.
fn changing(row: Row) -> Row {
    row.refuses(&[Code::NoActiveOrganization, Code::PlatformSuspended])
        .rewords(Code::NotFound, Code::MemberNotFound)
}

pub(super) fn rows() -> Vec<Endpoint> {
    let style = |row: Row| row.errors(ErrorStyle::TopLevelCode);
    let mut rows = vec![
        reading(style(post(
            "/api/auth/organization/has-permission",
            "hasOrganizationPermission",
        )))
        .summary("Tells whether the caller has these permissions in an organization.")
        .reads(has_permission),
        changing(style(post(
            "/api/auth/organization/update-member-role",
            "updateMemberRole",
        )))
        .summary("Gives a member other roles; one owner always stays.")
        .rewords(Code::Forbidden, Code::NotAllowedToUpdateMember)
        .refuses(&[
            Code::OrganizationWithoutOwner,
            Code::LimitReached,
            Code::RoleNotFound,
            Code::StepUpRequired,
        ])
        .writes(update_role),
        changing(style(post(
            "/api/auth/organization/remove-member",
            "removeMember",
        )))
        .summary("Removes a member, named by id or address; one owner always stays.")
        .rewords(Code::Forbidden, Code::NotAllowedToDeleteMember)
        .refuses(&[Code::OnlyOwner, Code::StepUpRequired])
        .writes(remove),
        changing(style(post(
            "/api/auth/organization/leave",
            "leaveOrganization",
        )))
        .summary("Leaves an organization; its only owner cannot.")
        .ends_access()
        .refuses(&[Code::OnlyOwner])
        .writes(leave),
    ];
    let names = ["listMembers", "listMembersByPost"];
    rows.extend(both("/api/auth/organization/list-members", names, |row| {
        reading(row)
            .summary("The members of an organization.")
            .reads(list)
    }));
    let names = ["getActiveMember", "getActiveMemberByPost"];
    rows.extend(both(
        "/api/auth/organization/get-active-member",
        names,
        |row| {
            let row = row.summary("The caller in the active organization.");
            reading(row).refuses(&[Code::MemberNotFound]).reads(active)
        },
    ));
    let names = ["getActiveMemberRole", "getActiveMemberRoleByPost"];
    rows.extend(both(
        "/api/auth/organization/get-active-member-role",
        names,
        |row| {
            let row = row.summary("The caller's roles in the active organization.");
            reading(row)
                .refuses(&[Code::MemberNotFound])
                .reads(active_role)
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

impl From<SortBy> for MemberOrder {
    fn from(by: SortBy) -> Self {
        match by {
            SortBy::CreatedAt => Self::CreatedAt,
            SortBy::Role => Self::Role,
            SortBy::UserId => Self::UserId,
        }
    }
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

names_organization!(MembersQuery);

async fn list(
    _: &Cx,
    scope: BySession<MembershipScope<grant::MemberRead>>,
    uow: &mut dyn UnitOfWork,
    input: Input<(), MembersQuery>,
) -> Result<Output<MemberList>> {
    let query = input.query;
    let slice = MembersSlice {
        order: query.sort_by.into(),
        is_descending: query.sort_direction == SortDirection::Desc,
        offset: query.offset.unwrap_or(0),
        limit: query.limit.unwrap_or(MOST).clamp(1, MOST),
    };
    let (members, total) = organization::slice_members(&scope, uow, slice).await?;
    Ok(Output::new(MemberList {
        members: members.iter().map(MemberWithUser::new).collect(),
        total,
    }))
}

async fn active(
    _: &Cx,
    scope: BySession<MemberScope>,
    uow: &mut dyn UnitOfWork,
    _: Input,
) -> Result<Output<MemberWithUser>> {
    let own = organization::own_member(&scope)?.clone();
    let found = organization::member_with_user(uow, own).await?;
    Ok(Output::new(MemberWithUser::new(&found)))
}

/// Roles.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct MemberRole {
    role: Roles,
}

async fn active_role(
    _: &Cx,
    scope: BySession<MemberScope>,
    _: &mut dyn UnitOfWork,
    _: Input,
) -> Result<Output<MemberRole>> {
    let role = organization::own_member(&scope)?.role.clone();
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

names_organization!(HasPermission);

async fn has_permission(
    _: &Cx,
    scope: BySession<MemberScope>,
    _: &mut dyn UnitOfWork,
    input: Input<(), (), HasPermission>,
) -> Result<Output<Permitted>> {
    let permissions = input.body.permissions;
    let mut wanted = permissions.iter().flat_map(|(resource, actions)| {
        actions
            .iter()
            .map(move |action| format!("{resource}:{action}"))
    });
    let holds = |wanted: String| {
        let pattern = PermissionPattern::parse(&wanted);
        pattern.is_ok_and(|pattern| scope.holds(&pattern))
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

names_organization!(UpdateMemberRole);

async fn update_role(
    cx: &Cx,
    scope: BySession<MembershipScope<grant::MemberUpdate>>,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), UpdateMemberRole>,
) -> Result<Output<MemberView>> {
    let (member, roles) = (&input.body.member_id, input.body.role.roles()?);
    let changed = organization::update_member_role(cx, &scope, uow, member, roles).await?;
    Ok(Output::new(MemberView::new(&changed.member)))
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

names_organization!(RemoveMember);

async fn remove(
    cx: &Cx,
    scope: BySession<MemberScope>,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), RemoveMember>,
) -> Result<Output<RemovedMember>> {
    let text = &input.body.member_id_or_email;
    let name = match (Email::parse(text), MemberId::parse(text)) {
        (Ok(email), _) => MemberName::Email(email),
        (_, Some(id)) => MemberName::Id(id),
        (_, None) => return Err(organization::no_such_member()),
    };
    let removed = organization::remove_member(cx, &scope, uow, &name).await?;
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

impl NamesOrganization for Leave {
    fn id(&self) -> Option<&OrganizationId> {
        Some(&self.organization_id)
    }
}

async fn leave(
    cx: &Cx,
    scope: BySession<MemberScope>,
    uow: &mut dyn UnitOfWork,
    _: Input<(), (), Leave>,
) -> Result<Output<MemberWithUser>> {
    let left = organization::leave(cx, &scope, uow).await?;
    Ok(Output::new(MemberWithUser::new(&left)))
}
