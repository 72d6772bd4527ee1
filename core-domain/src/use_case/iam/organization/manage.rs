//! Making organizations with their owner.

use super::member::act_for_nothing;
use crate::access::{
    Batches, Covers, MembershipScope, NewOrganizationScope, OrganizationRef, PersonScope,
    ServiceScope, SessionScope, SystemScope, audited, ensure_can_own_another,
    ensure_room_unless_operator, find_member, find_organization, unaudited, unowned,
};
use crate::iam::{
    CreateOrganization, Invitation, InvitationQuery, Member, MemberQuery, Organization,
    OrganizationMetadata, OrganizationQuery, OrganizationType, RoleMappings, Session,
    UpdateOrganization, User,
};
use crate::kernel::{
    Code, Context, Effect, Error, JsonText, Line, MemberId, Name, OrganizationId, OrganizationName,
    PlatformId, Record, Result, Roles, SessionId, Slug, StoreError, Stored, Unowned, UserId, grant,
};
use crate::port::UnitOfWork;
use crate::use_case::iam::{api_key, user};

/// An organization to be created.
#[derive(Clone, Debug)]
pub(in crate::use_case) struct NewOrganization {
    pub(in crate::use_case) name: Name,
    pub(in crate::use_case) slug: Slug,
    pub(in crate::use_case) kind: OrganizationType,
    pub(in crate::use_case) platform_id: Option<PlatformId>,
    pub(in crate::use_case) logo: Option<Line<0, 2048>>,
    pub(in crate::use_case) metadata: Option<JsonText>,
    /// Who becomes its owner. Without one it has no members yet.
    pub(in crate::use_case) owner: Option<UserId>,
}

/// Creates an organization with its owner's membership.
///
/// # Errors
/// `LIMIT_REACHED` for an owner with as many organizations as one person may own; `SLUG_TAKEN`; `CONFLICT` for a second operator
/// organization or a platform that has one; `NOT_FOUND` for an unknown owner.
pub(in crate::use_case) async fn create(
    cx: &Context,
    scope: &impl Covers<Unowned>,
    uow: &mut dyn UnitOfWork,
    new: NewOrganization,
) -> Result<Stored<Organization>> {
    if let Some(owner) = &new.owner {
        ensure_can_own_another(cx, uow, owner).await?;
    }
    let now = uow.now().await?;
    let organization = Organization {
        id: OrganizationId::generate(now, cx.entropy.as_ref()),
        name: new.name,
        slug: new.slug,
        kind: new.kind,
        platform_id: new.platform_id,
        logo: new.logo,
        metadata: new.metadata,
        roles: RoleMappings::default(),
        created_at: now,
        updated_at: now,
    };
    let stored = audited::insert(cx, scope, uow, organization, "organization.created").await;
    let stored = stored.map_err(taken)?;
    if let Some(owner) = &new.owner {
        add_owner(cx, uow, &stored, owner).await?;
    }
    Ok(stored)
}

fn taken(error: Error) -> Error {
    match error {
        Error::Store(StoreError::Conflict { index: "slug", .. }) => {
            Error::refused(Code::SlugTaken, "The slug belongs to another organization.")
        }
        error => error,
    }
}

/// Creates an organization with its owner, without a platform.
///
/// # Errors
/// `SLUG_TAKEN`; `NOT_FOUND` for an unknown owner; `CONFLICT` for a second operator organization.
pub async fn create_for_owner(
    cx: &Context,
    scope: &ServiceScope,
    uow: &mut dyn UnitOfWork,
    command: CreateOrganization,
) -> Result<Stored<Organization>> {
    let new = NewOrganization {
        name: command.name.into(),
        slug: command.slug,
        kind: command.kind,
        platform_id: None,
        logo: None,
        metadata: None,
        owner: Some(command.owner_id),
    };
    create(cx, scope, uow, new).await
}

/// A part of the organization's creation.
async fn add_owner(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    organization: &Organization,
    owner: &UserId,
) -> Result<()> {
    if !user::exists(uow, owner).await? {
        return Err(Error::NotFound(User::KIND));
    }
    let now = uow.now().await?;
    let member = Member {
        id: MemberId::generate(now, cx.entropy.as_ref()),
        organization_id: organization.id.clone(),
        user_id: owner.clone(),
        role: Roles::OWNER,
        grants: Vec::new(),
        created_at: now,
    };
    unaudited::insert(uow, member).await?;
    Ok(())
}

/// Tells whether an organization has this slug.
pub(in crate::use_case) async fn slug_is_taken(
    uow: &mut dyn UnitOfWork,
    slug: &Slug,
) -> Result<bool> {
    let with_slug = OrganizationQuery::WithSlug(slug.clone());
    let found = unowned::<Organization>(uow).first(&with_slug).await?;
    Ok(found.is_some())
}

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

