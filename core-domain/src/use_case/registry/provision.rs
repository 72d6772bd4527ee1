//! Queueing the jobs that make and remove a platform's infrastructure.

use serde_json::json;

use super::access::{reach, reach_living};
use super::entities::{default_tenant, living_entity};
use super::jobs::{DEPROVISION_STEPS, Target, deprovision, platform_kind};
use crate::kernel::{Context, Email, EntityId, Environment, Error, Permission, PlatformId, Result};
use crate::port::{Stored, UnitOfWork};
use crate::provisioning::Job;
use crate::registry::{Platform, Refusal};
use crate::shared::{Happening, audited};
use crate::use_case::provisioning::{NewJob, enqueue};

/// What a platform shall be given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provision {
    /// The plan it is for; kept with the job.
    pub plan_tier: String,
    /// Where bills go; kept with the job.
    pub billing_email: Option<Email>,
    /// The entity the resources belong to; the platform's own tenant when not said.
    pub entity_id: Option<EntityId>,
    /// Where it all runs.
    pub environment: Environment,
}

/// Queues the job that gives a platform its infrastructure in an environment. What is there already is left as it is.
///
/// # Errors
/// As [`reach_living`] with `job:create`; `NOT_FOUND` for an unknown entity.
pub async fn provision_platform(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
    wanted: Provision,
) -> Result<Stored<Job>> {
    let platform = reach_living(cx, uow, Permission::JobCreate, platform).await?;
    queue_provision(cx, uow, &platform, wanted).await
}

/// As [`provision_platform`], without asking for permission.
pub(super) async fn queue_provision(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    platform: &Platform,
    wanted: Provision,
) -> Result<Stored<Job>> {
    let entity = match &wanted.entity_id {
        Some(id) => living_entity(uow, &platform.id, id).await?,
        None => default_tenant(cx, uow, platform).await?,
    };
    let target = Target {
        platform_id: platform.id.clone(),
        slug: platform.slug.clone(),
        entity_id: Some(entity.id.clone()),
        environment: wanted.environment,
        plan_tier: wanted.plan_tier,
        billing_email: wanted.billing_email,
    };
    let job = NewJob {
        entity_id: Some(entity.id.clone()),
        environment: Some(wanted.environment),
        input: target.to_input(),
        ..NewJob::for_platform(
            platform_kind::NAME,
            platform.id.clone(),
            &platform_kind::STEPS,
        )
    };
    let job = enqueue(cx, uow, job).await?;
    queued(cx, uow, platform, &job, "platform.provision_queued").await?;
    Ok(job)
}

/// Queues the job that removes a platform's infrastructure in an environment, before everything else that waits for the
/// platform. The platform itself stays.
///
/// # Errors
/// As [`reach`] with `platform:manage`; `INVALID_STATE` when the platform is being removed for good already.
pub async fn deprovision_platform(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
    environment: Environment,
) -> Result<Stored<Job>> {
    let platform = reach(cx, uow, Permission::PlatformManage, platform).await?;
    if platform.purging {
        return Err(Error::from(Refusal::Purging));
    }
    queue_deprovision(cx, uow, &platform, Some(environment)).await
}

/// As [`deprovision_platform`], without asking for permission; in all environments when none is named.
pub(super) async fn queue_deprovision(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    platform: &Platform,
    environment: Option<Environment>,
) -> Result<Stored<Job>> {
    let removal = deprovision::Removal {
        platform_id: platform.id.clone(),
        slug: platform.slug.clone(),
        environment,
    };
    let job = NewJob {
        environment,
        input: removal.to_input(),
        front: true,
        ..NewJob::for_platform(deprovision::NAME, platform.id.clone(), &DEPROVISION_STEPS)
    };
    let job = enqueue(cx, uow, job).await?;
    queued(cx, uow, platform, &job, "platform.deprovision_queued").await?;
    Ok(job)
}

async fn queued(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    platform: &Platform,
    job: &Job,
    action: &'static str,
) -> Result<()> {
    let happening = Happening {
        platform_id: Some(platform.id.clone()),
        action,
        entity_id: platform.id.to_string(),
        after: Some(json!({ "jobId": job.id, "environment": job.environment })),
        ..Happening::default()
    };
    audited(cx, uow, happening).await
}
