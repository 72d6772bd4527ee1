//! Creates, updates, activates and deletes organizations, and releases them from deleted platforms.

use super::member::clear_active_organization;
use crate::access::{
    Batches, Covers, MembershipScope, NewOrganizationScope, OrganizationRef, PersonScope,
    ServiceScope, SessionScope, SystemScope, audited, ensure_can_own_another,
    ensure_room_unless_operator, find_member, find_organization, unaudited, unowned_records,
};
use crate::iam::{
    CreateOrganization, Invitation, InvitationQuery, Member, MemberQuery, Organization,
    OrganizationMetadata, OrganizationQuery, OrganizationType, RoleMappings, Session,
    UpdateOrganization, User,
};
use crate::kernel::{
    Code, Context, Effect, Error, JsonText, Line, MemberId, Name, OrganizationId, OrganizationName,
    PlatformId, Record, Result, Roles, SessionId, Slug, StoreError, Stored, Unowned, UserId,
    permission,
};
use crate::port::UnitOfWork;
use crate::use_case::iam::{api_key, user};

/// The properties of a new organization.
#[derive(Clone, Debug)]
pub(in crate::use_case) struct NewOrganization {
    pub(in crate::use_case) name: Name,
    pub(in crate::use_case) slug: Slug,
    pub(in crate::use_case) kind: OrganizationType,
    pub(in crate::use_case) platform_id: Option<PlatformId>,
    pub(in crate::use_case) logo: Option<Line<0, 2048>>,
    pub(in crate::use_case) metadata: Option<JsonText>,
    /// The owner; `None` for an organization without members.
    pub(in crate::use_case) owner: Option<UserId>,
}

/// Creates an organization with the membership of its owner.
///
/// # Errors
/// - `LIMIT_REACHED` if the owner owns the maximum number of organizations.
/// - `SLUG_TAKEN` if another organization has the slug.
/// - `CONFLICT` for a second operator organization, or if the platform already has an organization.
/// - `NOT_FOUND` if the owner does not exist.
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
    let stored = stored.map_err(map_slug_conflict)?;
    if let Some(owner) = &new.owner {
        add_owner(cx, uow, &stored, owner).await?;
    }
    Ok(stored)
}

fn map_slug_conflict(error: Error) -> Error {
    match error {
        Error::Store(StoreError::Conflict { index: "slug", .. }) => {
            Error::refused(Code::SlugTaken, "The slug belongs to another organization.")
        }
        error => error,
    }
}

/// Creates an organization for the named owner, without a platform.
///
/// # Errors
/// - `LIMIT_REACHED` if the owner owns the maximum number of organizations.
/// - `SLUG_TAKEN` if another organization has the slug.
/// - `NOT_FOUND` if the owner does not exist.
/// - `CONFLICT` for a second operator organization.
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

/// Inserts the owner's membership. The audit entry of the organization covers it.
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

/// Returns whether an organization has this slug.
pub(in crate::use_case) async fn slug_is_taken(
    uow: &mut dyn UnitOfWork,
    slug: &Slug,
) -> Result<bool> {
    let with_slug = OrganizationQuery::WithSlug(slug.clone());
    let found = unowned_records::<Organization>(uow)
        .first(&with_slug)
        .await?;
    Ok(found.is_some())
}

/// Maximum number of organizations in the list of a person's organizations.
const MAX_ORGANIZATIONS: u32 = 100;

/// The properties of an organization that a person creates for themselves.
#[derive(Clone, Debug)]
pub struct NewOwnOrganization {
    /// The display name of the organization.
    pub name: OrganizationName,
    /// The name of the organization in URLs. Must be unique.
    pub slug: Slug,
    /// The URL of the logo.
    pub logo: Option<Line<0, 2048>>,
    /// Custom data of the organization's members.
    pub metadata: Option<OrganizationMetadata>,
    /// Whether the session keeps its active organization. Otherwise it switches to the new one.
    pub keep_active: bool,
}

/// An organization with the membership of its owner.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnOrganization {
    /// The stored record of the organization.
    pub organization: Stored<Organization>,
    /// The membership of the owner.
    pub owner: Stored<Member>,
}

/// Creates an organization that the person owns. Their session switches to it, unless `keep_active` is set.
///
/// # Errors
/// - `ORGANIZATION_ALREADY_EXISTS` if another organization has the slug.
/// - `LIMIT_REACHED` if the person owns the maximum number of organizations.
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
    let organization = create(cx, scope, uow, new).await.map_err(map_slug_taken)?;
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

