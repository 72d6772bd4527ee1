//! The entries of a workspace stack's parts in the catalogue: entered when a job for them is queued, so that whatever it
//! leaves behind is known.

use crate::access::{PlatformAccess, PlatformWriter, audited};
use crate::kernel::{
    BoundedJson, Context, Error, JobId, Line, Machine, ResourceId, Result, Stored,
};
use crate::port::UnitOfWork;
use crate::provisioning::{FailureKind, Job, StepStatus};
use crate::registry::{
    CreateResource, NameHolder, ProviderName, Resource, ResourceEvent, ResourceQuery,
    ResourceStatus, name_holder,
};
use crate::use_case::registry::jobs::{MadeResource, PlannedPart, StackTarget, entry_of};
use crate::use_case::registry::resource;

/// The entry of a part, if there is one.
pub(in crate::use_case::registry) async fn of_part(
    platform: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    part: &PlannedPart,
) -> Result<Option<Stored<Resource>>> {
    entry_of(platform, uow, &part.object()).await
}

/// The entries of a stack that are not deleted, newest first.
pub(in crate::use_case::registry) fn of_stack(target: &StackTarget) -> ResourceQuery {
    ResourceQuery::OfStack(target.stack_instance_id.clone())
}

/// Whether one of these entries is a part of the stack in its environment. What the platform has for itself is not, even if
/// an entry made by hand says so.
pub(in crate::use_case::registry) fn is_part(target: &StackTarget, entry: &Resource) -> bool {
    let holder = name_holder(entry.cf_name.as_str(), &target.platform_id);
    entry.environment == target.environment && holder != Some(NameHolder::Platform)
}

/// Enters the parts a job shall make. What is there already stays as it is, and what another job is about to make stays
/// that job's.
///
/// # Errors
/// `CONFLICT` when a name is taken.
pub(in crate::use_case::registry) async fn enter_planned(
    cx: &Context,
    platform: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    (target, job): (&StackTarget, &JobId),
    parts: &[PlannedPart],
) -> Result<()> {
    for part in parts {
        let Some(seen) = of_part(platform, uow, part).await? else {
            let entry = entry(cx, platform, uow, (target, job), part).await?;
            resource::insert_for_job(cx, platform, uow, entry).await?;
            continue;
        };
        if seen.status == ResourceStatus::Failed {
            let event = ResourceEvent::Provision;
            let mut next = seen.edit().after(event, uow.now().await?)?;
            next.provision_job_id = Some(job.clone());
            audited::replace(cx, platform, uow, &seen, next, event.of_event().action).await?;
        }
    }
    Ok(())
}

/// Enters what a job made or found.
pub(in crate::use_case::registry) async fn upsert_part(
    cx: &Context,
    platform: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    (target, job): (&StackTarget, &JobId),
    part: &PlannedPart,
    made: &MadeResource,
) -> Result<()> {
    let mut observed = entry(cx, platform, uow, (target, job), part).await?;
    observed.cf_id = Line::parse(&made.cf_id).ok();
    observed.cf_url.clone_from(&made.cf_url);
    let maker = made.maker(job);
    resource::upsert_observed(cx, platform, uow, observed, maker).await?;
    Ok(())
}

/// Says of what a job that has ended did not make that it failed. What a cancelled job had not begun with was never wanted.
pub(in crate::use_case::registry) async fn settle_unmade(
    cx: &Context,
    platform: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    job: &Job,
    parts: &[PlannedPart],
) -> Result<()> {
    let cancelled = job.failure_kind == Some(FailureKind::Cancelled);
    for part in parts {
        let entry = of_part(platform, uow, part).await?;
        let own = |entry: &Resource| {
            entry.provision_job_id.as_ref() == Some(&job.id)
                && entry.status != ResourceStatus::Active
        };
        let Some(entry) = entry.filter(|entry| own(entry)) else {
            continue;
        };
        let mut steps = job.steps.iter();
        let step = steps.find(|step| step.name == part.step());
        if cancelled && step.is_some_and(|step| step.status == StepStatus::Pending) {
            resource::soft_delete(cx, platform, uow, &entry).await?;
            continue;
        }
        let next = entry.edit().not_made(uow.now().await?)?;
        let action = ResourceEvent::Fail.of_event().action;
        audited::replace(cx, platform, uow, &entry, next, action).await?;
    }
    Ok(())
}

/// The entry of a part that is not there yet.
async fn entry(
    cx: &Context,
    platform: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    (target, job): (&StackTarget, &JobId),
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

fn provider_name(text: &str) -> Result<ProviderName> {
    ProviderName::parse(text).map_err(|error| Error::Internal(error.to_string()))
}
