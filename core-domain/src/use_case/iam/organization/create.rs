//! Making organizations with their owner.

use crate::access::{Covers, ServiceScope, audited, ensure_can_own_another, unaudited, unowned};
use crate::iam::{
    CreateOrganization, Member, Organization, OrganizationQuery, OrganizationType, RoleMappings,
    User,
};
use crate::kernel::{
    Code, Context, Error, JsonText, Line, MemberId, Name, OrganizationId, PlatformId, Record,
    Result, Roles, Slug, StoreError, Stored, Unowned, UserId,
};
use crate::port::UnitOfWork;
use crate::use_case::iam::user;

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
