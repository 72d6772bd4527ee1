//! Setting up an organization with its platform, in one unit of work.

use super::entities::default_tenant;
use super::onboarding::refuse_promised;
use super::platforms::{Founding, NewPlatform, found};
use super::provision::{Provision, queue_provision};
use crate::iam::OrganizationType;
use crate::kernel::{
    Context, EntityId, Environment, JobId, Name, OrganizationId, PlatformId, Result, SessionId,
    Slug, UserId,
};
use crate::port::{Stored, UnitOfWork};
use crate::registry::{Platform, Tier};
use crate::use_case::iam::{
    NewOrganization, create_organization_with_owner, set_active_organization,
};

/// The organization to be set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrganizationSetup {
    /// What people call the organization and its platform.
    pub name: Name,
    /// The slug of both.
    pub slug: Slug,
    /// Who shall own it.
    pub user_id: UserId,
    /// The session that acts for it from now on.
    pub session_id: SessionId,
}

/// The organization was set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrganizationSetupDone {
    /// The organization.
    pub org_id: OrganizationId,
    /// Its platform.
    pub platform_id: PlatformId,
    /// The slug of both.
    pub slug: Slug,
    /// What people call both.
    pub name: Name,
    /// The job that gives the platform its infrastructure.
    pub job_id: JobId,
}

/// Makes an organization owned by the user, its platform with a tenant, and queues the job that gives the platform its
/// infrastructure; the session acts for the organization from then on. The caller's right to do so is checked by whoever
/// calls this. Wake the workers after the commit.
///
/// # Errors
/// `SLUG_TAKEN`; `NOT_FOUND` for an unknown user or session.
pub async fn organization_setup(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    input: OrganizationSetup,
) -> Result<OrganizationSetupDone> {
    refuse_promised(uow, &input.slug).await?;
    let now = uow.now().await?;
    let home = Home {
        platform_id: PlatformId::generate(now, cx.entropy.as_ref()),
        name: input.name.clone(),
        slug: input.slug.clone(),
        tier: Tier::Starter,
        owner: Some(input.user_id),
    };
    let made = make_home(cx, uow, home).await?;
    set_active_organization(uow, &input.session_id, &made.organization_id).await?;
    let wanted = Provision {
        plan_tier: made.platform.tier.as_str().to_owned(),
        billing_email: None,
        entity_id: Some(made.entity_id),
        environment: Environment::Prod,
    };
    let job = queue_provision(cx, uow, &made.platform, wanted).await?;
    Ok(OrganizationSetupDone {
        org_id: made.organization_id,
        platform_id: made.platform.id.clone(),
        slug: input.slug,
        name: input.name,
        job_id: job.id.clone(),
    })
}

/// An organization with its platform, to be made.
#[derive(Clone, Debug)]
pub(super) struct Home {
    pub(super) platform_id: PlatformId,
    pub(super) name: Name,
    pub(super) slug: Slug,
    pub(super) tier: Tier,
    pub(super) owner: Option<UserId>,
}

/// What was made.
#[derive(Clone, Debug)]
pub(super) struct MadeHome {
    pub(super) organization_id: OrganizationId,
    pub(super) platform: Stored<Platform>,
    pub(super) entity_id: EntityId,
}

/// Makes an organization with its owner, its platform and the platform's tenant.
pub(super) async fn make_home(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    home: Home,
) -> Result<MadeHome> {
    let organization = NewOrganization {
        name: home.name.clone(),
        slug: home.slug.clone(),
        kind: OrganizationType::Tenant,
        platform_id: Some(home.platform_id.clone()),
        owner: home.owner.clone(),
    };
    let organization = create_organization_with_owner(cx, uow, &organization).await?;
    let founding = Founding {
        id: home.platform_id,
        owner: home.owner,
        organization: Some(organization.id.clone()),
    };
    let new = NewPlatform {
        name: home.name,
        slug: home.slug,
        tier: home.tier,
        cf_account_id: None,
        repo_name: None,
    };
    let platform = found(cx, uow, founding, new).await?;
    let tenant = default_tenant(cx, uow, &platform).await?;
    Ok(MadeHome {
        organization_id: organization.id.clone(),
        entity_id: tenant.id.clone(),
        platform,
    })
}
