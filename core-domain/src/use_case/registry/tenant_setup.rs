//! An organization with its platform and the platform's tenant, in one unit of work.

use super::entity::default_tenant;
use super::platform::insert_platform;
use crate::access::{Covers, PlatformWriter, SystemScope};
use crate::iam::OrganizationType;
use crate::kernel::{
    Context, EntityId, Error, Name, OrganizationId, PlatformId, Record, Result, Slug, Unowned,
    UserId,
};
use crate::port::UnitOfWork;
use crate::registry::{CreatePlatform, Platform, PlatformOwner, Tier};
use crate::use_case::iam::organization::{self, NewOrganization};

/// An organization with its platform, to be created.
#[derive(Clone, Debug)]
pub(super) struct TenantSetup {
    pub(super) platform_id: PlatformId,
    pub(super) name: Name,
    pub(super) slug: Slug,
    pub(super) tier: Tier,
    pub(super) owner: Option<UserId>,
}

/// What was created.
#[derive(Debug)]
pub(super) struct Tenant {
    pub(super) organization_id: OrganizationId,
    pub(super) platform: PlatformWriter,
    pub(super) entity_id: EntityId,
}

/// Creates an organization with its owner, its platform and the platform's tenant.
pub(super) async fn create_tenant(
    cx: &Context,
    scope: &impl Covers<Unowned>,
    uow: &mut dyn UnitOfWork,
    setup: TenantSetup,
) -> Result<Tenant> {
    let new = NewOrganization {
        name: setup.name.clone(),
        slug: setup.slug.clone(),
        kind: OrganizationType::Tenant,
        platform_id: Some(setup.platform_id.clone()),
        logo: None,
        metadata: None,
        owner: setup.owner.clone(),
    };
    let organization = organization::create(cx, scope, uow, new).await?;
    let owner = PlatformOwner {
        user_id: setup.owner,
        organization_id: Some(organization.id.clone()),
    };
    let command = CreatePlatform {
        name: setup.name,
        slug: setup.slug,
        tier: setup.tier,
        cf_account_id: None,
        repo_name: None,
    };
    let id = setup.platform_id;
    insert_platform(cx, scope, uow, id.clone(), owner, command).await?;
    let platform = SystemScope::new().platform(uow, &id).await?;
    let platform = platform.ok_or(Error::NotFound(Platform::KIND))?;
    let entity = default_tenant(cx, &platform, uow).await?;
    Ok(Tenant {
        organization_id: organization.id.clone(),
        entity_id: entity.id.clone(),
        platform,
    })
}
