//! The members of organizations.

use core_domain::access::{MemberScope, MembershipScope};
use core_domain::kernel::{
    Code, Email, MemberId, OrganizationId, PermissionPattern, Result, Role, Roles, permission,
};
use core_domain::port::UnitOfWork;
use core_domain::use_case::iam::organization::{self, MemberOrder, MemberRef, MembersSlice};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use super::super::bounds::MAX_PERMISSION_QUERY;
use super::common::{NamesOrganization, get_and_post, names_organization};
use super::views::{MemberView, MemberWithUser};
use crate::kernel::{BySession, Cx, Endpoint, ErrorStyle, Input, Output, Row, post};

/// Maximum number of members in a list.
const MAX_MEMBERS: u32 = 100;

/// Adds the refusals of operations that read an organization.
fn with_read_refusals(row: Row) -> Row {
    row.refuses(&[Code::NoActiveOrganization, Code::PlatformSuspended])
        .replaces_code(Code::NotFound, Code::NotMemberOfOrganization)
}

/// Adds the refusals of operations that change memberships.
fn with_change_refusals(row: Row) -> Row {
    row.refuses(&[Code::NoActiveOrganization, Code::PlatformSuspended])
        .replaces_code(Code::NotFound, Code::MemberNotFound)
}

pub(super) fn rows() -> Vec<Endpoint> {
    let style = |row: Row| row.errors(ErrorStyle::TopLevelCode);
    let mut rows = vec![
        with_read_refusals(style(post(
            "/api/auth/organization/has-permission",
            "hasOrganizationPermission",
        )))
        .summary("Reports whether the caller has permissions in an organization.")
        .description(
            "`success` is true only if the caller has all requested permissions. Grants and \
             denials of the caller are taken into account.",
        )
        .reads(check_permission),
        with_change_refusals(style(post(
            "/api/auth/organization/update-member-role",
            "updateMemberRole",
        )))
        .summary("Changes the roles of a member.")
        .description(
            "Replaces all roles of the member; the change takes effect with the member's next \
             request. The last owner cannot lose the owner role. Only owners can make or remove \
             owners, which requires a proof of identity from the last 10 minutes. No caller can give \
             roles that allow more than their own.",
        )
        .replaces_code(Code::Forbidden, Code::NotAllowedToUpdateMember)
        .refuses(&[
            Code::OrganizationWithoutOwner,
            Code::LimitReached,
            Code::RoleNotFound,
            Code::StepUpRequired,
        ])
        .writes(update_role),
        with_change_refusals(style(post(
            "/api/auth/organization/remove-member",
            "removeMember",
        )))
        .summary("Removes a member from an organization.")
        .description(
            "The member is named by id or email address; members can also remove themselves. \
             Sessions of the member no longer act for the organization, and the member's API keys \
             for it are deleted. The last owner cannot be removed. Removing another owner \
             requires a proof of identity from the last 10 minutes.",
        )
        .replaces_code(Code::Forbidden, Code::NotAllowedToDeleteMember)
        .refuses(&[Code::OnlyOwner, Code::StepUpRequired])
        .writes(remove),
        with_change_refusals(style(post(
            "/api/auth/organization/leave",
            "leaveOrganization",
        )))
        .summary("Ends the caller's membership in an organization.")
        .description(
            "Sessions of the caller no longer act for the organization, and the caller's API keys \
             for it are deleted. The last owner cannot leave.",
        )
        .ends_access()
        .refuses(&[Code::OnlyOwner])
        .writes(leave),
    ];
    let names = ["listMembers", "listMembersByPost"];
    rows.extend(get_and_post(
        "/api/auth/organization/list-members",
        names,
        |row| {
            with_read_refusals(row)
            .summary("Lists the members of an organization.")
            .description(
                "Returns at most 100 members at a time, with the total number of members. Default \
                 order: the oldest membership first.",
            )
            .reads(list)
        },
    ));
    let names = ["getActiveMember", "getActiveMemberByPost"];
    rows.extend(get_and_post(
        "/api/auth/organization/get-active-member",
        names,
        |row| {
            let row = row.summary("Returns the caller's membership in the active organization.")
            .description(
                "Returns the membership together with the user. Operators who are not members are \
                 refused.",
            );
            with_read_refusals(row)
                .refuses(&[Code::MemberNotFound])
                .reads(active)
        },
    ));
    let names = ["getActiveMemberRole", "getActiveMemberRoleByPost"];
    rows.extend(get_and_post(
        "/api/auth/organization/get-active-member-role",
        names,
        |row| {
            let row = row.summary("Returns the caller's roles in the active organization.")
            .description(
                "Returns the roles as a text, separated by commas. Operators who are not members \
                 are refused.",
            );
            with_read_refusals(row)
                .refuses(&[Code::MemberNotFound])
                .reads(active_role)
        },
    ));
    rows
}

