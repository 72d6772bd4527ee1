//! A person's own organizations: created, listed, chosen, changed, deleted.

use super::active::set_active;
use super::create::{NewOrganization, create, slug_is_taken};
use super::member::act_for_nothing;
use crate::access::{
    Batches, MembershipScope, NewOrganizationScope, OrganizationRef, PersonScope, SessionScope,
    audited, find_member, find_organization, unowned,
};
use crate::iam::{
    Invitation, InvitationQuery, Member, MemberQuery, Organization, OrganizationMetadata,
    OrganizationType, Session, UpdateOrganization,
};
use crate::kernel::{
    Code, Context, Effect, Error, JsonText, Line, OrganizationName, Result, Slug, Stored, grant,
};
use crate::port::UnitOfWork;

/// How many organizations a person belongs to at most as far as lists go.
const MAX_ORGANIZATIONS: u32 = 100;

/// An organization that a person creates.
#[derive(Clone, Debug)]
pub struct NewOwnOrganization {
    /// The organization's name.
    pub name: OrganizationName,
    /// Its name in addresses.
    pub slug: Slug,
    /// Address of its picture.
    pub logo: Option<Line<0, 2048>>,
    /// What its members keep with it.
    pub metadata: Option<OrganizationMetadata>,
    /// Whether the session goes on to act for what it acts for.
    pub keep_active: bool,
}

/// An organization and its owner's membership.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnOrganization {
    /// The organization.
    pub organization: Stored<Organization>,
    /// The owner's membership.
    pub owner: Stored<Member>,
}

/// Creates an organization that the person owns; their session acts for it, unless they say otherwise.
///
/// # Errors
/// `ORGANIZATION_ALREADY_EXISTS` when the slug is taken; `LIMIT_REACHED`.
pub async fn create_own(
    cx: &Context,
    scope: &NewOrganizationScope,
    uow: &mut dyn UnitOfWork,
    new: NewOwnOrganization,
) -> Result<OwnOrganization> {
    let keep_active = new.keep_active;
    let new = NewOrganization {
        name: new.name.into(),
        slug: new.slug,
        kind: OrganizationType::Tenant,
        platform_id: None,
        logo: new.logo,
        metadata: new.metadata.map(JsonText::from),
        owner: Some(scope.owner().clone()),
    };
    let organization = create(cx, scope, uow, new).await.map_err(exists)?;
    if let Some(session) = scope.session_id().filter(|_| !keep_active) {
        set_active(cx, scope, uow, session, &organization.id).await?;
    }
    let owner = find_member(uow, &organization.id, scope.owner()).await?;
    let without_owner = || Error::Internal("a new organization has no owner".to_owned());
    Ok(OwnOrganization {
        organization,
        owner: owner.ok_or_else(without_owner)?,
    })
}

fn exists(error: Error) -> Error {
    match error.code() {
        Code::SlugTaken => Error::of_code(Code::OrganizationAlreadyExists),
        _ => error,
    }
}

/// Tells whether a slug is free.
///
/// # Errors
/// `ORGANIZATION_SLUG_ALREADY_TAKEN`.
pub async fn check_slug(_: &PersonScope, uow: &mut dyn UnitOfWork, slug: &Slug) -> Result<()> {
    if slug_is_taken(uow, slug).await? {
        return Err(Error::of_code(Code::OrganizationSlugTaken));
    }
    Ok(())
}

/// The person's organizations, the one they joined first in front.
///
/// # Errors
/// When the store failed.
pub async fn list_own_organizations(
    scope: &PersonScope,
    uow: &mut dyn UnitOfWork,
) -> Result<Vec<Stored<Organization>>> {
    let of = MemberQuery::OfUser(scope.user_id().clone());
    let members = unowned::<Member>(uow).list(&of, MAX_ORGANIZATIONS).await?;
    let mut ids: Vec<&str> = members.iter().map(|m| m.organization_id.as_str()).collect();
    ids.sort_unstable();
    let organizations = unowned::<Organization>(uow).get_many(&ids).await?;
    let joined = members.iter().filter_map(|member| {
        let mut organizations = organizations.iter();
        organizations
            .find(|organization| organization.id == member.organization_id)
            .cloned()
    });
    Ok(joined.collect())
}

