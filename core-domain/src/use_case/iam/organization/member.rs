//! Lists members, changes their roles, and removes them. An organization always keeps at least one owner.

use crate::access::{
    Batches, Covers, MemberScope, MembershipScope, SystemScope, all_unowned, audited,
    ensure_can_own_another, ensure_fresh, find_member, unowned_records,
};
use crate::iam::{Member, MemberQuery, Organization, Session, SessionQuery, User};
use crate::kernel::{
    Code, Context, Effect, Email, Error, MemberId, OrganizationId, Result, Role, Roles, Stored,
    Unowned, UserId, permission,
};
use crate::port::UnitOfWork;
use crate::use_case::iam::api_key;

/// A member with their user record.
#[derive(Clone, Debug, PartialEq)]
pub struct MemberOfOrganization {
    /// The membership of the user.
    pub member: Stored<Member>,
    /// The user; `None` if the user was deleted.
    pub user: Option<Stored<User>>,
}

/// Returns the members in the order in which they joined, at most `limit`. The list has no byte budget, because members
/// are small and their number is limited.
///
/// # Errors
/// Only those of the store.
pub async fn list_members(
    scope: &MembershipScope<permission::MemberRead>,
    uow: &mut dyn UnitOfWork,
    limit: u32,
) -> Result<Vec<MemberOfOrganization>> {
    let of = MemberQuery::OfOrganization(scope.organization().id.clone());
    let members = unowned_records::<Member>(uow).list(&of, limit).await?;
    with_users(uow, members).await
}

/// Returns the oldest member of the organization other than `owner`; `None` if there is no such member.
pub(in crate::use_case) async fn find_other_member(
    _: SystemScope,
    uow: &mut dyn UnitOfWork,
    organization: &OrganizationId,
    owner: Option<&UserId>,
) -> Result<Option<UserId>> {
    let of = MemberQuery::OfOrganization(organization.clone());
    let members = unowned_records::<Member>(uow).list(&of, 2).await?;
    let mut users = members.into_iter().map(|member| member.user_id.clone());
    Ok(users.find(|user| Some(user) != owner))
}

/// The sort key of a list of members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberOrder {
    /// The time at which they joined.
    CreatedAt,
    /// The text of their roles.
    Role,
    /// The id of the user.
    UserId,
}

/// A slice of the sorted list of members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MembersSlice {
    /// The sort key of the list.
    pub order: MemberOrder,
    /// Whether the list is sorted in descending order.
    pub is_descending: bool,
    /// Number of members to skip at the start.
    pub offset: u32,
    /// Maximum number of members in the slice.
    pub limit: u32,
}

/// Returns a slice of the sorted members, with the total number of members.
///
/// # Errors
/// Only those of the store.
pub async fn list_members_slice(
    scope: &MembershipScope<permission::MemberRead>,
    uow: &mut dyn UnitOfWork,
    slice: MembersSlice,
) -> Result<(Vec<MemberOfOrganization>, u64)> {
    let of = MemberQuery::OfOrganization(scope.organization().id.clone());
    let mut members = Vec::new();
    let mut batches = Batches::of(of);
    while let Some(batch) = batches.next(unowned_records::<Member>(uow)).await? {
        members.extend(batch);
    }
    match slice.order {
        MemberOrder::CreatedAt => {}
        MemberOrder::Role => members.sort_by(|a, b| a.role.as_str().cmp(b.role.as_str())),
        MemberOrder::UserId => members.sort_by(|a, b| a.user_id.cmp(&b.user_id)),
    }
    if slice.is_descending {
        members.reverse();
    }
    let total = u64::try_from(members.len()).unwrap_or(u64::MAX);
    let [offset, limit] = [slice.offset, slice.limit].map(|n| usize::try_from(n).unwrap_or(0));
    let members = members.into_iter().skip(offset).take(limit).collect();
    Ok((with_users(uow, members).await?, total))
}

async fn with_users(
    uow: &mut dyn UnitOfWork,
    members: Vec<Stored<Member>>,
) -> Result<Vec<MemberOfOrganization>> {
    let mut ids: Vec<&str> = members.iter().map(|m| m.user_id.as_str()).collect();
    ids.sort_unstable();
    let users = unowned_records::<User>(uow).get_many(&ids).await?;
    let with_user = |member: Stored<Member>| MemberOfOrganization {
        user: users.iter().find(|user| user.id == member.user_id).cloned(),
        member,
    };
    Ok(members.into_iter().map(with_user).collect())
}

