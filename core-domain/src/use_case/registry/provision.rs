//! Queueing the jobs that create and remove a platform's infrastructure.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::entity;
use super::jobs::{Deprovision, ProvisionPlatform, Removal, Target};
use crate::access::{
    AuditEvent, PlatformAccess, PlatformScope, PlatformWriter, SystemScope, audited,
    authorize_operator,
};
use crate::kernel::{
    Context, Email, EntityId, Environment, Error, Line, PlatformId, Result, Stored, grant,
};
use crate::port::UnitOfWork;
use crate::provisioning::{DEPROVISION, Job, JobStatus};
use crate::registry::PlatformRefusal;
use crate::use_case::provisioning::{self, Kinds, enqueue};

/// Asks for a platform's infrastructure in an environment.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProvisionCommand {
    /// The platform.
    pub platform_id: PlatformId,
    /// The plan it is for.
    pub plan_tier: Line<1, 100>,
    /// Where bills go.
    pub billing_email: Email,
    /// The entity the resources shall belong to; the platform's own tenant when not said.
    pub default_entity_id: Option<EntityId>,
    /// Where it all runs.
    #[serde(default = "Environment::prod")]
    pub environment: Environment,
}

/// Asks for the removal of a platform's infrastructure in an environment.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeprovisionCommand {
    /// The platform.
    pub platform_id: PlatformId,
    /// Where.
    #[serde(default = "Environment::prod")]
    pub environment: Environment,
}

/// What a platform shall be given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Provision {
    pub(super) plan_tier: String,
    pub(super) billing_email: Option<Email>,
    pub(super) entity_id: Option<EntityId>,
    pub(super) environment: Environment,
}

/// Queues the job that gives a platform its infrastructure in an environment. What is there already is left as it is.
///
/// # Errors
/// `NOT_FOUND` for an unknown entity; `INVALID_STATE` for one that is suspended.
pub async fn provision(
    cx: &Context,
    scope: &PlatformScope<grant::JobCreate>,
    uow: &mut dyn UnitOfWork,
    command: ProvisionCommand,
) -> Result<Stored<Job>> {
    let wanted = Provision {
        plan_tier: command.plan_tier.to_string(),
        billing_email: Some(command.billing_email),
        entity_id: command.default_entity_id,
        environment: command.environment,
    };
    queue_provision(cx, scope.writer(), uow, wanted).await
}

pub(super) async fn queue_provision(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    wanted: Provision,
) -> Result<Stored<Job>> {
    let entity = match &wanted.entity_id {
        Some(id) => entity::not_deleted(scope, uow, id).await?,
        None => entity::default_tenant(cx, scope, uow).await?,
    };
    entity::ensure_not_suspended(scope, uow, &entity).await?;
    let target = Target {
        platform_id: scope.id().clone(),
        slug: scope.platform().slug.clone(),
        entity_id: Some(entity.id.clone()),
        environment: wanted.environment,
        plan_tier: wanted.plan_tier,
        billing_email: wanted.billing_email,
    };
    let job = enqueue::<ProvisionPlatform>(cx, scope, uow, &target).await?;
    record_queued(cx, scope, uow, &job, "platform.provision_queued").await?;
    Ok(job)
}

/// Queues the job that removes a platform's infrastructure in an environment, before everything else that waits for the
/// platform. The platform itself stays.
///
/// # Errors
/// `INVALID_STATE` when the platform is being removed for good already.
pub async fn deprovision(
    cx: &Context,
    scope: &PlatformScope<grant::PlatformManage>,
    uow: &mut dyn UnitOfWork,
    environment: Environment,
) -> Result<Stored<Job>> {
    if scope.platform().purging {
        return Err(Error::from(PlatformRefusal::Purging));
    }
    queue_deprovision(cx, scope.writer(), uow, Some(environment)).await
}

async fn queue_deprovision(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    environment: Option<Environment>,
) -> Result<Stored<Job>> {
    queue(cx, scope, uow, Removal::of(scope, environment)).await
}

/// Queues the removal of all environments. With `cancels_jobs`, the job cancels the platform's other jobs first.
pub(super) async fn queue_removal(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    cancels_jobs: bool,
) -> Result<Stored<Job>> {
    let removal = Removal {
        cancels_jobs,
        ..Removal::of(scope, None)
    };
    queue(cx, scope, uow, removal).await
}

async fn queue(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    removal: Removal,
) -> Result<Stored<Job>> {
    let job = enqueue::<Deprovision>(cx, scope, uow, &removal).await?;
    record_queued(cx, scope, uow, &job, "platform.deprovision_queued").await?;
    Ok(job)
}

/// Lets the removal of a platform for good go on after it failed, or begin anew when an operator had declared it done.
///
/// # Errors
/// `FORBIDDEN` for anybody but operators; `INVALID_STATE` while it is under way.
pub(super) async fn resume_removal(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    kinds: &Kinds,
) -> Result<()> {
    let operator = authorize_operator(cx)?;
    let system = SystemScope::new();
    let jobs = provisioning::of_kind(system, uow, scope.id(), DEPROVISION).await?;
    let of_everything = jobs.into_iter().find(|job| job.environment.is_none());
    match of_everything {
        Some(job) if job.status == JobStatus::Failed => {
            provisioning::retry(cx, &operator, uow, kinds, &job.id).await?;
        }
        Some(job) if job.status != JobStatus::Completed => {
            return Err(Error::from(PlatformRefusal::Purging));
        }
        _ => {
            queue_removal(cx, scope, uow, true).await?;
        }
    }
    Ok(())
}

/// Keeps in the audit that a job of the platform was queued.
pub(super) async fn record_queued(
    cx: &Context,
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    job: &Job,
    action: &'static str,
) -> Result<()> {
    let event = AuditEvent {
        platform_id: Some(scope.id().clone()),
        action,
        entity_id: scope.id().to_string(),
        details: Some(json!({ "jobId": job.id, "environment": job.environment })),
    };
    audited::event(cx, uow, event).await
}
