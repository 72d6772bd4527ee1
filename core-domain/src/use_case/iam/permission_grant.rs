//! Grants and denials of permissions to single members.

use serde_json::json;

use crate::access::{
    AuditEvent, MembershipScope, audited, ensure_below, find_member, unaudited, unowned,
};
use crate::iam::{
    Decision, GrantPermission, Member, MemberQuery, PermissionGrant, decide, membership,
};
use crate::kernel::{
    Caller, Code, Context, Effect, Error, GrantId, Page, PageRequest, PermissionPattern, Record,
    Result, Role, Stored, UserId, grant,
};
use crate::port::UnitOfWork;

/// A grant or denial and the membership it belongs to.
#[derive(Clone, Debug, PartialEq)]
pub struct MemberGrant {
    /// The membership.
    pub member: Stored<Member>,
    /// The grant.
    pub grant: PermissionGrant,
}

/// The grants and denials of an organization, page by page of the members who have any, newest member first.
///
/// # Errors
/// `INVALID_CURSOR`.
pub async fn list(
    scope: &MembershipScope<grant::GrantRead>,
    uow: &mut dyn UnitOfWork,
    page: &PageRequest,
) -> Result<Page<Vec<MemberGrant>>> {
    let with_grants = MemberQuery::WithGrants(scope.organization().id.clone());
    let members = unowned::<Member>(uow).page(&with_grants, page).await?;
    Ok(members.map(|member| {
        let of = |grant: &PermissionGrant| MemberGrant {
            member: member.clone(),
            grant: grant.clone(),
        };
        member.grants.iter().map(of).collect()
    }))
}

/// Whether a member may at this instant, and which rule decides.
///
/// # Errors
/// `NOT_FOUND` when the user is no member.
pub async fn explain(
    scope: &MembershipScope<grant::GrantRead>,
    uow: &mut dyn UnitOfWork,
    user: &UserId,
    permission: &PermissionPattern,
) -> Result<Decision> {
    let member = member_of(scope, uow, user).await?;
    let now = uow.now().await?;
    let mappings = &scope.organization().roles;
    let decision = decide(
        permission.as_str(),
        &member.role,
        mappings,
        &member.grants,
        now,
    );
    Ok(decision)
}

/// Grants or denies a member a permission, from the next request on. One that says the same of the same pattern is
/// replaced once it has expired.
///
/// # Errors
/// `NOT_FOUND` when the user is no member; `FORBIDDEN` when the grantor lacks the permission, or an owner is concerned and
/// the caller is none; `CONFLICT` when the member has such a grant already; `LIMIT_REACHED`.
pub async fn create(
    cx: &Context,
    scope: &MembershipScope<grant::GrantWrite>,
    uow: &mut dyn UnitOfWork,
    command: GrantPermission,
) -> Result<MemberGrant> {
    let seen = member_of(scope, uow, &command.user_id).await?;
    ensure_may_change(scope, &seen, &command.permission)?;
    ensure_grantor_holds(cx, scope, uow, &command).await?;
    let now = uow.now().await?;
    let mut next = seen.edit();
    let same = |grant: &PermissionGrant| {
        grant.permission == command.permission && grant.granted == command.granted
    };
    next.grants
        .retain(|grant| grant.counts(now) || !same(grant));
    if next.grants.iter().any(same) {
        let message = "The member has this grant already.";
        return Err(Error::refused(Code::Conflict, message));
    }
    let count = u64::try_from(next.grants.len()).unwrap_or(u64::MAX);
    let message = "The member has as many grants as one member may have. Remove one first.";
    ensure_below(count, cx.limits.grants_per_member, message)?;
    let id = GrantId::of_member(&seen.id, now, cx.entropy.as_ref());
    let grant = PermissionGrant {
        id: id.ok_or_else(|| Error::Internal("the id of a grant is too long".to_owned()))?,
        permission: command.permission,
        granted: command.granted,
        granted_by: command.granted_by,
        expires_at: command.expires_at.map(|seconds| seconds.0),
        created_at: now,
    };
    next.grants.push(grant.clone());
    let member = store(cx, scope, uow, &seen, next, &grant, "grant.created").await?;
    Ok(MemberGrant { member, grant })
}

/// Takes a grant or denial back, from the next request on.
///
/// # Errors
/// `NOT_FOUND` for an unknown or foreign one; `FORBIDDEN` as for [`create`].
pub async fn remove(
    cx: &Context,
    scope: &MembershipScope<grant::GrantWrite>,
    uow: &mut dyn UnitOfWork,
    id: &GrantId,
) -> Result<()> {
    const MISSING: Error = Error::NotFound("grant");
    let member = id.member().ok_or(MISSING)?;
    let seen = unowned::<Member>(uow).find(&member).await?.ok_or(MISSING)?;
    let mut next = seen.edit();
    let position = next.grants.iter().position(|grant| grant.id == *id);
    let grant = next.grants.remove(position.ok_or(MISSING)?);
    ensure_may_change(scope, &seen, &grant.permission)?;
    store(cx, scope, uow, &seen, next, &grant, "grant.removed").await?;
    Ok(())
}

async fn member_of<G>(
    scope: &MembershipScope<G>,
    uow: &mut dyn UnitOfWork,
    user: &UserId,
) -> Result<Stored<Member>> {
    let member = find_member(uow, &scope.organization().id, user).await?;
    member.ok_or(Error::NotFound(Member::KIND))
}

/// Nobody gives or takes what they lack, and what an owner may is for owners to say.
fn ensure_may_change(
    scope: &MembershipScope<grant::GrantWrite>,
    member: &Member,
    permission: &PermissionPattern,
) -> Result<()> {
    let of_owner = member.role.contains(&Role::OWNER);
    if !scope.holds(permission) || (of_owner && !scope.is_owner()) {
        return Err(Error::Forbidden);
    }
    Ok(())
}

/// A person speaks for themselves. A service may name the person for whom it grants, who then must hold the permission.
async fn ensure_grantor_holds(
    cx: &Context,
    scope: &MembershipScope<grant::GrantWrite>,
    uow: &mut dyn UnitOfWork,
    command: &GrantPermission,
) -> Result<()> {
    if !matches!(&*cx.caller, Caller::Service { .. } | Caller::System) {
        let own = cx.caller.user_id() == Some(&command.granted_by);
        return if own { Ok(()) } else { Err(Error::Forbidden) };
    }
    let organization = scope.organization();
    let Some(grantor) = find_member(uow, &organization.id, &command.granted_by).await? else {
        return Ok(());
    };
    let held = membership(organization, &grantor, uow.now().await?).permissions;
    if held.covers(command.permission.as_str()) {
        Ok(())
    } else {
        Err(Error::Forbidden)
    }
}

async fn store(
    cx: &Context,
    scope: &MembershipScope<grant::GrantWrite>,
    uow: &mut dyn UnitOfWork,
    seen: &Stored<Member>,
    next: Member,
    grant: &PermissionGrant,
    action: &'static str,
) -> Result<Stored<Member>> {
    let stored = unaudited::replace(uow, seen, next).await?;
    let event = AuditEvent {
        platform_id: scope.organization().platform_id.clone(),
        action,
        entity_id: grant.id.to_string(),
        details: Some(json!({
            "organizationId": seen.organization_id,
            "userId": seen.user_id,
            "grant": grant,
        })),
    };
    audited::event(cx, uow, event).await?;
    let changed = Effect::UserAccessChanged(seen.user_id.clone());
    uow.effects().add(changed);
    Ok(stored)
}
