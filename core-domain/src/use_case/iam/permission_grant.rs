//! Grants and denials of permissions to single members.

use serde_json::json;

use crate::access::{
    AuditEvent, MembershipScope, audited, ensure_below, find_member, unaudited, unowned_records,
};
use crate::iam::{
    Decision, GrantPermission, Member, MemberQuery, PermissionGrant, decide, membership,
};
use crate::kernel::{
    Caller, Code, Context, Effect, Error, GrantId, Page, PageQuery, PermissionPattern, Record,
    Result, Role, Stored, UserId, permission,
};
use crate::port::UnitOfWork;

/// A grant or denial, with the member who has it.
#[derive(Clone, Debug, PartialEq)]
pub struct MemberGrant {
    /// The membership of the member.
    pub member: Stored<Member>,
    /// The grant or denial.
    pub grant: PermissionGrant,
}

/// Returns the grants and denials of an organization, newest member first. A page consists of the members who have any.
///
/// # Errors
/// `INVALID_CURSOR` if the cursor was not issued for this list.
pub async fn list(
    scope: &MembershipScope<permission::GrantRead>,
    uow: &mut dyn UnitOfWork,
    page: &PageQuery,
) -> Result<Page<Vec<MemberGrant>>> {
    let with_grants = MemberQuery::WithGrants(scope.organization().id.clone());
    let members = unowned_records::<Member>(uow)
        .page(&with_grants, page)
        .await?;
    Ok(members.map(|member| {
        let of = |grant: &PermissionGrant| MemberGrant {
            member: member.clone(),
            grant: grant.clone(),
        };
        member.grants.iter().map(of).collect()
    }))
}

/// Decides whether a member has a permission now, and returns the rule that decided.
///
/// # Errors
/// `NOT_FOUND` if the user is not a member.
pub async fn explain(
    scope: &MembershipScope<permission::GrantRead>,
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

/// Grants or denies a permission to a member, with effect from the next request on. An expired grant of the same kind
/// and pattern is replaced.
///
/// # Errors
/// - `NOT_FOUND` if the user is not a member.
/// - `FORBIDDEN` if the caller or the grantor lacks the permission, or if the member is an owner and the caller is not.
/// - `CONFLICT` if the member already has the same grant.
/// - `LIMIT_REACHED` if the member has the maximum number of grants.
pub async fn create(
    cx: &Context,
    scope: &MembershipScope<permission::GrantWrite>,
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
        .retain(|grant| grant.is_active(now) || !same(grant));
    if next.grants.iter().any(same) {
        let message = "The member already has this grant.";
        return Err(Error::refused(Code::Conflict, message));
    }
    let count = u64::try_from(next.grants.len()).unwrap_or(u64::MAX);
    let message = "The member already has the maximum number of grants. Remove one first.";
    ensure_below(count, cx.limits.grants_per_member, message)?;
    let id = GrantId::generate_for_member(&seen.id, now, cx.entropy.as_ref());
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

/// Removes a grant or denial, with effect from the next request on.
///
/// # Errors
/// - `NOT_FOUND` if no member has a grant with this id.
/// - `FORBIDDEN` if the caller lacks the permission, or if the member is an owner and the caller is not.
pub async fn remove(
    cx: &Context,
    scope: &MembershipScope<permission::GrantWrite>,
    uow: &mut dyn UnitOfWork,
    id: &GrantId,
) -> Result<()> {
    const MISSING: Error = Error::NotFound("grant");
    let member = id.member().ok_or(MISSING)?;
    let seen = unowned_records::<Member>(uow)
        .find(&member)
        .await?
        .ok_or(MISSING)?;
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

/// Checks that the caller has the permission that they grant, deny or take away. Only owners may change the permissions
/// of an owner.
fn ensure_may_change(
    scope: &MembershipScope<permission::GrantWrite>,
    member: &Member,
    permission: &PermissionPattern,
) -> Result<()> {
    let of_owner = member.role.contains(&Role::OWNER);
    if !scope.holds(permission) || (of_owner && !scope.is_owner()) {
        return Err(Error::Forbidden);
    }
    Ok(())
}

/// Checks the grantor. A person may grant permissions in their own name only. A service names the user for whom it grants; if this
/// user is a member, they must have the permission.
async fn ensure_grantor_holds(
    cx: &Context,
    scope: &MembershipScope<permission::GrantWrite>,
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
    scope: &MembershipScope<permission::GrantWrite>,
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
    audited::record_event(cx, uow, event).await?;
    let changed = Effect::UserAccessChanged(seen.user_id.clone());
    uow.effects().add(changed);
    Ok(stored)
}
