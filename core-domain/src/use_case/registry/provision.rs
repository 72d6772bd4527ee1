//! Queues the jobs that create and remove a platform's infrastructure.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::entity_tree;
use super::jobs::{Deprovision, ProvisionPlatform, Removal, Target};
use crate::access::{
    AuditEvent, PlatformAccess, PlatformScope, PlatformWriter, SystemScope, audited,
    authorize_operator,
};
use crate::kernel::{
    Context, Email, EntityId, Environment, Error, Line, PlatformId, Result, Stored, permission,
};
use crate::port::UnitOfWork;
use crate::provisioning::{DEPROVISION, Job, JobStatus};
use crate::registry::PlatformRefusal;
use crate::use_case::provisioning;
use crate::use_case::provisioning::{Kinds, enqueue};

/// Provisions the infrastructure of a platform in an environment.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProvisionCommand {
    /// The platform that gets the infrastructure.
    pub platform_id: PlatformId,
    /// The billing plan of the platform, 1 to 100 characters. It is stored with the job.
    pub plan_tier: Line<1, 100>,
    /// The email address for invoices. It is stored with the job.
    pub billing_email: Email,
    /// The entity that owns the resources; `null` means the platform's default tenant. Default: `null`.
    pub default_entity_id: Option<EntityId>,
    /// The environment to provision. Default: `prod`.
    #[serde(default = "Environment::prod")]
    pub environment: Environment,
}

/// Removes the infrastructure of a platform in an environment.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeprovisionCommand {
    /// The platform whose infrastructure is removed.
    pub platform_id: PlatformId,
    /// The environment to remove. Default: `prod`.
    #[serde(default = "Environment::prod")]
    pub environment: Environment,
}

/// The parameters of a provisioning job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProvisionParams {
    pub(super) plan_tier: String,
    pub(super) billing_email: Option<Email>,
    pub(super) entity_id: Option<EntityId>,
    pub(super) environment: Environment,
}

/// Queues the job that creates a platform's default resources in an environment. Existing resources are not changed.
///
/// # Errors
/// `NOT_FOUND` if the entity does not exist; `INVALID_STATE` if the entity or one above it is suspended;
/// `LIMIT_REACHED` if too many jobs of the platform are queued.
pub async fn provision(
    cx: &Context,
    scope: &PlatformScope<permission::JobCreate>,
    uow: &mut dyn UnitOfWork,
    command: ProvisionCommand,
) -> Result<Stored<Job>> {
    let wanted = ProvisionParams {
        plan_tier: command.plan_tier.to_string(),
        billing_email: Some(command.billing_email),
        entity_id: command.default_entity_id,
        environment: command.environment,
    };
    queue_provision(cx, scope.writer(), uow, wanted).await
}

/// Queues the provisioning job and records that in the audit log.
pub(super) async fn queue_provision(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    wanted: ProvisionParams,
) -> Result<Stored<Job>> {
    let entity = match &wanted.entity_id {
        Some(id) => entity_tree::not_deleted(scope, uow, id).await?,
        None => entity_tree::default_tenant(cx, scope, uow).await?,
    };
    entity_tree::ensure_not_suspended(scope, uow, &entity).await?;
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

/// Queues the job that removes a platform's infrastructure in an environment. The job goes to the front of the
/// platform's lane. The platform itself is kept.
///
/// # Errors
/// `INVALID_STATE` if the platform is already being removed permanently.
pub async fn deprovision(
    cx: &Context,
    scope: &PlatformScope<permission::PlatformManage>,
    uow: &mut dyn UnitOfWork,
    environment: Environment,
) -> Result<Stored<Job>> {
    if scope.platform().purging {
        return Err(Error::from(PlatformRefusal::Purging));
    }
    queue_deprovision(cx, scope.writer(), uow, Some(environment)).await
}

/// Queues the removal of one environment; `None` means all environments.
async fn queue_deprovision(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    environment: Option<Environment>,
) -> Result<Stored<Job>> {
    queue(cx, scope, uow, Removal::of(scope, environment)).await
}

/// Queues the removal of all environments. If `cancels_jobs` is `true`, the job first cancels the platform's other
/// jobs.
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

/// Queues a deprovisioning job and records that in the audit log.
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

/// Resumes the permanent removal of a platform. Retries its failed job, or queues a new one if none exists or the last
/// one is `COMPLETED`, for example because an operator forced it.
///
/// # Errors
/// `FORBIDDEN` if the caller is not an operator; `INVALID_STATE` while the removal is in progress.
pub(super) async fn resume_removal(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    kinds: &Kinds,
) -> Result<()> {
    let operator = authorize_operator(cx)?;
    let system = SystemScope::new();
    let jobs = provisioning::list_of_kind(system, uow, scope.id(), DEPROVISION).await?;
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

/// Records in the audit log that a job of the platform was queued.
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
    audited::record_event(cx, uow, event).await
}
