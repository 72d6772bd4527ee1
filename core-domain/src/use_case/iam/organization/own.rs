//! A person's own organizations: created, listed, chosen, changed, deleted.

use super::active::set_active;
use super::create::{NewOrganization, create, slug_is_taken};
use super::member::act_for_nothing;
use super::own_membership::{OwnMembership, own_membership};
use super::refusal::refused;
use crate::access::{PersonScope, SessionScope, audited, unowned};
use crate::iam::{
    Invitation, InvitationQuery, MAX_MEMBERS, Member, MemberQuery, Organization,
    OrganizationMetadata, OrganizationQuery, OrganizationType, Session, UpdateOrganization,
};
use crate::kernel::{
    Code, Context, Effect, Error, JsonText, Line, Name, OrganizationId, Permission, Result, Slug,
    Stored,
};
use crate::port::UnitOfWork;

/// How many organizations a person belongs to at most as far as lists go.
const MAX_ORGANIZATIONS: u32 = 100;

/// An organization that a person creates.
#[derive(Clone, Debug)]
pub struct NewOwnOrganization {
    /// What people call it.
    pub name: Name,
    /// Its name in addresses.
    pub slug: Slug,
    /// Address of its picture.
    pub logo: Option<Line<0, 2048>>,
    /// What its members keep with it.
    pub metadata: Option<OrganizationMetadata>,
    /// Whether the session goes on to act for what it acts for.
    pub keep_active: bool,
}

/// Creates an organization that the person owns; their session acts for it, unless they say otherwise.
///
/// # Errors
/// `ORGANIZATION_ALREADY_EXISTS` when the slug is taken.
pub async fn create_own(
    cx: &Context,
    scope: &PersonScope,
    session: &SessionScope,
    uow: &mut dyn UnitOfWork,
    new: NewOwnOrganization,
) -> Result<OwnMembership> {
    let keep_active = new.keep_active;
    let new = NewOrganization {
        name: new.name,
        slug: new.slug,
        kind: OrganizationType::Tenant,
        platform_id: None,
        logo: new.logo,
        metadata: new.metadata.map(JsonText::from),
        owner: Some(scope.user_id().clone()),
    };
    let created = create(cx, scope, uow, new).await.map_err(exists)?;
    if !keep_active {
        set_active(cx, scope, uow, session.session_id(), &created.id).await?;
    }
    let own = own_membership(scope, uow, &created.id).await?;
    own.ok_or_else(|| Error::Internal("a new organization has no owner".to_owned()))
}

fn exists(error: Error) -> Error {
    match error.code() {
        Code::SlugTaken => refused(Code::OrganizationAlreadyExists),
        _ => error,
    }
}