/// Returns a member with their user record.
///
/// # Errors
/// Only those of the store.
pub async fn member_with_user(
    uow: &mut dyn UnitOfWork,
    member: Stored<Member>,
) -> Result<MemberOfOrganization> {
    let user = unowned_records::<User>(uow).find(&member.user_id).await?;
    Ok(MemberOfOrganization { member, user })
}

/// A reference to a member of an organization.
#[derive(Clone, Debug)]
pub enum MemberRef {
    /// The membership with this id.
    Id(MemberId),
    /// The member with this email address.
    Email(Email),
}

async fn find_by_ref(
    uow: &mut dyn UnitOfWork,
    organization: &OrganizationId,
    name: &MemberRef,
) -> Result<Stored<Member>> {
    let missing = || Error::of_code(Code::MemberNotFound);
    let found = match name {
        MemberRef::Id(id) => unowned_records::<Member>(uow).find(id).await?,
        MemberRef::Email(email) => {
            let with_email = crate::iam::UserQuery::WithEmail(email.clone());
            let user = unowned_records::<User>(uow).first(&with_email).await?;
            let user = user.ok_or_else(missing)?;
            find_member(uow, organization, &user.id).await?
        }
    };
    let found = found.filter(|member| member.organization_id == *organization);
    found.ok_or_else(missing)
}

/// Returns whether the organization has an owner other than this member.
async fn has_another_owner(uow: &mut dyn UnitOfWork, member: &Member) -> Result<bool> {
    let owners = MemberQuery::OwnersOf(member.organization_id.clone());
    let owners = unowned_records::<Member>(uow).list(&owners, 2).await?;
    Ok(owners.iter().any(|owner| owner.id != member.id))
}

/// Replaces the roles of a member, with effect from the next request on.
///
/// # Errors
/// - `MEMBER_NOT_FOUND` if the membership does not exist in the organization.
/// - `ROLE_NOT_FOUND` if the organization does not have a role.
/// - `FORBIDDEN` if the change concerns an owner and the caller is not one, or if a role has a permission that the
///   caller lacks.
/// - `YOU_CANNOT_LEAVE_THE_ORGANIZATION_WITHOUT_AN_OWNER` if the member is the only owner.
/// - `STEP_UP_REQUIRED` if an owner is added or removed without a fresh proof of the caller's identity.
/// - `LIMIT_REACHED` if a new owner owns the maximum number of organizations.
pub async fn update_member_role(
    cx: &Context,
    scope: &MembershipScope<permission::MemberUpdate>,
    uow: &mut dyn UnitOfWork,
    member: &MemberId,
    roles: Roles,
) -> Result<MemberOfOrganization> {
    let organization = scope.organization();
    let seen = find_by_ref(uow, &organization.id, &MemberRef::Id(member.clone())).await?;
    ensure_roles_known(organization, &roles)?;
    let concerns_owner = seen.role.contains(&Role::OWNER) || roles.contains(&Role::OWNER);
    if (concerns_owner && !scope.is_owner()) || !scope.has_permissions_of_roles(&roles) {
        return Err(Error::Forbidden);
    }
    let unmakes_owner = seen.role.contains(&Role::OWNER) && !roles.contains(&Role::OWNER);
    if unmakes_owner && !has_another_owner(uow, &seen).await? {
        return Err(Error::of_code(Code::OrganizationWithoutOwner));
    }
    let makes_owner = roles.contains(&Role::OWNER) && !seen.role.contains(&Role::OWNER);
    if makes_owner || unmakes_owner {
        ensure_fresh(cx, uow).await?;
    }
    if makes_owner {
        ensure_can_own_another(cx, uow, &seen.user_id).await?;
    }
    let mut next = seen.edit();
    next.role = roles;
    let stored = audited::replace(cx, scope, uow, &seen, next, "member.role_changed").await?;
    uow.effects()
        .add(Effect::UserAccessChanged(seen.user_id.clone()));
    member_with_user(uow, stored).await
}

