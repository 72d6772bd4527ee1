//! Lists and changes the permissions of an organization's roles.

use serde_json::json;

use crate::access::{AuditEvent, MembershipScope, audited, ensure_below, unaudited};
use crate::iam::{MapRole, Organization, RoleMappings};
use crate::kernel::{Context, Effect, Error, PermissionPattern, Result, Role, Stored, permission};
use crate::port::UnitOfWork;

/// A role with its permissions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedRole {
    /// The name of the role.
    pub role: Role,
    /// The permission patterns of the role.
    pub permissions: Vec<String>,
    /// Whether the organization maps the role. Otherwise the built-in permissions apply.
    pub is_mapped: bool,
}

impl MappedRole {
    fn of(role: Role, mappings: &RoleMappings) -> Self {
        Self {
            permissions: mappings.patterns_of(&role),
            is_mapped: mappings.get(&role).is_some(),
            role,
        }
    }
}

/// Returns all roles of the organization: first the built-in ones, then its own roles by name.
#[must_use]
pub fn list(scope: &MembershipScope<permission::RoleRead>) -> Vec<MappedRole> {
    let mappings = &scope.organization().roles;
    let own = mappings.iter().map(|(role, _)| role.clone());
    let own = own.filter(|role| !Role::BUILT_IN.contains(role));
    let roles = Role::BUILT_IN.into_iter().chain(own);
    roles.map(|role| MappedRole::of(role, mappings)).collect()
}

/// Maps a role to permissions, with effect from the next request on. Replaces the previous mapping.
///
/// # Errors
/// - `FORBIDDEN` if the caller lacks one of the permissions, or maps `owner` without being an owner.
/// - `LIMIT_REACHED` if the organization has the maximum number of mapped roles.
pub async fn map(
    cx: &Context,
    scope: &MembershipScope<permission::RoleWrite>,
    uow: &mut dyn UnitOfWork,
    command: MapRole,
) -> Result<MappedRole> {
    let seen = scope.organization();
    ensure_may_map(scope, &command.role, &command.permissions)?;
    if seen.roles.get(&command.role).is_none() {
        let count = u64::try_from(seen.roles.len()).unwrap_or(u64::MAX);
        let message =
            "The organization already maps the maximum number of roles. Remove one first.";
        ensure_below(count, cx.limits.role_mappings_per_organization, message)?;
    }
    let mut next = seen.edit();
    let before = next.roles.set(command.role.clone(), command.permissions);
    let mapped = MappedRole::of(command.role, &next.roles);
    if next == **seen {
        return Ok(mapped);
    }
    let change = json!({ "before": before, "after": mapped.permissions });
    store(cx, uow, seen, next, "role.mapped", &mapped.role, change).await?;
    Ok(mapped)
}

/// Removes the mapping of a role. A built-in role gets its built-in permissions again; another role has none
/// afterwards.
///
/// # Errors
/// - `NOT_FOUND` if the role is not mapped.
/// - `FORBIDDEN` if the caller lacks a permission that the role gets again, or unmaps `owner` without being an owner.
pub async fn unmap(
    cx: &Context,
    scope: &MembershipScope<permission::RoleWrite>,
    uow: &mut dyn UnitOfWork,
    role: &Role,
) -> Result<()> {
    let seen = scope.organization();
    let mut next = seen.edit();
    let before = next
        .roles
        .remove(role)
        .ok_or(Error::NotFound("role mapping"))?;
    let restored = next.roles.patterns_of(role);
    let restored = restored
        .iter()
        .filter_map(|p| PermissionPattern::parse(p).ok());
    ensure_may_map(scope, role, &restored.collect::<Vec<_>>())?;
    let change = json!({ "before": before });
    store(cx, uow, seen, next, "role.unmapped", role, change).await
}

/// Checks that the caller has all of the permissions. Only owners may change the role `owner`.
fn ensure_may_map<G>(
    scope: &MembershipScope<G>,
    role: &Role,
    permissions: &[PermissionPattern],
) -> Result<()> {
    let lacks = permissions.iter().any(|pattern| !scope.holds(pattern));
    if lacks || (*role == Role::OWNER && !scope.is_owner()) {
        return Err(Error::Forbidden);
    }
    Ok(())
}

async fn store(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    seen: &Stored<Organization>,
    next: Organization,
    action: &'static str,
    role: &Role,
    change: serde_json::Value,
) -> Result<()> {
    unaudited::replace(uow, seen, next).await?;
    let event = AuditEvent {
        platform_id: seen.platform_id.clone(),
        action,
        entity_id: format!("{}/{role}", seen.id),
        details: Some(change),
    };
    audited::record_event(cx, uow, event).await?;
    let changed = Effect::OrganizationAccessChanged(seen.id.clone());
    uow.effects().add(changed);
    Ok(())
}
