//! Scopes on one organization: its members, roles, grants, invitations and keys.

use std::marker::PhantomData;
use std::ops::Deref;

use super::records::covers_unowned;
use super::records::unowned;
use super::signed_in::ensure_not_suspended;
use crate::iam::{
    Invitation, Member, MemberQuery, Organization, OrganizationQuery, Session, membership,
};
use crate::kernel::{
    Caller, Code, Context, Error, Grant, GrantId, InvitationId, Membership, OrganizationId,
    Permission, PermissionPattern, PermissionSet, Record, Result, Role, Roles, Slug, Stored,
    UserId,
};
use crate::port::UnitOfWork;

/// The organization that a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrganizationRef<'a> {
    /// The organization with this id.
    Id(&'a OrganizationId),
    /// The organization with this slug.
    Slug(&'a Slug),
    /// The organization that the caller's session or API key acts for.
    Active,
}

impl<'a> OrganizationRef<'a> {
    /// The organization with this id; without one, the active organization.
    #[must_use]
    pub fn id_or_active(id: Option<&'a OrganizationId>) -> Self {
        id.map_or(Self::Active, Self::Id)
    }
}

/// An organization that the caller belongs to or operates. Every scope on an organization dereferences to it.
#[derive(Clone, Debug)]
pub struct OrganizationAccess {
    organization: Stored<Organization>,
    member: Option<Stored<Member>>,
    /// `None` for a caller who operates the installation.
    own: Option<Membership>,
}

impl OrganizationAccess {
    /// The organization, as it was when the scope was opened.
    #[must_use]
    pub const fn organization(&self) -> &Stored<Organization> {
        &self.organization
    }

    /// The caller's own membership; `None` for an API key, and for an operator who is no member.
    #[must_use]
    pub const fn member(&self) -> Option<&Stored<Member>> {
        self.member.as_ref()
    }

    /// Tells whether the caller holds everything that a pattern stands for.
    #[must_use]
    pub fn holds(&self, pattern: &PermissionPattern) -> bool {
        let own = self.own.as_ref();
        own.is_none_or(|own| own.permissions.covers(pattern.as_str()))
    }

    /// Tells whether the caller holds everything that the organization's roles of these names allow.
    #[must_use]
    pub fn holds_roles(&self, roles: &Roles) -> bool {
        let mappings = &self.organization.roles;
        let patterns = roles.iter().flat_map(|role| mappings.patterns_of(&role));
        let mut patterns = patterns.filter_map(|pattern| PermissionPattern::parse(&pattern).ok());
        patterns.all(|pattern| self.holds(&pattern))
    }

    /// The caller's permissions in the organization.
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

    /// Returns the scope on the same organization for `H`.
    ///
    /// # Errors
    /// `FORBIDDEN` if the caller lacks the permission.
    pub fn also<H: Grant>(&self) -> Result<MembershipScope<H>> {
        self.ensure_allowed(H::PERMISSION)?;
        Ok(MembershipScope {
            access: self.clone(),
            grant: PhantomData,
        })
    }

    fn ensure_allowed(&self, permission: Permission) -> Result<()> {
        let own = self.own.as_ref();
        if own.is_none_or(|own| own.permissions.allows(permission)) {
            Ok(())
        } else {
            Err(Error::Forbidden)
        }
    }
}

/// An organization that the caller was let in to do `G` in. Only [`authorize_membership`] makes one.
#[derive(Clone, Debug)]
pub struct MembershipScope<G> {
    access: OrganizationAccess,
    grant: PhantomData<fn() -> G>,
}

impl<G> Deref for MembershipScope<G> {
    type Target = OrganizationAccess;

    fn deref(&self) -> &OrganizationAccess {
        &self.access
    }
}

/// An organization that the caller belongs to, for what needs no permission. Only [`authorize_member`] makes one.
#[derive(Clone, Debug)]
pub struct MemberScope(OrganizationAccess);

impl Deref for MemberScope {
    type Target = OrganizationAccess;

    fn deref(&self) -> &OrganizationAccess {
        &self.0
    }
}

covers_unowned! {
    MembershipScope<G>, for G, audited in |scope| scope.organization.platform_id.as_ref();
    MemberScope, audited in |scope| scope.0.organization.platform_id.as_ref();
}

/// Lets the caller in to an organization, to do `G`: its members by their roles and grants as they are now, its API keys by
/// their scopes, operators to every organization. A foreign organization is "not found", exactly as a missing one.
///
/// # Errors
/// In this order: `UNAUTHORIZED`; `NO_ACTIVE_ORGANIZATION` and `NOT_FOUND` if the organization cannot be found; `FORBIDDEN`;
/// `PLATFORM_SUSPENDED` for callers who are no operators.
pub async fn authorize_membership<G: Grant>(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    organization: OrganizationRef<'_>,
) -> Result<MembershipScope<G>> {
    let access = access(cx, uow, organization).await?;
    access.ensure_allowed(G::PERMISSION)?;
    let platform = access.organization.platform_id.as_ref();
    ensure_not_suspended(cx, uow, platform).await?;
    Ok(MembershipScope {
        access,
        grant: PhantomData,
    })
}

/// Lets the caller in to an organization that they belong to or operate, whatever their permissions are.
///
/// # Errors
/// As [`authorize_membership`], without `FORBIDDEN`.
pub async fn authorize_member(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    organization: OrganizationRef<'_>,
) -> Result<MemberScope> {
    let access = access(cx, uow, organization).await?;
    let platform = access.organization.platform_id.as_ref();
    ensure_not_suspended(cx, uow, platform).await?;
    Ok(MemberScope(access))
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
    authorize_owner_of(cx, uow, &member.organization_id, MISSING).await
}

/// As [`authorize_membership`], in the organization that an invitation is to.
///
/// # Errors
/// As [`authorize_membership`]; `NOT_FOUND` for an invitation that does not exist or is foreign.
pub async fn authorize_invitation<G: Grant>(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    invitation: &InvitationId,
) -> Result<MembershipScope<G>> {
    const MISSING: Error = Error::NotFound(Invitation::KIND);
    if cx.caller.is_anonymous() {
        return Err(Error::Unauthorized);
    }
    let found = unowned::<Invitation>(uow).find(invitation).await?;
    let found = found.ok_or(MISSING)?;
    authorize_owner_of(cx, uow, &found.organization_id, MISSING).await
}

/// Opens the scope on the organization that owns a record. A foreign record is missing, as the record's own kind.
async fn authorize_owner_of<G: Grant>(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    organization: &OrganizationId,
    missing: Error,
) -> Result<MembershipScope<G>> {
    let opened = authorize_membership(cx, uow, OrganizationRef::Id(organization)).await;
    opened.map_err(|error| match error {
        Error::NotFound(_) => missing,
        error => error,
    })
}

/// Finds the organization that a request is about, whether it is the caller's or not.
///
/// # Errors
/// `NO_ACTIVE_ORGANIZATION` if none is named and the caller acts for none; `NOT_FOUND`.
pub(crate) async fn find_organization(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    organization: OrganizationRef<'_>,
) -> Result<Stored<Organization>> {
    match organization {
        OrganizationRef::Id(id) => unowned::<Organization>(uow).get(id).await,
        OrganizationRef::Slug(slug) => {
            let with_slug = OrganizationQuery::WithSlug(slug.clone());
            let found = unowned::<Organization>(uow).first(&with_slug).await?;
            found.ok_or(Error::NotFound(Organization::KIND))
        }
        OrganizationRef::Active => {
            let active = active_organization(cx, uow).await?;
            let active = active.ok_or_else(|| Error::of_code(Code::NoActiveOrganization))?;
            unowned::<Organization>(uow).get(&active).await
        }
    }
}

/// The organization that the caller acts for: a session's is read anew, because it changes between requests.
async fn active_organization(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
) -> Result<Option<OrganizationId>> {
    let Some(session) = cx.caller.session_id() else {
        let own = cx.caller.membership();
        return Ok(own.map(|own| own.organization_id.clone()));
    };
    let session = unowned::<Session>(uow).find(session).await?;
    Ok(session.and_then(|session| session.active_organization_id.clone()))
}

async fn access(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    organization: OrganizationRef<'_>,
) -> Result<OrganizationAccess> {
    if cx.caller.is_anonymous() {
        return Err(Error::Unauthorized);
    }
    let organization = find_organization(cx, uow, organization).await?;
    let member = match cx.caller.person_id() {
        Some(user) => find_member(uow, &organization.id, user).await?,
        None => None,
    };
    if cx.caller.is_operator() {
        return Ok(OrganizationAccess {
            organization,
            member,
            own: None,
        });
    }
    let own = match (&*cx.caller, &member) {
        (Caller::ApiKey { membership, .. }, _) => {
            let of_key = membership.clone();
            of_key.filter(|own| own.organization_id == organization.id)
        }
        (_, Some(member)) => Some(membership(&organization, member, uow.now().await?)),
        (_, None) => None,
    };
    Ok(OrganizationAccess {
        own: Some(own.ok_or(Error::NotFound(Organization::KIND))?),
        organization,
        member,
    })
}

/// Somebody's membership in an organization.
///
/// # Errors
/// When the store failed.
pub(crate) async fn find_member(
    uow: &mut dyn UnitOfWork,
    organization: &OrganizationId,
    user: &UserId,
) -> Result<Option<Stored<Member>>> {
    let of = MemberQuery::Of(organization.clone(), user.clone());
    unowned::<Member>(uow).first(&of).await
}

/// What somebody may do in an organization now, if they are a member.
pub(super) async fn membership_of(
    uow: &mut dyn UnitOfWork,
    organization: &Organization,
    user: &UserId,
) -> Result<Option<Membership>> {
    let member = find_member(uow, &organization.id, user).await?;
    let now = uow.now().await?;
    Ok(member.map(|member| membership(organization, &member, now)))
}
