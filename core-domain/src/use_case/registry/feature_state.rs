//! Finds the features of entities, and changes their state on behalf of jobs.

use serde_json::json;

use crate::access::{Batches, PlatformAccess, PlatformWriter, audited};
use crate::kernel::{
    Code, Context, EntityId, Environment, Error, FeatureActivationId, JobId, JsonText, Machine,
    Result, StackId, Stored,
};
use crate::port::UnitOfWork;
use crate::registry::{
    FeatureActivation, FeatureActivationQuery, FeatureEvent, FeatureId, FeatureStatus,
    FeatureVersion, Resource, ResourceType,
};

/// Returns whether the feature is active or being activated in this version and with this configuration. Without a
/// configuration, any is accepted.
///
/// # Errors
/// `CONFLICT` if it is active or being activated in another version or with another configuration.
pub(in crate::use_case::registry) fn is_active_or_pending(
    seen: &FeatureActivation,
    version: &FeatureVersion,
    config: Option<&JsonText>,
) -> Result<bool> {
    if !matches!(seen.status, FeatureStatus::Active | FeatureStatus::Pending) {
        return Ok(false);
    }
    let (current, status) = (&seen.feature_version, seen.status);
    let difference = if current != version {
        format!("in version {current}")
    } else if config.is_some_and(|config| *config != seen.effective_config()) {
        "with another configuration".to_owned()
    } else {
        return Ok(true);
    };
    Err(Error::Refused {
        code: Code::Conflict,
        message: format!("The feature is {status} {difference}. Deactivate it first."),
        details: json!({ "featureVersion": current, "status": status }),
    })
}

/// Returns a feature of an entity in an environment; `None` if the entity never had it there.
pub(in crate::use_case::registry) async fn find(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    entity: &EntityId,
    feature: &FeatureId,
    environment: Environment,
) -> Result<Option<Stored<FeatureActivation>>> {
    let exactly = FeatureActivationQuery::Exactly {
        entity_id: entity.clone(),
        environment,
        feature_id: feature.clone(),
    };
    let features = scope.records::<FeatureActivation>(uow);
    features.first(&exactly).await
}

/// Returns all features that match the query, in its order. A limit keeps the number of features of an entity small.
pub(super) async fn all(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    query: FeatureActivationQuery,
) -> Result<Vec<Stored<FeatureActivation>>> {
    let mut batches = Batches::<FeatureActivation>::of(query);
    let mut features = Vec::new();
    while let Some(batch) = batches.next(scope.records(uow)).await? {
        features.extend(batch);
    }
    Ok(features)
}

/// Returns the features that a workspace stack of an entity activated and that are not inactive.
pub(in crate::use_case::registry) async fn of_stack(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    entity: &EntityId,
    stack: &StackId,
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

/// Returns the first features of the platform that may have a worker at the provider, at most `limit`. Includes
/// features whose jobs stopped before they recorded their result. `environment` is the environment; `None` means all.
pub(in crate::use_case::registry) async fn list_with_worker(
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

/// Applies an event of its job to a feature. Does nothing if the feature now belongs to another job or has ended.
/// `service_url` is the URL of an active feature.
pub(in crate::use_case::registry) async fn record_event(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    activation: &FeatureActivationId,
    job: &JobId,
    event: FeatureEvent,
    service_url: Option<String>,
) -> Result<()> {
    let features = scope.records::<FeatureActivation>(uow);
    let seen = features.find(activation).await?;
    let own = |seen: &FeatureActivation| seen.provision_job_id.as_ref() == Some(job);
    let Some(seen) = seen.filter(|seen| own(seen)) else {
        return Ok(());
    };
    let mut next = seen.edit().apply_event(event, uow.now().await?)?;
    next.service_url = service_url.or(next.service_url);
    audited::replace(cx, scope, uow, &seen, next, event.transition().action).await?;
    Ok(())
}

/// Assigns a feature to another workspace stack, so that it is removed with that one.
pub(in crate::use_case::registry) async fn reassign(
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

/// The scope in which all features end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::use_case::registry) enum EndScope {
    /// One entity is deleted.
    Entity(EntityId),
    /// The platform's infrastructure in an environment is removed; `None` means all environments.
    Environment(Option<Environment>),
}

/// Ends the features of a deleted entity or a removed environment. Jobs that still work on them fail when they read the
/// new status.
pub(in crate::use_case::registry) async fn end_all(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    ending: EndScope,
) -> Result<()> {
    let ending = match ending {
        EndScope::Entity(entity_id) => FeatureActivationQuery::OfEntity {
            entity_id,
            in_use: true,
        },
        EndScope::Environment(environment) => FeatureActivationQuery::OfPlatform {
            environment,
            inactive: false,
        },
    };
    let event = FeatureEvent::End;
    let mut features = Batches::<FeatureActivation>::of(ending);
    while let Some(batch) = features.next(scope.records(uow)).await? {
        for seen in batch {
            let next = seen.edit().apply_event(event, uow.now().await?)?;
            audited::replace(cx, scope, uow, &seen, next, event.transition().action).await?;
        }
    }
    Ok(())
}

/// Ends the features whose workers a job of the platform has removed.
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
            next = next.apply_event(event, uow.now().await?)?;
        }
        next.provision_job_id = Some(job.clone());
        audited::replace(cx, scope, uow, &seen, next, event.transition().action).await?;
    }
    Ok(())
}

/// Returns `CONFLICT` if a feature of the resource's entity that is not inactive uses the resource as its worker.
/// Deactivating the feature removes both.
pub(in crate::use_case::registry) async fn ensure_none_runs_as(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    resource: &Resource,
) -> Result<()> {
    if resource.resource_type != ResourceType::Worker {
        return Ok(());
    }
    let features = with_worker(scope, uow, resource).await?;
    let runs_as = |feature: &FeatureActivation| feature.status != FeatureStatus::Inactive;
    match features.iter().find(|feature| runs_as(feature)) {
        None => Ok(()),
        Some(feature) => Err(Error::Refused {
            code: Code::Conflict,
            message: "This resource is the worker of a feature. Deactivate the feature instead."
                .to_owned(),
            details: json!({ "featureId": feature.feature_id, "status": feature.status }),
        }),
    }
}

/// Returns whether the resource has the name of the worker of one of its entity's features.
pub(in crate::use_case::registry) async fn is_worker_of_entity(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    resource: &Resource,
) -> Result<bool> {
    Ok(!with_worker(scope, uow, resource).await?.is_empty())
}

/// Returns the features of the resource's entity whose worker has the resource's name.
async fn with_worker(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    resource: &Resource,
) -> Result<Vec<Stored<FeatureActivation>>> {
    let in_environment = FeatureActivationQuery::ByFeature {
        entity_id: resource.entity_id.clone(),
        environment: resource.environment,
        active: false,
    };
    let mut features = all(scope, uow, in_environment).await?;
    let slug = &scope.platform().slug;
    features.retain(|feature| feature.worker_name(slug) == resource.cf_name.as_str());
    Ok(features)
}
