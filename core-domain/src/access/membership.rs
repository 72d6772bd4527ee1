//! Scopes on one organization: its members, roles, grants, invitations and keys.

use std::marker::PhantomData;

use super::covers::covers_unowned;
use super::member::membership_of;
use super::platform::suspended;
use super::records::unowned;
use crate::iam::{Member, Organization, PlatformSuspension};
use crate::kernel::{
    Caller, Context, Error, Grant, GrantId, Membership, OrganizationId, PermissionPattern,
    PermissionSet, Record, Result, Role, Stored,
};
use crate::port::UnitOfWork;

/// An organization that the caller was let in to do `G` in. Only [`authorize_membership`] makes one.
#[derive(Clone, Debug)]
pub struct MembershipScope<G> {
    organization: Stored<Organization>,
    /// `None` for who operates the installation.
    own: Option<Membership>,
    grant: PhantomData<fn() -> G>,
}

impl<G> MembershipScope<G> {
    /// The organization, as it was when the scope was opened.
    #[must_use]
    pub const fn organization(&self) -> &Stored<Organization> {
        &self.organization
    }

    /// Tells whether the caller holds everything that a pattern stands for.
    #[must_use]
    pub fn holds(&self, pattern: &PermissionPattern) -> bool {
        let own = self.own.as_ref();
        own.is_none_or(|own| own.permissions.covers(pattern.as_str()))
    }

    /// What the caller may in the organization.
    pub(super) fn permissions(&self) -> PermissionSet {
        match &self.own {
            Some(own) => own.permissions.clone(),
            None => PermissionSet::new(["*:*"]),
        }
    }

    /// Tells whether the caller owns the organization, or operates the installation.
    #[must_use]
    pub fn is_owner(&self) -> bool {
        let own = self.own.as_ref();
        own.is_none_or(|own| own.role.contains(&Role::OWNER))
    }

    /// Tells whether the caller operates the installation.
    #[must_use]
    pub const fn is_operator(&self) -> bool {
        self.own.is_none()
    }
}

covers_unowned! { MembershipScope<G>, for G; }

/// Lets the caller in to an organization, to do `G`: its members by their roles and grants as they are now, its API keys by
/// their scopes, operators to every organization. A foreign organization is "not found", exactly as a missing one.
///
/// # Errors
/// In this order: `UNAUTHORIZED`; `NOT_FOUND`; `FORBIDDEN`; `PLATFORM_SUSPENDED` for whoever is no operator.
pub async fn authorize_membership<G: Grant>(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    organization: &OrganizationId,
) -> Result<MembershipScope<G>> {
    if cx.caller.is_anonymous() {
        return Err(Error::Unauthorized);
    }
    let organization = unowned::<Organization>(uow).get(organization).await?;
    let own = if cx.caller.is_operator() {
        None
    } else {
        let own = membership_in(cx, uow, &organization).await?;
        let own = own.ok_or(Error::NotFound(Organization::KIND))?;
        if !own.permissions.allows(G::PERMISSION) {
            return Err(Error::Forbidden);
        }
        ensure_not_suspended(uow, &organization).await?;
        Some(own)
    };
    Ok(MembershipScope {
        organization,
        own,
        grant: PhantomData,
    })
}

/// As [`authorize_membership`], in the organization of the membership that a grant belongs to.
///
/// # Errors
/// As [`authorize_membership`]; `NOT_FOUND` for a grant whose membership does not exist or is foreign.
pub async fn authorize_grant<G: Grant>(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    grant: &GrantId,
) -> Result<MembershipScope<G>> {
    const MISSING: Error = Error::NotFound("grant");
    if cx.caller.is_anonymous() {
        return Err(Error::Unauthorized);
    }
    let member = grant.member().ok_or(MISSING)?;
    let member = unowned::<Member>(uow).find(&member).await?.ok_or(MISSING)?;
    let opened = authorize_membership(cx, uow, &member.organization_id).await;
    opened.map_err(|error| match error {
        Error::NotFound(_) => MISSING,
        error => error,
    })
}

async fn membership_in(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    organization: &Stored<Organization>,
) -> Result<Option<Membership>> {
    match &*cx.caller {
        Caller::User { user_id, .. } => membership_of(uow, organization, user_id).await,
        Caller::ApiKey { membership, .. } => {
            let own = membership.organization_id == organization.id;
            Ok(own.then(|| membership.clone()))
        }
        _ => Ok(None),
    }
}

async fn ensure_not_suspended(uow: &mut dyn UnitOfWork, organization: &Organization) -> Result<()> {
    let Some(platform) = &organization.platform_id else {
        return Ok(());
    };
    let suspension = unowned::<PlatformSuspension>(uow).find(platform).await?;
    suspension.map_or(Ok(()), |_| Err(suspended()))
}