/// Lets a session act for an organization its user is a member of; from the next request on.
///
/// # Errors
/// `UNAUTHORIZED` if the session has ended; `NOT_FOUND` for an organization the user is no member of.
pub(in crate::use_case) async fn set_active(
    cx: &Context,
    scope: &impl Covers<Unowned>,
    uow: &mut dyn UnitOfWork,
    session: &SessionId,
    organization: &OrganizationId,
) -> Result<Stored<Session>> {
    let seen = unowned::<Session>(uow).find(session).await?;
    let seen = seen.ok_or(Error::Unauthorized)?;
    if find_member(uow, organization, &seen.user_id)
        .await?
        .is_none()
    {
        return Err(Error::NotFound(Organization::KIND));
    }
    let mut next = seen.edit();
    next.active_organization_id = Some(organization.clone());
    let cx = cx.consequence();
    let action = "session.organization_changed";
    let stored = audited::replace(&cx, scope, uow, &seen, next, action).await?;
    uow.effects().add(Effect::SessionChanged(session.clone()));
    Ok(stored)
}

/// As [`set_active`], for a session that may have ended or chosen meanwhile: then it stays as it is.
pub(in crate::use_case) async fn set_active_if_none(
    cx: &Context,
    scope: &impl Covers<Unowned>,
    uow: &mut dyn UnitOfWork,
    session: &SessionId,
    organization: &OrganizationId,
) -> Result<()> {
    let seen = unowned::<Session>(uow).find(session).await?;
    let acts_for_none = match seen.and_then(|seen| seen.active_organization_id.clone()) {
        Some(active) => unowned::<Organization>(uow).find(&active).await?.is_none(),
        None => unowned::<Session>(uow).find(session).await?.is_some(),
    };
    if acts_for_none {
        set_active(cx, scope, uow, session, organization).await?;
    }
    Ok(())
}

/// Frees the organization of a platform that is gone, its own one or a further one, and removes the keys that acted for it. An
/// organization goes with the last of its platforms: its slug is free again and its members' sessions act for nothing; one that
/// has others goes on without it.
///
/// # Errors
/// When the store failed.
pub(in crate::use_case) async fn release_platform(
    cx: &Context,
    scope: SystemScope,
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
    organization: Option<&OrganizationId>,
    has_others: bool,
) -> Result<()> {
    api_key::remove_of_platform(uow, platform).await?;
    let Some(seen) = organization_of(uow, platform, organization).await? else {
        return Ok(());
    };
    // Whoever acted for it acted for the platform.
    uow.effects()
        .add(Effect::PlatformAccessChanged(platform.clone()));
    if has_others || seen.kind != OrganizationType::Tenant {
        let mut next = seen.edit();
        next.platform_id = next.platform_id.filter(|own| own != platform);
        audited::replace(cx, &scope, uow, &seen, next, "organization.updated").await?;
        return Ok(());
    }
    let members = MemberQuery::OfOrganization(seen.id.clone());
    unowned::<Member>(uow).remove_all(&members).await?;
    let invitations = InvitationQuery::OfOrganization(seen.id.clone());
    unowned::<Invitation>(uow).remove_all(&invitations).await?;
    audited::remove(cx, &scope, uow, &seen, "organization.removed").await
}

async fn organization_of(
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
    organization: Option<&OrganizationId>,
) -> Result<Option<Stored<Organization>>> {
    let of_platform = OrganizationQuery::OfPlatform(platform.clone());
    let own = unowned::<Organization>(uow).first(&of_platform).await?;
    match organization {
        Some(id) if own.is_none() => unowned::<Organization>(uow).find(id).await,
        _ => Ok(own),
    }
}

/// Refuses roles that the organization does not have.
pub(super) fn ensure_roles_known(organization: &Organization, roles: &Roles) -> Result<()> {
    match roles.iter().find(|role| !organization.roles.knows(role)) {
        None => Ok(()),
        Some(role) => {
            let message = format!("ROLE_NOT_FOUND: {role}");
            Err(Error::refused(Code::RoleNotFound, message))
        }
    }
}

/// Refuses one more member of an organization.
///
/// # Errors
/// `LIMIT_REACHED`.
pub(super) async fn ensure_room_for_member(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    organization: &OrganizationId,
) -> Result<()> {
    let members = MemberQuery::OfOrganization(organization.clone());
    let limit = cx.limits.members_per_organization;
    let message = "The organization has as many members as it may have.";
    ensure_room_unless_operator::<Member>(cx, unowned(uow), &members, limit, message).await
}

/// Refuses one more pending invitation of an organization.
///
/// # Errors
/// `LIMIT_REACHED`.
pub(super) async fn ensure_room_for_invitation(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    organization: &OrganizationId,
) -> Result<()> {
    let pending = InvitationQuery::PendingOf(organization.clone());
    let limit = cx.limits.invitations_per_organization;
    let message =
        "The organization has as many pending invitations as it may have. Cancel one first.";
    ensure_room_unless_operator::<Invitation>(cx, unowned(uow), &pending, limit, message).await
}
