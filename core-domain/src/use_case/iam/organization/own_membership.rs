//! What a person is in an organization of theirs.

use crate::access::{PersonScope, find_member, unowned};
use crate::iam::{Member, Organization, membership};
use crate::kernel::{
    Membership, OrganizationId, Permission, PermissionPattern, Result, Role, Roles, Stored,
};
use crate::port::UnitOfWork;

/// A person in an organization of theirs, and what they may do in it.
#[derive(Clone, Debug)]
pub struct OwnMembership {
    /// The organization.
    pub organization: Stored<Organization>,
    /// The membership.
    pub member: Stored<Member>,
    /// What it lets the person do.
    pub may: Membership,
}

impl OwnMembership {
    pub(super) fn may(&self, permission: Permission) -> bool {
        self.may.permissions.allows(permission)
    }

    /// Whether the person may do everything that the roles allow: nobody gives what they lack.
    pub(super) fn holds_all_of(&self, roles: &Roles) -> bool {
        let mappings = &self.organization.roles;
        let patterns = roles.iter().flat_map(|role| mappings.patterns_of(&role));
        let mut patterns = patterns.filter_map(|pattern| PermissionPattern::parse(&pattern).ok());
        patterns.all(|pattern| self.may.permissions.covers(pattern.as_str()))
    }

    pub(super) fn is_owner(&self) -> bool {
        self.member.role.contains(&Role::OWNER)
    }
}

/// The person's membership in an organization, if they are a member.
///
/// # Errors
/// When the store failed.
pub async fn own_membership(
    scope: &PersonScope,
    uow: &mut dyn UnitOfWork,
    organization: &OrganizationId,
) -> Result<Option<OwnMembership>> {
    let Some(organization) = unowned::<Organization>(uow).find(organization).await? else {
        return Ok(None);
    };
    let Some(member) = find_member(uow, &organization.id, scope.user_id()).await? else {
        return Ok(None);
    };
    let now = uow.now().await?;
    Ok(Some(OwnMembership {
        may: membership(&organization, &member, now),
        organization,
        member,
    }))
}
