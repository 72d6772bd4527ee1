//! Scopes on one organization: its members, roles, grants, invitations and API keys.

use std::marker::PhantomData;
use std::ops::Deref;

use super::records::covers_unowned;
use super::records::unowned_records;
use super::signed_in::ensure_not_suspended;
use crate::iam::{
    Invitation, Member, MemberQuery, Organization, OrganizationQuery, Session, membership,
};
use crate::kernel::{
    Caller, Code, Context, Error, GrantId, InvitationId, Membership, OrganizationId, Permission,
    PermissionPattern, PermissionSet, PermissionType, Record, Result, Role, Roles, Slug, Stored,
    UserId,
};
use crate::port::UnitOfWork;

/// A reference to the organization that a request addresses.
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
    /// Returns a reference by id, or to the active organization if `id` is `None`.
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
    /// `None` if the caller operates the installation.
    membership: Option<Membership>,
}

impl OrganizationAccess {
    /// The organization, as read when the scope was created.
    #[must_use]
    pub const fn organization(&self) -> &Stored<Organization> {
        &self.organization
    }

    /// The caller's membership record; `None` for an API key, and for an operator who is not a member.
    #[must_use]
    pub const fn member(&self) -> Option<&Stored<Member>> {
        self.member.as_ref()
    }

    /// Returns whether the caller has every permission that the pattern matches.
    #[must_use]
    pub fn holds(&self, pattern: &PermissionPattern) -> bool {
        let own = self.membership.as_ref();
        own.is_none_or(|own| own.permissions.covers(pattern.as_str()))
    }

    /// Returns whether the caller has every permission of the given roles of the organization.
    #[must_use]
    pub fn has_permissions_of_roles(&self, roles: &Roles) -> bool {
        let mappings = &self.organization.roles;
        let patterns = roles.iter().flat_map(|role| mappings.patterns_of(&role));
        let mut patterns = patterns.filter_map(|pattern| PermissionPattern::parse(&pattern).ok());
        patterns.all(|pattern| self.holds(&pattern))
    }

    /// Returns the caller's permissions in the organization; an operator has `*:*`.
    pub(super) fn permissions(&self) -> PermissionSet {
        match &self.membership {
            Some(own) => own.permissions.clone(),
            None => PermissionSet::new(["*:*"]),
        }
    }

    /// Returns whether the caller owns the organization or operates the installation.
    #[must_use]
    pub fn is_owner(&self) -> bool {
        let own = self.membership.as_ref();
        own.is_none_or(|own| own.roles.contains(&Role::OWNER))
    }

    /// Returns whether the caller operates the installation.
    #[must_use]
    pub const fn is_operator(&self) -> bool {
        self.membership.is_none()
    }

    /// Returns the scope on the same organization for `H`.
    pub fn authorize<H: PermissionType>(&self) -> Result<MembershipScope<H>> {
        self.ensure_allowed(H::PERMISSION)?;
        Ok(MembershipScope {
            access: self.clone(),
            permission: PhantomData,
        })
    }

    fn ensure_allowed(&self, permission: Permission) -> Result<()> {
        let own = self.membership.as_ref();
        if own.is_none_or(|own| own.permissions.allows(permission)) {
            Ok(())
        } else {
            Err(Error::Forbidden)
        }
    }
}

/// An organization in which the caller is authorized to do `G`. Only [`authorize_membership`] creates one.
#[derive(Clone, Debug)]
pub struct MembershipScope<G> {
    access: OrganizationAccess,
    permission: PhantomData<fn() -> G>,
}

impl<G> Deref for MembershipScope<G> {
    type Target = OrganizationAccess;

    fn deref(&self) -> &OrganizationAccess {
        &self.access
    }
}

/// An organization that the caller belongs to, for operations without a permission. Only [`authorize_member`] creates
/// one.
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

/// Authorizes the caller to do `G` in an organization. Members are checked by their current roles and grants, API keys
/// by their scopes. Operators have access to every organization. An organization of another tenant is reported as
/// missing.
///
/// # Errors
/// In this order:
/// - `UNAUTHORIZED` if the caller is anonymous.
/// - `NO_ACTIVE_ORGANIZATION` if the request names no organization and the caller acts for none.
/// - `NOT_FOUND` if the organization is missing or the caller does not belong to it.
/// - `FORBIDDEN` if the caller lacks `G`.
/// - `PLATFORM_SUSPENDED` if the organization's platform is suspended and the caller is not an operator.
pub async fn authorize_membership<G: PermissionType>(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    organization: OrganizationRef<'_>,
) -> Result<MembershipScope<G>> {
    let access = find_access(cx, uow, organization).await?;
    access.ensure_allowed(G::PERMISSION)?;
    let platform = access.organization.platform_id.as_ref();
    ensure_not_suspended(cx, uow, platform).await?;
    Ok(MembershipScope {
        access,
        permission: PhantomData,
    })
}

