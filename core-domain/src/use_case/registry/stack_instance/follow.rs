//! How workspace stacks follow their jobs, and the environments they run in.

use crate::access::{Batches, PlatformAccess, PlatformWriter, audited};
use crate::kernel::{Context, EntityId, Environment, JobId, Machine, Result, StackId};
use crate::port::UnitOfWork;
use crate::registry::{
    FeatureId, WorkspaceStack, WorkspaceStackEvent, WorkspaceStackFilter, WorkspaceStackQuery,
};
use crate::stacks::StackDefinition;
use crate::use_case::stacks::version;

/// Moves a stack as its job moved, provided it is still this job's: one that was asked for, or ended, otherwise in the
/// meantime stays as it is.
pub(in crate::use_case::registry) async fn record_event(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    (stack, job): (&StackId, &JobId),
    event: WorkspaceStackEvent,
) -> Result<()> {
    let stacks = scope.records::<WorkspaceStack>(uow);
    let seen = stacks.find(stack).await?;
    let own = |seen: &WorkspaceStack| seen.provision_job_id.as_ref() == Some(job);
    let Some(seen) = seen.filter(|seen| own(seen)) else {
        return Ok(());
    };
    let next = seen.edit().after(event)?;
    audited::replace(cx, scope, uow, &seen, next, event.of_event().action).await?;
    Ok(())
}

/// Ends the stacks that run in an environment, or in any, with it. Jobs that still work on them find that out.
pub(in crate::use_case::registry) async fn end_all(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    environment: Option<Environment>,
) -> Result<()> {
    let event = WorkspaceStackEvent::End;
    let all = WorkspaceStackQuery::Listed(WorkspaceStackFilter::default());
    let mut stacks = Batches::<WorkspaceStack>::of(all);
    while let Some(batch) = stacks.next(scope.records(uow)).await? {
        for seen in batch {
            let there = seen
                .environment
                .is_some_and(|of| environment.is_none_or(|e| e == of));
            if !there || !event.of_event().from.contains(&seen.status) {
                continue;
            }
            let next = seen.edit().after(event)?;
            audited::replace(cx, scope, uow, &seen, next, event.of_event().action).await?;
        }
    }
    Ok(())
}

/// Another stack of the entity that runs, or is about to, in the environment, and asks for the feature as well.
pub(in crate::use_case::registry) async fn other_with_feature(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    (entity, stack): (&EntityId, &StackId),
    environment: Environment,
    feature: &FeatureId,
) -> Result<Option<StackId>> {
    let mut stacks = Batches::<WorkspaceStack>::of(WorkspaceStackQuery::of_tenant(entity));
    while let Some(batch) = stacks.next(scope.records(uow)).await? {
        for other in batch {
            let Some(version) = other.version_id.as_ref() else {
                continue;
            };
            if other.id == *stack || other.environment != Some(environment) || !other.takes_apps() {
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
