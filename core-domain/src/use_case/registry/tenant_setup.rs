//! An organization with its platform and the platform's tenant, in one unit of work.

use super::entity::default_tenant;
use super::platform::insert_platform;
use super::provision::{Provision, queue_provision};
use super::slug::ensure_not_reserved;
use crate::access::{
    Covers, MembershipScope, NewOrganizationScope, PlatformWriter, SystemScope, unowned,
};
use crate::iam::{OrganizationType, SetUpOrganization};
use crate::kernel::{
    Context, Email, EntityId, Environment, Error, JobId, Name, OrganizationId, PlatformId, Record,
    Result, Slug, Unowned, UserId, grant,
};
use crate::port::UnitOfWork;
use crate::registry::{CreatePlatform, Platform, PlatformOwner, PlatformQuery, Tier};
use crate::use_case::iam::organization;
use crate::use_case::iam::organization::NewOrganization;

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

/// The organization was set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrganizationSetUp {
    /// The organization.
    pub org_id: OrganizationId,
    /// Its platform.
    pub platform_id: PlatformId,
    /// The job that gives the platform its infrastructure.
    pub job_id: JobId,
}

/// Creates an organization owned by the person of the session, its platform with a tenant, and queues the job that gives
/// the platform its infrastructure; the session acts for the organization from then on.
///
/// # Errors
/// `SLUG_TAKEN`; `LIMIT_REACHED`; `NOT_FOUND` for an unknown user; `UNAUTHORIZED` if the session has ended.
pub async fn set_up(
    cx: &Context,
    scope: &NewOrganizationScope,
    uow: &mut dyn UnitOfWork,
    command: SetUpOrganization,
) -> Result<OrganizationSetUp> {
    ensure_not_reserved(uow, &command.slug).await?;
    let now = uow.now().await?;
    let setup = TenantSetup {
        platform_id: PlatformId::generate(now, cx.entropy.as_ref()),
        name: command.name.into(),
        slug: command.slug,
        tier: Tier::Starter,
        owner: Some(scope.owner().clone()),
    };
    let tenant = create_tenant(cx, scope, uow, setup).await?;
    if let Some(session) = scope.session_id() {
        organization::set_active(cx, scope, uow, session, &tenant.organization_id).await?;
    }
    let wanted = Provision {
        plan_tier: tenant.platform.platform().tier.as_str().to_owned(),
        billing_email: None::<Email>,
        entity_id: Some(tenant.entity_id),
        environment: Environment::Prod,
    };
    let job = queue_provision(cx, &tenant.platform, uow, wanted).await?;
    Ok(OrganizationSetUp {
        org_id: tenant.organization_id,
        platform_id: tenant.platform.id().clone(),
        job_id: job.id.clone(),
    })
}

/// Deletes an organization with its memberships and invitations.
///
/// # Errors
/// `CONFLICT` while it has a platform, and for the organization that operates the installation.
pub async fn delete(
    cx: &Context,
    scope: &MembershipScope<grant::OrganizationDelete>,
    uow: &mut dyn UnitOfWork,
) -> Result<()> {
    let belonging = PlatformQuery::BelongingTo(scope.organization().id.clone());
    let platforms = unowned::<Platform>(uow).count(&belonging).await?;
    organization::delete(cx, scope, uow, platforms > 0).await
}
