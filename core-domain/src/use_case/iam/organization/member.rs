//! Members: listed, given other roles, removed; one owner always stays.

use super::own_membership::OwnMembership;
use super::refusal::{refused, role_is_known};
use crate::access::{PersonScope, audited, ensure_fresh, find_member, unowned};
use crate::iam::{Member, MemberQuery, Session, SessionQuery, User};
use crate::kernel::{
    Code, Context, Effect, Email, Error, MemberId, OrganizationId, Page, PageRequest, Permission,
    Result, Role, Roles, Stored, UserId,
};
use crate::port::UnitOfWork;
use crate::use_case::iam::api_key;

/// A member and who it is.
#[derive(Clone, Debug, PartialEq)]
pub struct MemberOfOrganization {
    /// The membership.
    pub member: Stored<Member>,
    /// The person; `None` when they are gone.
    pub user: Option<Stored<User>>,
}

/// The first members, oldest first; whole, whatever their size: their number is limited.
///
/// # Errors
/// When the store failed.
pub async fn list_members(
    own: &OwnMembership,
    uow: &mut dyn UnitOfWork,
    page: &PageRequest,
) -> Result<Page<MemberOfOrganization>> {
    let of = MemberQuery::OfOrganization(own.organization.id.clone());
    let members = Page {
        items: unowned::<Member>(uow).list(&of, page.limit).await?,
        next: None,
        total: unowned::<Member>(uow).count(&of).await?,
    };
    with_users(uow, members).await
}

async fn with_users(
    uow: &mut dyn UnitOfWork,
    members: Page<Stored<Member>>,
) -> Result<Page<MemberOfOrganization>> {
    let mut ids: Vec<&str> = members.items.iter().map(|m| m.user_id.as_str()).collect();
    ids.sort_unstable();
    let users = unowned::<User>(uow).get_many(&ids).await?;
    Ok(members.map(|member| MemberOfOrganization {
        user: users.iter().find(|user| user.id == member.user_id).cloned(),
        member,
    }))
}

/// A member with who it is.
///
/// # Errors
/// When the store failed.
pub async fn member_with_user(
    uow: &mut dyn UnitOfWork,
    member: Stored<Member>,
) -> Result<MemberOfOrganization> {
    let user = unowned::<User>(uow).find(&member.user_id).await?;
    Ok(MemberOfOrganization { member, user })
}

/// Who of an organization is meant.
#[derive(Clone, Debug)]
pub enum MemberName {
    /// The membership with this id.
    Id(MemberId),
    /// The member with this address.
    Email(Email),
}

async fn named(
    uow: &mut dyn UnitOfWork,
    organization: &OrganizationId,
    name: &MemberName,
) -> Result<Stored<Member>> {
    let missing = || refused(Code::MemberNotFound);
    let found = match name {
        MemberName::Id(id) => unowned::<Member>(uow).find(id).await?,
        MemberName::Email(email) => {
            let with_email = crate::iam::UserQuery::WithEmail(email.clone());
            let user = unowned::<User>(uow).first(&with_email).await?;
            let user = user.ok_or_else(missing)?;
            find_member(uow, organization, &user.id).await?
        }
    };
    let found = found.filter(|member| member.organization_id == *organization);
    found.ok_or_else(missing)
}

/// Whether another owner than this member is left.
async fn has_another_owner(uow: &mut dyn UnitOfWork, member: &Member) -> Result<bool> {
    let owners = MemberQuery::OwnersOf(member.organization_id.clone());
    let owners = unowned::<Member>(uow).list(&owners, 2).await?;
    Ok(owners.iter().any(|owner| owner.id != member.id))
}

