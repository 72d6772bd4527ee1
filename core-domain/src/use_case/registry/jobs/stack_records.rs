//! Finds and writes the records of workspace stacks and of their parts on behalf of jobs.

use super::object::{find_resource, provider_name};
use super::target::{PlannedPart, StackTarget};
use crate::access::{Batches, PlatformAccess, PlatformWriter, audited};
use crate::kernel::{
    BoundedJson, Context, EntityId, Environment, JobId, Machine, ResourceId, Result, StackId,
    Stored,
};
use crate::port::UnitOfWork;
use crate::provisioning::{FailureKind, Job, StepStatus};
use crate::registry::{
    CreateResource, FeatureId, NameOwner, Resource, ResourceEvent, ResourceQuery, ResourceStatus,
    WorkspaceStack, WorkspaceStackEvent, WorkspaceStackQuery, name_holder,
};
use crate::stacks::StackDefinition;
use crate::use_case::registry::resource;
use crate::use_case::stacks::version;

/// Applies an event of its job to a stack. Does nothing if the stack now belongs to another job or has ended.
pub(super) async fn record_event(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    stack: &StackId,
    job: &JobId,
    event: WorkspaceStackEvent,
) -> Result<()> {
    let stacks = scope.records::<WorkspaceStack>(uow);
    let seen = stacks.find(stack).await?;
    let own = |seen: &WorkspaceStack| seen.provision_job_id.as_ref() == Some(job);
    let Some(seen) = seen.filter(|seen| own(seen)) else {
        return Ok(());
    };
    let next = seen.edit().after(event)?;
    audited::replace(cx, scope, uow, &seen, next, event.transition().action).await?;
    Ok(())
}

/// Returns the resource of a part; `None` if there is none.
pub(super) async fn of_part(
    platform: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    part: &PlannedPart,
) -> Result<Option<Stored<Resource>>> {
    find_resource(platform, uow, &part.object()).await
}

/// Selects the resources of a stack that are not deleted, newest first.
pub(in crate::use_case::registry) fn of_stack(target: &StackTarget) -> ResourceQuery {
    ResourceQuery::OfStack(target.stack_instance_id.clone())
}

/// Returns whether a resource is a part of the stack in its environment. The platform's own resources are not, even if
/// a person assigned one to the stack.
pub(in crate::use_case::registry) fn is_part(target: &StackTarget, resource: &Resource) -> bool {
    let holder = name_holder(resource.cf_name.as_str(), &target.platform_id);
    resource.environment == target.environment && holder != Some(NameOwner::Platform)
}

/// Creates the resource records of the parts that a job will create. Existing resources do not change, except that
/// failed ones are assigned to the job.
///
/// # Errors
/// `CONFLICT` if a name is taken.
pub(in crate::use_case::registry) async fn insert_planned_parts(
    cx: &Context,
    platform: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    target: &StackTarget,
    job: &JobId,
    parts: &[PlannedPart],
) -> Result<()> {
    for part in parts {
        let Some(seen) = of_part(platform, uow, part).await? else {
            let resource = planned_resource(cx, platform, uow, target, job, part).await?;
            resource::insert_for_job(cx, platform, uow, resource).await?;
            continue;
        };
        if seen.status == ResourceStatus::Failed {
            let event = ResourceEvent::Provision;
            let mut next = seen.edit().after(event, uow.now().await?)?;
            next.provision_job_id = Some(job.clone());
            audited::replace(cx, platform, uow, &seen, next, event.transition().action).await?;
        }
    }
    Ok(())
}

/// Marks parts that an ended job never created as failed. Deletes the records of parts that a cancelled job had not
/// started.
pub(super) async fn fail_unmade_parts(
    cx: &Context,
    platform: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    job: &Job,
    parts: &[PlannedPart],
) -> Result<()> {
    let cancelled = job.failure_kind == Some(FailureKind::Cancelled);
    for part in parts {
        let resource = of_part(platform, uow, part).await?;
        let own = |resource: &Resource| {
            resource.provision_job_id.as_ref() == Some(&job.id)
                && resource.status != ResourceStatus::Active
        };
        let Some(resource) = resource.filter(|resource| own(resource)) else {
            continue;
        };
        let mut steps = job.steps.iter();
        let step = steps.find(|step| step.name == part.step());
        if cancelled && step.is_some_and(|step| step.status == StepStatus::Pending) {
            resource::soft_delete(cx, platform, uow, &resource).await?;
            continue;
        }
        let next = resource.edit().fail_provisioning(uow.now().await?)?;
        let action = ResourceEvent::Fail.transition().action;
        audited::replace(cx, platform, uow, &resource, next, action).await?;
    }
    Ok(())
}

/// Returns the resource record of a part that does not exist yet.
async fn planned_resource(
    cx: &Context,
    platform: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    target: &StackTarget,
    job: &JobId,
    part: &PlannedPart,
) -> Result<Resource> {
    let command = CreateResource {
        stack_id: Some(target.stack_instance_id.clone()),
        resource_type: part.id.resource_type,
        service_name: provider_name(part.id.name.as_str())?,
        environment: target.environment,
        cf_name: provider_name(&part.cf_name)?,
        cf_id: None,
        cf_url: None,
        provision_job_id: Some(job.clone()),
        config: BoundedJson::empty_object(),
    };
    let now = uow.now().await?;
    let id = ResourceId::generate(now, cx.entropy.as_ref());
    let entity = target.entity_id.clone();
    Ok(Resource::create(
        id,
        platform.platform(),
        entity,
        command,
        now,
    ))
}

/// Returns another active or pending stack of the entity in the environment that includes the feature.
pub(super) async fn other_with_feature(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    entity: &EntityId,
    stack: &StackId,
    environment: Environment,
    feature: &FeatureId,
) -> Result<Option<StackId>> {
    let mut stacks = Batches::<WorkspaceStack>::of(WorkspaceStackQuery::of_tenant(entity));
    while let Some(batch) = stacks.next(scope.records(uow)).await? {
        for other in batch {
            let Some(version) = other.version_id.as_ref() else {
                continue;
            };
            if other.id == *stack || other.environment != Some(environment) || !other.accepts_apps()
            {
                continue;
            }
            let version = version::by_id(uow, version).await?;
            let definition = StackDefinition::parse(&version.stack_definition);
            let features = definition.unwrap_or_default().features;
            if features.iter().any(|of| of.id.as_str() == feature.as_str()) {
                return Ok(Some(other.id.clone()));
            }
        }
    }
    Ok(None)
}