/// Tells whether a slug is free.
///
/// # Errors
/// `ORGANIZATION_SLUG_ALREADY_TAKEN`.
pub async fn check_slug(_: &PersonScope, uow: &mut dyn UnitOfWork, slug: &Slug) -> Result<()> {
    if slug_is_taken(uow, slug).await? {
        return Err(refused(Code::OrganizationSlugTaken));
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

/// Which organization is meant.
#[derive(Clone, Debug)]
pub enum OrganizationName {
    /// The one with this id.
    Id(OrganizationId),
    /// The one with this slug.
    Slug(Slug),
}

/// The person's membership in the organization that is meant: the one the session acts for, when none is named.
///
/// # Errors
/// When the store failed.
pub async fn find_own(
    scope: &PersonScope,
    session: &SessionScope,
    uow: &mut dyn UnitOfWork,
    name: Option<OrganizationName>,
) -> Result<FoundOrganization> {
    let id = match name {
        Some(OrganizationName::Id(id)) => Some(id),
        Some(OrganizationName::Slug(slug)) => {
            let with_slug = OrganizationQuery::WithSlug(slug);
            let found = unowned::<Organization>(uow).first(&with_slug).await?;
            match found {
                Some(found) => Some(found.id.clone()),
                None => return Ok(FoundOrganization::NotAMember),
            }
        }
        None => {
            let session = unowned::<Session>(uow).find(session.session_id()).await?;
            session.and_then(|session| session.active_organization_id.clone())
        }
    };
    let Some(id) = id else {
        return Ok(FoundOrganization::NoneActive);
    };
    let own = own_membership(scope, uow, &id).await?;
    Ok(own.map_or(FoundOrganization::NotAMember, |own| {
        FoundOrganization::Own(Box::new(own))
    }))
}

/// The organization that is meant, as far as the person reaches it.
#[derive(Clone, Debug)]
pub enum FoundOrganization {
    /// One of theirs.
    Own(Box<OwnMembership>),
    /// None was named, and the session acts for none.
    NoneActive,
    /// There is none, or it is not theirs: nobody is told which.
    NotAMember,
}

impl FoundOrganization {
    /// One of theirs, or the refusal of the route.
    ///
    /// # Errors
    /// With the code given for the case.
    pub fn own(self, none_active: Code, not_a_member: Code) -> Result<OwnMembership> {
        match self {
            Self::Own(own) => Ok(*own),
            Self::NoneActive => Err(refused(none_active)),
            Self::NotAMember => Err(refused(not_a_member)),
        }
    }
}

/// Lets the session act for an organization of the person's.
///
/// # Errors
/// `UNAUTHORIZED` when the session has ended.
pub async fn activate(
    cx: &Context,
    scope: &PersonScope,
    session: &SessionScope,
    uow: &mut dyn UnitOfWork,
    own: &OwnMembership,
) -> Result<Stored<Session>> {
    set_active(cx, scope, uow, session.session_id(), &own.organization.id).await
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

/// Changes an organization.
///
/// # Errors
/// `YOU_ARE_NOT_ALLOWED_TO_UPDATE_THIS_ORGANIZATION`; `ORGANIZATION_SLUG_ALREADY_TAKEN`.
pub async fn update_own(
    cx: &Context,
    scope: &PersonScope,
    uow: &mut dyn UnitOfWork,
    own: &OwnMembership,
    command: UpdateOrganization,
) -> Result<Stored<Organization>> {
    if !own.may(Permission::OrganizationUpdate) {
        return Err(refused(Code::NotAllowedToUpdateOrganization));
    }
    let seen = &own.organization;
    if let Some(slug) = &command.slug
        && *slug != seen.slug
        && slug_is_taken(uow, slug).await?
    {
        return Err(refused(Code::OrganizationSlugTaken));
    }
    let mut next = seen.edit();
    command.apply_to(&mut next);
    audited::replace(cx, scope, uow, seen, next, "organization.updated").await
}

/// Deletes an organization with its memberships and invitations. One that has a platform stays: the platform goes first.
///
/// # Errors
/// `YOU_ARE_NOT_ALLOWED_TO_DELETE_THIS_ORGANIZATION`; `CONFLICT` when it has a platform or operates the installation.
pub(in crate::use_case) async fn delete_own(
    cx: &Context,
    scope: &PersonScope,
    uow: &mut dyn UnitOfWork,
    own: &OwnMembership,
    has_platforms: bool,
) -> Result<()> {
    let seen = &own.organization;
    if !own.may(Permission::OrganizationDelete) {
        return Err(refused(Code::NotAllowedToDeleteOrganization));
    }
    if seen.operates() || has_platforms || seen.platform_id.is_some() {
        let message = "The organization has a platform, which must be deleted first.";
        return Err(Error::refused(Code::Conflict, message));
    }
    let members = MemberQuery::OfOrganization(seen.id.clone());
    let limit = u32::try_from(MAX_MEMBERS).unwrap_or(u32::MAX);
    for member in unowned::<Member>(uow).list(&members, limit).await? {
        act_for_nothing(uow, &seen.id, &member.user_id).await?;
    }
    unowned::<Member>(uow).remove_all(&members).await?;
    let invitations = InvitationQuery::OfOrganization(seen.id.clone());
    unowned::<Invitation>(uow).remove_all(&invitations).await?;
    audited::remove(cx, scope, uow, seen, "organization.deleted").await?;
    uow.effects()
        .add(Effect::OrganizationAccessChanged(seen.id.clone()));
    Ok(())
}