/// The direction in which a list is sorted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum SortDirection {
    #[default]
    Asc,
    Desc,
}

/// The field that a list of members is sorted by.
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

/// Selects, sorts and limits the members.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct MembersQuery {
    /// The organization. Default: the active organization.
    organization_id: Option<OrganizationId>,
    /// The maximum number of members to return. Larger values are reduced to 100. Default: 100.
    #[schemars(range(min = 1))]
    limit: Option<u32>,
    /// The number of members to skip, at most 1000. Default: 0.
    #[schemars(range(max = 1000))]
    offset: Option<u32>,
    /// The field that the members are sorted by. Default: `createdAt`.
    #[serde(default)]
    sort_by: SortBy,
    /// The direction of the sort. Default: `asc`.
    #[serde(default)]
    sort_direction: SortDirection,
}

/// A list of members.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct MemberList {
    /// The selected members and their users.
    members: Vec<MemberWithUser>,
    /// The total number of members of the organization.
    total: u64,
}

names_organization!(MembersQuery);

async fn list(
    _: &Cx,
    scope: BySession<MembershipScope<permission::MemberRead>>,
    uow: &mut dyn UnitOfWork,
    input: Input<(), MembersQuery>,
) -> Result<Output<MemberList>> {
    let query = input.query;
    let slice = MembersSlice {
        order: query.sort_by.into(),
        is_descending: query.sort_direction == SortDirection::Desc,
        offset: query.offset.unwrap_or(0),
        limit: query.limit.unwrap_or(MAX_MEMBERS).clamp(1, MAX_MEMBERS),
    };
    let (members, total) = organization::list_members_slice(&scope, uow, slice).await?;
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

/// The roles of a member.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct MemberRole {
    /// The roles, separated by commas.
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

/// The permissions to check.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct HasPermission {
    /// The organization. Default: the active organization.
    organization_id: Option<OrganizationId>,
    /// Lists of actions by resource, for example `{"member": ["create", "update"]}`.
    #[schemars(extend("x-maxBytes" = MAX_PERMISSION_QUERY))]
    permissions: BTreeMap<String, Vec<String>>,
}

/// The result of the permission check.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct PermissionCheck {
    /// Always `null` in this response.
    error: Option<String>,
    /// Whether the caller has all requested permissions.
    success: bool,
}

names_organization!(HasPermission);

async fn check_permission(
    _: &Cx,
    scope: BySession<MemberScope>,
    _: &mut dyn UnitOfWork,
    input: Input<(), (), HasPermission>,
) -> Result<Output<PermissionCheck>> {
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
    Ok(Output::new(PermissionCheck {
        error: None,
        success,
    }))
}

/// One role or several roles.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum RolesInput {
    /// One role, or several separated by commas.
    One(Roles),
    /// A list of 1 to 10 roles.
    More(#[schemars(length(min = 1, max = 10))] Vec<Role>),
}

impl RolesInput {
    pub(super) fn roles(self) -> Result<Roles> {
        match self {
            Self::One(roles) => Ok(roles),
            Self::More(roles) => Roles::of(roles).ok_or_else(|| {
                core_domain::kernel::Error::invalid(
                    "role",
                    "too_short",
                    "must name at least one role",
                )
            }),
        }
    }
}

/// The member and their new roles.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct UpdateMemberRole {
    /// The id of the membership.
    member_id: MemberId,
    /// The new roles of the member.
    role: RolesInput,
    /// The organization. Default: the active organization.
    organization_id: Option<OrganizationId>,
}

names_organization!(UpdateMemberRole);

async fn update_role(
    cx: &Cx,
    scope: BySession<MembershipScope<permission::MemberUpdate>>,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), UpdateMemberRole>,
) -> Result<Output<MemberView>> {
    let (member, roles) = (&input.body.member_id, input.body.role.roles()?);
    let changed = organization::update_member_role(cx, &scope, uow, member, roles).await?;
    Ok(Output::new(MemberView::new(&changed.member)))
}

/// The member to remove.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct RemoveMember {
    /// The id of the membership, or the email address of the member.
    #[schemars(
        length(min = 1, max = 254),
        regex(pattern = r"^[^\u0000]*$"),
        example = "ada@example.org"
    )]
    member_id_or_email: String,
    /// The organization. Default: the active organization.
    organization_id: Option<OrganizationId>,
}

/// The removed member.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct RemovedMember {
    /// The membership that ended, and its user.
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
        (Ok(email), _) => MemberRef::Email(email),
        (_, Some(id)) => MemberRef::Id(id),
        (_, None) => return Err(organization::member_not_found()),
    };
    let removed = organization::remove_member(cx, &scope, uow, &name).await?;
    Ok(Output::new(RemovedMember {
        member: MemberWithUser::new(&removed),
    }))
}

/// The organization that the caller leaves.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Leave {
    /// The id of the organization.
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
