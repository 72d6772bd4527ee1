//! Setting up an organization with its platform.

use super::provision::queue_provision;
use super::slug::ensure_not_reserved;
use super::tenant_setup::{TenantSetup, create_tenant};
use crate::access::NewOrganizationScope;
use crate::iam::SetUpOrganization;
use crate::kernel::{Context, Email, Environment, JobId, OrganizationId, PlatformId, Result};
use crate::port::UnitOfWork;
use crate::registry::Tier;
use crate::use_case::iam::organization;
use crate::use_case::registry::provision::Provision;

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
