//! What the roles of an organization allow.

use serde_json::json;

use crate::access::{AuditEvent, MembershipScope, audited, ensure_below, unaudited};
use crate::iam::{MapRole, Organization, RoleMappings};
use crate::kernel::{Context, Effect, Error, PermissionPattern, Result, Role, Stored, grant};
use crate::port::UnitOfWork;

/// A role and what it allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedRole {
    /// The role.
    pub role: Role,
    /// What it allows, as patterns.
    pub permissions: Vec<String>,
    /// Whether the organization has said so; a built-in role allows what it allows by itself otherwise.
    pub mapped: bool,
}

impl MappedRole {
    fn of(role: Role, mappings: &RoleMappings) -> Self {
        Self {
            permissions: mappings.patterns_of(&role),
            mapped: mappings.get(&role).is_some(),
            role,
        }
    }
}

/// Every role of the organization: the built-in ones, and those of its own by name.
#[must_use]
pub fn list(scope: &MembershipScope<grant::RoleRead>) -> Vec<MappedRole> {
    let mappings = &scope.organization().roles;
    let own = mappings.iter().map(|(role, _)| role.clone());
    let own = own.filter(|role| !Role::BUILT_IN.contains(role));
    let roles = Role::BUILT_IN.into_iter().chain(own);
    roles.map(|role| MappedRole::of(role, mappings)).collect()
}

/// Maps a role, in place of what it was mapped to; from the next request on.
///
/// # Errors
/// `FORBIDDEN` when the caller lacks some of it, or is no owner and maps that role; `LIMIT_REACHED` when the organization
/// maps as many roles as it may map.
pub async fn map(
    cx: &Context,
    scope: &MembershipScope<grant::RoleWrite>,
    uow: &mut dyn UnitOfWork,
    command: MapRole,
) -> Result<MappedRole> {
    let seen = scope.organization();
    ensure_may_map(scope, &command.role, &command.permissions)?;
    if seen.roles.get(&command.role).is_none() {
        let count = u64::try_from(seen.roles.len()).unwrap_or(u64::MAX);
        let message = "The organization maps as many roles as it may map. Remove one first.";
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

/// Takes the mapping of a role away: a built-in one allows what it allows by itself again, another one nothing.
///
/// # Errors
/// `NOT_FOUND` for a role that is not mapped; `FORBIDDEN` as for [`map`].
pub async fn unmap(
    cx: &Context,
    scope: &MembershipScope<grant::RoleWrite>,
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

/// Nobody gives what they lack, and what owners may is theirs to say.
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
    audited::event(cx, uow, event).await?;
    let changed = Effect::OrganizationAccessChanged(seen.id.clone());
    uow.effects().add(changed);
    Ok(())
}