/// Gives a member other roles, from the next request on.
///
/// # Errors
/// `MEMBER_NOT_FOUND`, `ROLE_NOT_FOUND`; `YOU_ARE_NOT_ALLOWED_TO_UPDATE_THIS_MEMBER` for who may not, and for who would make
/// or unmake an owner without being one, or give roles that allow more than theirs;
/// `YOU_CANNOT_LEAVE_THE_ORGANIZATION_WITHOUT_AN_OWNER`; `STEP_UP_REQUIRED` where an owner is made or unmade.
pub async fn update_member_role(
    cx: &Context,
    scope: &PersonScope,
    uow: &mut dyn UnitOfWork,
    own: &OwnMembership,
    member: &MemberId,
    roles: Roles,
) -> Result<MemberOfOrganization> {
    let seen = named(uow, &own.organization.id, &MemberName::Id(member.clone())).await?;
    role_is_known(&own.organization, &roles)?;
    let concerns_owner = seen.role.contains(&Role::OWNER) || roles.contains(&Role::OWNER);
    let allowed = own.may(Permission::MemberUpdate)
        && (own.is_owner() || !concerns_owner)
        && own.holds_all_of(&roles);
    if !allowed {
        return Err(refused(Code::NotAllowedToUpdateMember));
    }
    let unmakes_owner = seen.role.contains(&Role::OWNER) && !roles.contains(&Role::OWNER);
    if unmakes_owner && !has_another_owner(uow, &seen).await? {
        return Err(refused(Code::OrganizationWithoutOwner));
    }
    let makes_owner = roles.contains(&Role::OWNER) && !seen.role.contains(&Role::OWNER);
    if makes_owner || unmakes_owner {
        ensure_fresh(cx, uow).await?;
    }
    let mut next = seen.edit();
    next.role = roles;
    let stored = audited::replace(cx, scope, uow, &seen, next, "member.role_changed").await?;
    uow.effects()
        .add(Effect::UserAccessChanged(seen.user_id.clone()));
    member_with_user(uow, stored).await
}

/// Removes a member, at once: their sessions act for nothing then.
///
/// # Errors
/// `MEMBER_NOT_FOUND`; `YOU_CANNOT_LEAVE_THE_ORGANIZATION_AS_THE_ONLY_OWNER`;
/// `YOU_ARE_NOT_ALLOWED_TO_DELETE_THIS_MEMBER` for who may not, and for an owner unless the caller is one;
/// `STEP_UP_REQUIRED` for another owner.
pub async fn remove_member(
    cx: &Context,
    scope: &PersonScope,
    uow: &mut dyn UnitOfWork,
    own: &OwnMembership,
    name: &MemberName,
) -> Result<MemberOfOrganization> {
    let seen = named(uow, &own.organization.id, name).await?;
    ensure_not_only_owner(uow, &seen).await?;
    let is_self = seen.id == own.member.id;
    let allowed =
        own.may(Permission::MemberDelete) && (own.is_owner() || !seen.role.contains(&Role::OWNER));
    if !is_self && !allowed {
        return Err(refused(Code::NotAllowedToDeleteMember));
    }
    if !is_self && seen.role.contains(&Role::OWNER) {
        ensure_fresh(cx, uow).await?;
    }
    let removed = member_with_user(uow, seen.clone()).await?;
    remove(cx, scope, uow, &seen, "member.removed").await?;
    Ok(removed)
}

/// Leaves an organization.
///
/// # Errors
/// `YOU_CANNOT_LEAVE_THE_ORGANIZATION_AS_THE_ONLY_OWNER`.
pub async fn leave(
    cx: &Context,
    scope: &PersonScope,
    uow: &mut dyn UnitOfWork,
    own: &OwnMembership,
) -> Result<MemberOfOrganization> {
    ensure_not_only_owner(uow, &own.member).await?;
    let left = member_with_user(uow, own.member.clone()).await?;
    remove(cx, scope, uow, &own.member, "member.left").await?;
    Ok(left)
}

async fn ensure_not_only_owner(uow: &mut dyn UnitOfWork, member: &Member) -> Result<()> {
    if member.role.contains(&Role::OWNER) && !has_another_owner(uow, member).await? {
        return Err(refused(Code::OnlyOwner));
    }
    Ok(())
}

async fn remove(
    cx: &Context,
    scope: &PersonScope,
    uow: &mut dyn UnitOfWork,
    member: &Stored<Member>,
    action: &'static str,
) -> Result<()> {
    audited::remove(cx, scope, uow, member, action).await?;
    act_for_nothing(uow, &member.organization_id, &member.user_id).await?;
    api_key::remove_of_member(uow, &member.organization_id, &member.user_id).await?;
    uow.effects()
        .add(Effect::UserAccessChanged(member.user_id.clone()));
    Ok(())
}

/// Lets the sessions of a user that act for an organization act for none.
pub(super) async fn act_for_nothing(
    uow: &mut dyn UnitOfWork,
    organization: &OrganizationId,
    user: &UserId,
) -> Result<()> {
    let all = SessionQuery::OldestOf(user.clone());
    let limit = 2 * crate::iam::MAX_SESSIONS;
    for session in unowned::<Session>(uow).list(&all, limit).await? {
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

/// The refusal of a name that is no member's.
#[must_use]
pub fn no_such_member() -> Error {
    refused(Code::MemberNotFound)
}
