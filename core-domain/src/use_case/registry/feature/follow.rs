//! How features follow their jobs, and the places they run in.

use super::read::all;
use crate::access::{Batches, PlatformAccess, PlatformWriter, audited};
use crate::kernel::{
    Context, EntityId, Environment, FeatureActivationId, JobId, Machine, Result, StackId, Stored,
};
use crate::port::UnitOfWork;
use crate::registry::{FeatureActivation, FeatureActivationQuery, FeatureEvent, FeatureStatus};

/// Moves a feature as its job moved, provided it is still this job's: one that was asked for, or ended, otherwise in the
/// meantime stays as it is. `service_url` is where an active one is served.
pub(in crate::use_case::registry) async fn record_event(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    (activation, job): (&FeatureActivationId, &JobId),
    event: FeatureEvent,
    service_url: Option<String>,
) -> Result<()> {
    let features = scope.records::<FeatureActivation>(uow);
    let seen = features.find(activation).await?;
    let own = |seen: &FeatureActivation| seen.provision_job_id.as_ref() == Some(job);
    let Some(seen) = seen.filter(|seen| own(seen)) else {
        return Ok(());
    };
    let mut next = seen.edit().after(event, uow.now().await?)?;
    next.service_url = service_url.or(next.service_url);
    audited::replace(cx, scope, uow, &seen, next, event.of_event().action).await?;
    Ok(())
}

/// The features that a workspace stack of an entity brought, as far as they have not ended.
pub(in crate::use_case::registry) async fn of_stack(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    (entity, stack): (&EntityId, &StackId),
    environment: Environment,
) -> Result<Vec<Stored<FeatureActivation>>> {
    let in_environment = FeatureActivationQuery::ByFeature {
        entity_id: entity.clone(),
        environment,
        active: false,
    };
    let mut features = all(scope, uow, in_environment).await?;
    features.retain(|feature| {
        feature.stack_id.as_ref() == Some(stack) && feature.status != FeatureStatus::Inactive
    });
    Ok(features)
}

/// Lets a feature go with another workspace stack than the one that brought it.
pub(in crate::use_case::registry) async fn hand_over(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    seen: &Stored<FeatureActivation>,
    stack: &StackId,
) -> Result<()> {
    let mut next = seen.edit();
    next.stack_id = Some(stack.clone());
    audited::replace(cx, scope, uow, seen, next, "feature.handed_over").await?;
    Ok(())
}

/// What goes, and its features with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::use_case::registry) enum Ending {
    /// An entity.
    Entity(EntityId),
    /// Everything of the platform in an environment; in all when there is none.
    Environment(Option<Environment>),
}

/// Ends features with the place they run in. Jobs that still work on them find that out.
pub(in crate::use_case::registry) async fn end_all(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    ending: Ending,
) -> Result<()> {
    let ending = match ending {
        Ending::Entity(entity_id) => FeatureActivationQuery::OfEntity {
            entity_id,
            in_use: true,
        },
        Ending::Environment(environment) => FeatureActivationQuery::OfPlatform {
            environment,
            inactive: false,
        },
    };
    let event = FeatureEvent::End;
    let mut features = Batches::<FeatureActivation>::of(ending);
    while let Some(batch) = features.next(scope.records(uow)).await? {
        for seen in batch {
            let next = seen.edit().after(event, uow.now().await?)?;
            audited::replace(cx, scope, uow, &seen, next, event.of_event().action).await?;
        }
    }
    Ok(())
}

/// Returns the first features of the platform that may have a worker at the provider in an environment, or in any: those of
/// jobs that stopped before they could say so too. At most `limit`.
pub(in crate::use_case::registry) async fn provided(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    environment: Option<Environment>,
    limit: usize,
) -> Result<Vec<Stored<FeatureActivation>>> {
    let all = FeatureActivationQuery::OfPlatform {
        environment,
        inactive: true,
    };
    let mut provided = Vec::new();
    let mut features = Batches::<FeatureActivation>::of(all);
    while provided.len() < limit
        && let Some(batch) = features.next(scope.records(uow)).await?
    {
        provided.extend(
            batch
                .into_iter()
                .filter(|feature| feature.may_be_provided()),
        );
    }
    provided.truncate(limit);
    Ok(provided)
}

/// Ends features whose workers a job of the platform has removed.
pub(in crate::use_case::registry) async fn end_removed(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    removed: &[FeatureActivationId],
    job: &JobId,
) -> Result<()> {
    let event = FeatureEvent::End;
    for id in removed {
        let found = scope.records::<FeatureActivation>(uow).find(id).await?;
        let Some(seen) = found.filter(|seen| seen.may_be_provided()) else {
            continue;
        };
        let mut next = seen.edit();
        if next.status != FeatureStatus::Inactive {
            next = next.after(event, uow.now().await?)?;
        }
        next.provision_job_id = Some(job.clone());
        audited::replace(cx, scope, uow, &seen, next, event.of_event().action).await?;
    }
    Ok(())
}
