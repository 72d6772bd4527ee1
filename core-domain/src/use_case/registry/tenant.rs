//! Creates an organization, its platform and the platform's default tenant in one unit of work, and deletes
//! organizations.

use super::entity_tree::default_tenant;
use super::platform::insert_platform;
use super::provision::{ProvisionParams, queue_provision};
use super::slug::ensure_not_reserved;
use crate::access::{
    Covers, MembershipScope, NewOrganizationScope, PlatformWriter, SystemScope, unowned_records,
};
use crate::iam::{OrganizationType, SetUpOrganization};
use crate::kernel::{
    Context, Email, EntityId, Environment, Error, JobId, Name, OrganizationId, PlatformId, Record,
    Result, Slug, Unowned, UserId, permission,
};
use crate::port::UnitOfWork;
use crate::registry::{CreatePlatform, Platform, PlatformOwner, PlatformQuery, Tier};
use crate::use_case::iam::organization;
use crate::use_case::iam::organization::NewOrganization;

/// The parameters of a new organization with its platform.
#[derive(Clone, Debug)]
pub(super) struct TenantSetup {
    pub(super) platform_id: PlatformId,
    pub(super) name: Name,
    pub(super) slug: Slug,
    pub(super) tier: Tier,
    pub(super) owner: Option<UserId>,
}

/// The created organization, platform and default tenant.
#[derive(Debug)]
pub(super) struct Tenant {
    pub(super) organization_id: OrganizationId,
    pub(super) platform: PlatformWriter,
    pub(super) entity_id: EntityId,
}

/// Creates an organization with its owner and its platform, and the platform's default tenant.
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

/// The ids of the created records and of the queued job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrganizationSetUp {
    /// The id of the organization.
    pub org_id: OrganizationId,
    /// The id of the platform.
    pub platform_id: PlatformId,
    /// The job that creates the platform's infrastructure.
    pub job_id: JobId,
}

/// Creates an organization with its platform and default tenant, and queues the job that creates the platform's
/// infrastructure.
///
/// The user of the session owns the organization. The session acts for the organization from then on.
///
/// # Errors
/// `SLUG_TAKEN` if the slug is taken or reserved; `LIMIT_REACHED` if a limit of the user is reached; `NOT_FOUND` if the
/// user does not exist; `UNAUTHORIZED` if the session has ended.
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
    let wanted = ProvisionParams {
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
/// `CONFLICT` if the organization has a platform, or if it is the organization that operates the installation.
pub async fn delete(
    cx: &Context,
    scope: &MembershipScope<permission::OrganizationDelete>,
    uow: &mut dyn UnitOfWork,
) -> Result<()> {
    let belonging = PlatformQuery::OfIncludingDeleted(scope.organization().id.clone());
    let platforms = unowned_records::<Platform>(uow).count(&belonging).await?;
    organization::delete(cx, scope, uow, platforms > 0).await
}