/// Removes a member. Takes effect at once: their sessions have no active organization, and their API keys for the
/// organization are removed. Members may remove themselves.
///
/// # Errors
/// - `MEMBER_NOT_FOUND` if the reference names no member.
/// - `YOU_CANNOT_LEAVE_THE_ORGANIZATION_AS_THE_ONLY_OWNER` if the member is the only owner.
/// - `FORBIDDEN` if the caller lacks `member:delete`, or if the member is an owner and the caller is not.
/// - `STEP_UP_REQUIRED` if another owner is removed without a fresh proof of the caller's identity.
pub async fn remove_member(
    cx: &Context,
    scope: &MemberScope,
    uow: &mut dyn UnitOfWork,
    name: &MemberRef,
) -> Result<MemberOfOrganization> {
    let seen = find_by_ref(uow, &scope.organization().id, name).await?;
    ensure_not_only_owner(uow, &seen).await?;
    let is_self = scope.member().is_some_and(|own| own.id == seen.id);
    if !is_self {
        let scope = scope.authorize::<permission::MemberDelete>()?;
        ensure_may_remove(cx, &scope, uow, &seen).await?;
    }
    let removed = member_with_user(uow, seen.clone()).await?;
    remove(cx, scope, uow, &seen, "member.removed").await?;
    Ok(removed)
}

async fn ensure_may_remove(
    cx: &Context,
    scope: &MembershipScope<permission::MemberDelete>,
    uow: &mut dyn UnitOfWork,
    member: &Member,
) -> Result<()> {
    if !member.role.contains(&Role::OWNER) {
        return Ok(());
    }
    if !scope.is_owner() {
        return Err(Error::Forbidden);
    }
    ensure_fresh(cx, uow).await
}

/// Ends the caller's own membership.
///
/// # Errors
/// - `MEMBER_NOT_FOUND` if an operator is not a member.
/// - `YOU_CANNOT_LEAVE_THE_ORGANIZATION_AS_THE_ONLY_OWNER` if the caller is the only owner.
pub async fn leave(
    cx: &Context,
    scope: &MemberScope,
    uow: &mut dyn UnitOfWork,
) -> Result<MemberOfOrganization> {
    let own = own_member(scope)?;
    ensure_not_only_owner(uow, own).await?;
    let left = member_with_user(uow, own.clone()).await?;
    remove(cx, scope, uow, own, "member.left").await?;
    Ok(left)
}

/// Returns the caller's own membership.
///
/// # Errors
/// `MEMBER_NOT_FOUND` if an operator is not a member.
pub fn own_member(scope: &MemberScope) -> Result<&Stored<Member>> {
    let missing = || Error::of_code(Code::MemberNotFound);
    scope.member().ok_or_else(missing)
}

async fn ensure_not_only_owner(uow: &mut dyn UnitOfWork, member: &Member) -> Result<()> {
    if member.role.contains(&Role::OWNER) && !has_another_owner(uow, member).await? {
        return Err(Error::of_code(Code::OnlyOwner));
    }
    Ok(())
}

async fn remove(
    cx: &Context,
    scope: &impl Covers<Unowned>,
    uow: &mut dyn UnitOfWork,
    member: &Stored<Member>,
    action: &'static str,
) -> Result<()> {
    audited::remove(cx, scope, uow, member, action).await?;
    clear_active_organization(uow, &member.organization_id, &member.user_id).await?;
    api_key::remove_of_member(uow, &member.organization_id, &member.user_id).await?;
    uow.effects()
        .add(Effect::UserAccessChanged(member.user_id.clone()));
    Ok(())
}

/// Clears the active organization of all sessions of the user that act for this organization.
pub(super) async fn clear_active_organization(
    uow: &mut dyn UnitOfWork,
    organization: &OrganizationId,
    user: &UserId,
) -> Result<()> {
    let all = SessionQuery::OldestOf(user.clone());
    for session in all_unowned::<Session>(uow, all).await? {
        if session.active_organization_id.as_ref() != Some(organization) {
            continue;
        }
        let mut next = session.edit();
        next.active_organization_id = None;
        crate::access::unaudited::replace(uow, &session, next).await?;
        uow.effects()
            .add(Effect::SessionChanged(session.id.clone()));
    }
    Ok(())
}

/// Returns the error for a reference that names no member.
#[must_use]
pub fn member_not_found() -> Error {
    Error::of_code(Code::MemberNotFound)
}

/// Returns `ROLE_NOT_FOUND` if the organization does not have one of the roles.
pub(super) fn ensure_roles_known(organization: &Organization, roles: &Roles) -> Result<()> {
    match roles.iter().find(|role| !organization.roles.has_role(role)) {
        None => Ok(()),
        Some(role) => {
            let message = format!("ROLE_NOT_FOUND: {role}");
            Err(Error::refused(Code::RoleNotFound, message))
        }
    }
}