fn map_slug_taken(error: Error) -> Error {
    match error.code() {
        Code::SlugTaken => Error::of_code(Code::OrganizationAlreadyExists),
        _ => error,
    }
}

/// Checks that a slug is free.
///
/// # Errors
/// `ORGANIZATION_SLUG_ALREADY_TAKEN` if an organization has the slug.
pub async fn check_slug(_: &PersonScope, uow: &mut dyn UnitOfWork, slug: &Slug) -> Result<()> {
    if slug_is_taken(uow, slug).await? {
        return Err(Error::of_code(Code::OrganizationSlugTaken));
    }
    Ok(())
}

/// Returns the organizations of the person in the order in which they joined, at most 100.
///
/// # Errors
/// Only those of the store.
pub async fn list_own_organizations(
    scope: &PersonScope,
    uow: &mut dyn UnitOfWork,
) -> Result<Vec<Stored<Organization>>> {
    let of = MemberQuery::OfUser(scope.user_id().clone());
    let members = unowned_records::<Member>(uow)
        .list(&of, MAX_ORGANIZATIONS)
        .await?;
    let mut ids: Vec<&str> = members.iter().map(|m| m.organization_id.as_str()).collect();
    ids.sort_unstable();
    let organizations = unowned_records::<Organization>(uow).get_many(&ids).await?;
    let joined = members.iter().filter_map(|member| {
        let mut organizations = organizations.iter();
        organizations
            .find(|organization| organization.id == member.organization_id)
            .cloned()
    });
    Ok(joined.collect())
}

/// Switches the session to an organization of its user. Works for an organization whose platform is suspended, and from
/// one, so that users can switch away from it.
///
/// # Errors
/// - `NO_ACTIVE_ORGANIZATION` if no organization is named and the session has none.
/// - `NOT_FOUND` if the organization is missing or the user is not a member.
/// - `UNAUTHORIZED` if the session has ended.
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

/// Clears the active organization of the session.
///
/// # Errors
/// `UNAUTHORIZED` if the session has ended.
pub async fn deactivate(
    cx: &Context,
    session: &SessionScope,
    uow: &mut dyn UnitOfWork,
) -> Result<Stored<Session>> {
    let seen = unowned_records::<Session>(uow)
        .find(session.session_id())
        .await?;
    let seen = seen.ok_or(Error::Unauthorized)?;
    let mut next = seen.edit();
    next.active_organization_id = None;
    let action = "session.organization_changed";
    let stored =
        audited::replace(&cx.without_conditions(), session, uow, &seen, next, action).await?;
    uow.effects().add(Effect::SessionChanged(seen.id.clone()));
    Ok(stored)
}