/// Lets the session act for an organization of the person's. Whether the organization's platform is suspended does not
/// matter: it is the way to leave a suspended organization behind.
///
/// # Errors
/// `NO_ACTIVE_ORGANIZATION` if none is named and the session acts for none; `NOT_FOUND` for an organization that is unknown
/// or foreign, and for a session that has ended.
pub async fn activate(
    cx: &Context,
    session: &SessionScope,
    uow: &mut dyn UnitOfWork,
    organization: OrganizationRef<'_>,
) -> Result<(Stored<Organization>, Stored<Session>)> {
    let organization = find_organization(cx, uow, organization).await?;
    let id = session.session_id();
    let stored = set_active(cx, session, uow, id, &organization.id).await?;
    Ok((organization, stored))
}

/// Lets the session act for nothing.
///
/// # Errors
/// `UNAUTHORIZED` when the session has ended.
pub async fn deactivate(
    cx: &Context,
    session: &SessionScope,
    uow: &mut dyn UnitOfWork,
) -> Result<Stored<Session>> {
    let seen = unowned::<Session>(uow).find(session.session_id()).await?;
    let seen = seen.ok_or(Error::Unauthorized)?;
    let mut next = seen.edit();
    next.active_organization_id = None;
    let action = "session.organization_changed";
    let stored = audited::replace(&cx.consequence(), session, uow, &seen, next, action).await?;
    uow.effects().add(Effect::SessionChanged(seen.id.clone()));
    Ok(stored)
}

/// Changes the organization.
///
/// # Errors
/// `ORGANIZATION_SLUG_ALREADY_TAKEN`.
pub async fn update(
    cx: &Context,
    scope: &MembershipScope<grant::OrganizationUpdate>,
    uow: &mut dyn UnitOfWork,
    command: UpdateOrganization,
) -> Result<Stored<Organization>> {
    let seen = scope.organization();
    if let Some(slug) = &command.slug
        && *slug != seen.slug
        && slug_is_taken(uow, slug).await?
    {
        return Err(Error::of_code(Code::OrganizationSlugTaken));
    }
    let mut next = seen.edit();
    command.apply_to(&mut next);
    audited::replace(cx, scope, uow, seen, next, "organization.updated").await
}

/// Deletes the organization with its memberships and invitations. One that has a platform stays: the platform goes first.
///
/// # Errors
/// `CONFLICT` when it has a platform or operates the installation.
pub(in crate::use_case) async fn delete(
    cx: &Context,
    scope: &MembershipScope<grant::OrganizationDelete>,
    uow: &mut dyn UnitOfWork,
    has_platforms: bool,
) -> Result<()> {
    let seen = scope.organization();
    if seen.operates() || has_platforms || seen.platform_id.is_some() {
        let message = "The organization has a platform, which must be deleted first.";
        return Err(Error::refused(Code::Conflict, message));
    }
    let members = MemberQuery::OfOrganization(seen.id.clone());
    let mut batches = Batches::of(members.clone());
    while let Some(batch) = batches.next(unowned::<Member>(uow)).await? {
        for member in batch {
            act_for_nothing(uow, &seen.id, &member.user_id).await?;
        }
    }
    unowned::<Member>(uow).remove_all(&members).await?;
    let invitations = InvitationQuery::OfOrganization(seen.id.clone());
    unowned::<Invitation>(uow).remove_all(&invitations).await?;
    audited::remove(cx, scope, uow, seen, "organization.deleted").await?;
    uow.effects()
        .add(Effect::OrganizationAccessChanged(seen.id.clone()));
    Ok(())
}