/// Authorizes the caller in an organization that they belong to or operate. Requires no permission.
///
/// # Errors
/// Those of [`authorize_membership`], except `FORBIDDEN`.
pub async fn authorize_member(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    organization: OrganizationRef<'_>,
) -> Result<MemberScope> {
    let access = find_access(cx, uow, organization).await?;
    let platform = access.organization.platform_id.as_ref();
    ensure_not_suspended(cx, uow, platform).await?;
    Ok(MemberScope(access))
}

/// Authorizes the caller to do `G` in the organization of the member who has the grant; see [`authorize_membership`].
///
/// # Errors
/// Those of [`authorize_membership`]; `NOT_FOUND` if the grant's member is missing or out of the caller's reach.
pub async fn authorize_grant<G: PermissionType>(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    grant: &GrantId,
) -> Result<MembershipScope<G>> {
    const MISSING: Error = Error::NotFound("grant");
    if cx.caller.is_anonymous() {
        return Err(Error::Unauthorized);
    }
    let member = grant.member().ok_or(MISSING)?;
    let member = unowned_records::<Member>(uow)
        .find(&member)
        .await?
        .ok_or(MISSING)?;
    authorize_owner_of(cx, uow, &member.organization_id, MISSING).await
}

/// Authorizes the caller to do `G` in the organization of an invitation; see [`authorize_membership`].
///
/// # Errors
/// Those of [`authorize_membership`]; `NOT_FOUND` if the invitation is missing or out of the caller's reach.
pub async fn authorize_invitation<G: PermissionType>(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    invitation: &InvitationId,
) -> Result<MembershipScope<G>> {
    const MISSING: Error = Error::NotFound(Invitation::KIND);
    if cx.caller.is_anonymous() {
        return Err(Error::Unauthorized);
    }
    let found = unowned_records::<Invitation>(uow).find(invitation).await?;
    let found = found.ok_or(MISSING)?;
    authorize_owner_of(cx, uow, &found.organization_id, MISSING).await
}

/// Authorizes the caller in the organization that owns a record. If the organization is out of the caller's reach,
/// returns `missing`.
async fn authorize_owner_of<G: PermissionType>(
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

/// Finds the organization that a request addresses. Does not check whether the caller belongs to it.
///
/// # Errors
/// - `NO_ACTIVE_ORGANIZATION` if the request names no organization and the caller acts for none.
/// - `NOT_FOUND` if the organization does not exist.
pub(crate) async fn find_organization(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    organization: OrganizationRef<'_>,
) -> Result<Stored<Organization>> {
    match organization {
        OrganizationRef::Id(id) => unowned_records::<Organization>(uow).get(id).await,
        OrganizationRef::Slug(slug) => {
            let with_slug = OrganizationQuery::WithSlug(slug.clone());
            let found = unowned_records::<Organization>(uow)
                .first(&with_slug)
                .await?;
            found.ok_or(Error::NotFound(Organization::KIND))
        }
        OrganizationRef::Active => {
            let active = active_organization(cx, uow).await?;
            let active = active.ok_or_else(|| Error::of_code(Code::NoActiveOrganization))?;
            unowned_records::<Organization>(uow).get(&active).await
        }
    }
}

/// Returns the organization that the caller acts for. Reads the session again, because its organization can change
/// between requests.
async fn active_organization(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
) -> Result<Option<OrganizationId>> {
    let Some(session) = cx.caller.session_id() else {
        let own = cx.caller.membership();
        return Ok(own.map(|own| own.organization_id.clone()));
    };
    let session = unowned_records::<Session>(uow).find(session).await?;
    Ok(session.and_then(|session| session.active_organization_id.clone()))
}

async fn find_access(
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
            membership: None,
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
        membership: Some(own.ok_or(Error::NotFound(Organization::KIND))?),
        organization,
        member,
    })
}

/// Returns a user's membership in an organization.
///
/// # Errors
/// Only those of the store.
pub(crate) async fn find_member(
    uow: &mut dyn UnitOfWork,
    organization: &OrganizationId,
    user: &UserId,
) -> Result<Option<Stored<Member>>> {
    let of = MemberQuery::Of(organization.clone(), user.clone());
    unowned_records::<Member>(uow).first(&of).await
}

/// Returns a user's current roles and permissions in an organization; `None` if the user is not a member.
pub(super) async fn membership_of(
    uow: &mut dyn UnitOfWork,
    organization: &Organization,
    user: &UserId,
) -> Result<Option<Membership>> {
    let member = find_member(uow, &organization.id, user).await?;
    let now = uow.now().await?;
    Ok(member.map(|member| membership(organization, &member, now)))
}