/// Changes fields of the organization.
///
/// # Errors
/// `ORGANIZATION_SLUG_ALREADY_TAKEN` if another organization has the new slug.
pub async fn update(
    cx: &Context,
    scope: &MembershipScope<permission::OrganizationUpdate>,
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

/// Deletes the organization with its memberships and invitations. An organization with a platform cannot be deleted
/// before the platform.
///
/// # Errors
/// `CONFLICT` if the organization has a platform or operates the installation.
pub(in crate::use_case) async fn delete(
    cx: &Context,
    scope: &MembershipScope<permission::OrganizationDelete>,
    uow: &mut dyn UnitOfWork,
    has_platforms: bool,
) -> Result<()> {
    let seen = scope.organization();
    if seen.operates() || has_platforms || seen.platform_id.is_some() {
        let message = "The organization has a platform or operates the installation. Delete its platform first.";
        return Err(Error::refused(Code::Conflict, message));
    }
    let members = MemberQuery::OfOrganization(seen.id.clone());
    let mut batches = Batches::of(members.clone());
    while let Some(batch) = batches.next(unowned_records::<Member>(uow)).await? {
        for member in batch {
            clear_active_organization(uow, &seen.id, &member.user_id).await?;
        }
    }
    unowned_records::<Member>(uow).remove_all(&members).await?;
    let invitations = InvitationQuery::OfOrganization(seen.id.clone());
    unowned_records::<Invitation>(uow)
        .remove_all(&invitations)
        .await?;
    audited::remove(cx, scope, uow, seen, "organization.deleted").await?;
    uow.effects()
        .add(Effect::OrganizationAccessChanged(seen.id.clone()));
    Ok(())
}

/// Switches a session to an organization of its user, with effect from the next request on.
///
/// # Errors
/// - `UNAUTHORIZED` if the session has ended.
/// - `NOT_FOUND` if the user is not a member of the organization.
pub(in crate::use_case) async fn set_active(
    cx: &Context,
    scope: &impl Covers<Unowned>,
    uow: &mut dyn UnitOfWork,
    session: &SessionId,
    organization: &OrganizationId,
) -> Result<Stored<Session>> {
    let seen = unowned_records::<Session>(uow).find(session).await?;
    let seen = seen.ok_or(Error::Unauthorized)?;
    if find_member(uow, organization, &seen.user_id)
        .await?
        .is_none()
    {
        return Err(Error::NotFound(Organization::KIND));
    }
    let mut next = seen.edit();
    next.active_organization_id = Some(organization.clone());
    let cx = cx.without_conditions();
    let action = "session.organization_changed";
    let stored = audited::replace(&cx, scope, uow, &seen, next, action).await?;
    uow.effects().add(Effect::SessionChanged(session.clone()));
    Ok(stored)
}

/// Like [`set_active`], but does nothing if the session has ended or has an active organization.
pub(in crate::use_case) async fn set_active_if_none(
    cx: &Context,
    scope: &impl Covers<Unowned>,
    uow: &mut dyn UnitOfWork,
    session: &SessionId,
    organization: &OrganizationId,
) -> Result<()> {
    let seen = unowned_records::<Session>(uow).find(session).await?;
    let acts_for_none = match seen.and_then(|seen| seen.active_organization_id.clone()) {
        Some(active) => unowned_records::<Organization>(uow)
            .find(&active)
            .await?
            .is_none(),
        None => unowned_records::<Session>(uow)
            .find(session)
            .await?
            .is_some(),
    };
    if acts_for_none {
        set_active(cx, scope, uow, session, organization).await?;
    }
    Ok(())
}

/// Detaches the organization from a deleted platform, and removes the API keys that acted for the platform. If the
/// organization has no other platform, it is deleted with its memberships and invitations. Then its slug is free again,
/// and sessions of its members have no active organization.
///
/// # Errors
/// Only those of the store.
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
    // All callers who acted for the organization acted for the platform.
    uow.effects()
        .add(Effect::PlatformAccessChanged(platform.clone()));
    if has_others || seen.kind != OrganizationType::Tenant {
        let mut next = seen.edit();
        next.platform_id = next.platform_id.filter(|own| own != platform);
        audited::replace(cx, &scope, uow, &seen, next, "organization.updated").await?;
        return Ok(());
    }
    let members = MemberQuery::OfOrganization(seen.id.clone());
    unowned_records::<Member>(uow).remove_all(&members).await?;
    let invitations = InvitationQuery::OfOrganization(seen.id.clone());
    unowned_records::<Invitation>(uow)
        .remove_all(&invitations)
        .await?;
    audited::remove(cx, &scope, uow, &seen, "organization.removed").await
}

async fn organization_of(
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
    organization: Option<&OrganizationId>,
) -> Result<Option<Stored<Organization>>> {
    let of_platform = OrganizationQuery::OfPlatform(platform.clone());
    let own = unowned_records::<Organization>(uow)
        .first(&of_platform)
        .await?;
    match organization {
        Some(id) if own.is_none() => unowned_records::<Organization>(uow).find(id).await,
        _ => Ok(own),
    }
}

/// Checks that the organization can have one more member.
///
/// # Errors
/// `LIMIT_REACHED` if the organization has the maximum number of members.
pub(super) async fn ensure_room_for_member(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    organization: &OrganizationId,
) -> Result<()> {
    let members = MemberQuery::OfOrganization(organization.clone());
    let limit = cx.limits.members_per_organization;
    let message = "The organization already has the maximum number of members.";
    ensure_room_unless_operator::<Member>(cx, unowned_records(uow), &members, limit, message).await
}

/// Checks that the organization can have one more pending invitation.
///
/// # Errors
/// `LIMIT_REACHED` if the organization has the maximum number of pending invitations.
pub(super) async fn ensure_room_for_invitation(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    organization: &OrganizationId,
) -> Result<()> {
    let pending = InvitationQuery::PendingOf(organization.clone());
    let limit = cx.limits.invitations_per_organization;
    let message =
        "The organization already has the maximum number of pending invitations. Cancel one first.";
    ensure_room_unless_operator::<Invitation>(cx, unowned_records(uow), &pending, limit, message)
        .await
}
