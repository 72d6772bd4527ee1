//! Organizations, as the suite's own routes know them.

use super::create::{NewOrganization, create};
use crate::access::{ServiceScope, SignedInScope, find_member, unowned};
use crate::iam::{CreateOrganization, Organization, OrganizationQuery};
use crate::kernel::{Context, Error, Record, Result, Slug, Stored};
use crate::port::UnitOfWork;

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
        name: command.name,
        slug: command.slug,
        kind: command.kind,
        platform_id: None,
        logo: None,
        metadata: None,
        owner: Some(command.owner_id),
    };
    create(cx, scope, uow, new).await
}

/// The organization with this slug, for its members, its keys, and operators.
///
/// # Errors
/// `NOT_FOUND` for an unknown or foreign one.
pub async fn by_slug(
    cx: &Context,
    _: &SignedInScope,
    uow: &mut dyn UnitOfWork,
    slug: &Slug,
) -> Result<Stored<Organization>> {
    const MISSING: Error = Error::NotFound(Organization::KIND);
    let with_slug = OrganizationQuery::WithSlug(slug.clone());
    let found = unowned::<Organization>(uow).first(&with_slug).await?;
    let organization = found.ok_or(MISSING)?;
    if cx.caller.is_operator() {
        return Ok(organization);
    }
    let active = cx.caller.membership();
    if active.is_some_and(|own| own.organization_id == organization.id) {
        return Ok(organization);
    }
    let user = cx.caller.person_id().ok_or(MISSING)?;
    let member = find_member(uow, &organization.id, user).await?;
    member.map(|_| organization).ok_or(MISSING)
}
