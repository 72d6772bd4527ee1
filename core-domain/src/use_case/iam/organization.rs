//! Making organizations, and choosing which one a session acts for.

use serde_json::json;

use super::users::user_exists;
use crate::iam::{
    Member, MemberQuery, Organization, OrganizationQuery, OrganizationType, Session, User,
};
use crate::kernel::{
    Code, Context, Error, MemberId, Name, OrganizationId, PlatformId, Result, Role, SessionId,
    Slug, UserId,
};
use crate::port::{Record, StoreError, Stored, UnitOfWork};
use crate::shared::{Happening, audited};

/// An organization to be made.
#[derive(Clone, Debug)]
pub struct NewOrganization {
    /// What people call it.
    pub name: Name,
    /// Its name in addresses.
    pub slug: Slug,
    /// What it is for.
    pub kind: OrganizationType,
    /// The platform that belongs to it.
    pub platform_id: Option<PlatformId>,
    /// Who becomes its owner. Without one it has no members yet.
    pub owner: Option<UserId>,
}

/// Makes an organization with its owner's membership. The caller's right to do so is checked by whoever calls this.
///
/// # Errors
/// `SLUG_TAKEN`; `CONFLICT` for a second operator organization or a platform that has one; `NOT_FOUND` for an unknown owner.
pub async fn create_organization_with_owner(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    input: &NewOrganization,
) -> Result<Stored<Organization>> {
    let now = uow.now().await?;
    let organization = Organization {
        id: OrganizationId::generate(now, cx.entropy.as_ref()),
        name: input.name.clone(),
        slug: input.slug.clone(),
        kind: input.kind,
        platform_id: input.platform_id.clone(),
        created_at: now,
        updated_at: now,
    };
    let organization = match uow.organizations().insert(organization).await {
        Err(StoreError::Conflict { index: "slug", .. }) => {
            return Err(Error::refused(
                Code::SlugTaken,
                "The slug belongs to another organization.",
            ));
        }
        other => other?,
    };
    if let Some(owner) = &input.owner {
        add_owner(cx, uow, &organization, owner).await?;
    }
    let happening = Happening {
        platform_id: input.platform_id.clone(),
        action: "organization.created",
        entity_id: organization.id.to_string(),
        after: Some(json!({
            "name": input.name, "slug": input.slug, "type": input.kind, "ownerId": input.owner,
        })),
        ..Happening::default()
    };
    audited(cx, uow, happening).await?;
    Ok(organization)
}

async fn add_owner(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    organization: &Organization,
    owner: &UserId,
) -> Result<()> {
    if !user_exists(uow, owner).await? {
        return Err(Error::NotFound(User::KIND));
    }
    let now = uow.now().await?;
    let member = Member {
        id: MemberId::generate(now, cx.entropy.as_ref()),
        organization_id: organization.id.clone(),
        user_id: owner.clone(),
        role: Role::Owner,
        created_at: now,
    };
    uow.members().insert(member).await?;
    Ok(())
}

/// Tells whether an organization has this slug.
///
/// # Errors
/// When the store failed.
pub async fn organization_slug_is_taken(uow: &mut dyn UnitOfWork, slug: &Slug) -> Result<bool> {
    let with_slug = OrganizationQuery::WithSlug(slug.clone());
    Ok(uow.organizations().first(&with_slug).await?.is_some())
}

/// Lets a session act for an organization its user is a member of; from the next request on.
///
/// # Errors
/// `NOT_FOUND` for an unknown session, and for an organization the user is no member of.
pub async fn set_active_organization(
    uow: &mut dyn UnitOfWork,
    session: &SessionId,
    organization: &OrganizationId,
) -> Result<Stored<Session>> {
    let session = uow.sessions().get(session.as_str()).await?;
    let session = session.ok_or(Error::NotFound(Session::KIND))?;
    let of = MemberQuery::Of(organization.clone(), session.user_id.clone());
    if uow.members().first(&of).await?.is_none() {
        return Err(Error::NotFound(Organization::KIND));
    }
    let now = uow.now().await?;
    let next = Session {
        active_organization_id: Some(organization.clone()),
        updated_at: now,
        ..session.clone().into_inner()
    };
    Ok(uow.sessions().replace(&session, next).await?)
}
