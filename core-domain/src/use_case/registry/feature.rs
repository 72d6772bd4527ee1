//! Features of entities: activating and deactivating them, which jobs do, and what an entity runs with.

use serde_json::json;

use super::jobs::{Activate, ActivateInput, Deactivate, DeactivateInput, FeatureTarget};
use super::{build, entity};
use crate::access::{
    Batches, PlatformAccess, PlatformScope, PlatformWriter, SystemScope, audited, ensure_room,
};
use crate::kernel::{
    Code, Context, EntityId, Environment, Error, FeatureActivationId, JobId, ListQuery, Machine,
    Page, Record, Result, StackId, StoreError, Stored, grant,
};
use crate::port::UnitOfWork;
use crate::provisioning::{ACTIVATE_FEATURE, Job};
use crate::registry::{
    ActivateFeature, BuildTrigger, DeactivateFeature, Entity, FeatureActivation,
    FeatureActivationQuery, FeatureEvent, FeatureId, FeatureManifest, FeatureStatus,
    FeatureVersion, ManifestFeature, Resource, ResourceType,
};
use crate::use_case::provisioning;
use crate::use_case::provisioning::{enqueue_child, estimated_seconds};

/// What came of the wish for a feature.
#[derive(Clone, Debug, PartialEq)]
pub struct Activation {
    /// The feature as it stands now.
    pub activation: Stored<FeatureActivation>,
    /// Whether a job was queued for it; not when it is active or on its way already.
    pub queued: bool,
    /// How many seconds such a job takes.
    pub estimated_seconds: i64,
}

/// What a feature is asked for by, besides a caller.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::use_case::registry) struct AskedBy<'a> {
    /// The workspace stack that shall have it.
    pub(in crate::use_case::registry) stack_id: Option<&'a StackId>,
    /// The job that waits for it.
    pub(in crate::use_case::registry) job_id: Option<&'a JobId>,
}

/// Queues the job that makes a feature of an entity, unless it is active, or on its way, in this version.
///
/// # Errors
/// `NOT_FOUND` for an unknown entity; `INVALID_STATE` below a suspended entity, and while the feature is being removed;
/// `CONFLICT` while it is active in another version; `LIMIT_REACHED` for one more feature or queued job than there may be.
pub async fn activate(
    cx: &Context,
    scope: &PlatformScope<grant::FeatureWrite>,
    uow: &mut dyn UnitOfWork,
    entity: &EntityId,
    command: ActivateFeature,
) -> Result<Activation> {
    let by = AskedBy::default();
    activate_for(cx, scope.writer(), uow, entity, command, by).await
}

/// As [`activate`]. A feature that is active or on its way keeps what it was asked for by.
pub(in crate::use_case::registry) async fn activate_for(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    entity: &EntityId,
    command: ActivateFeature,
    by: AskedBy<'_>,
) -> Result<Activation> {
    let entity = entity::not_deleted(scope, uow, entity).await?;
    entity::ensure_not_suspended(scope, uow, &entity).await?;
    let feature = command.feature_id.clone().into();
    let known = find(scope, uow, &entity.id, &feature, command.environment).await?;
    let estimated_seconds = estimated_seconds(uow, ACTIVATE_FEATURE).await?;
    let (activation, queued) = match known {
        Some(seen) if is_there(&seen, &command.version)? => (seen, false),
        Some(seen) => {
            let version = command.version;
            (again(cx, scope, uow, &seen, version, by).await?, true)
        }
        None => (first(cx, scope, uow, &entity, command, by).await?, true),
    };
    Ok(Activation {
        activation,
        queued,
        estimated_seconds,
    })
}

/// Whether the feature is active or on its way in this version.
///
/// # Errors
/// `CONFLICT` when it is so in another one.
pub(in crate::use_case::registry) fn is_there(
    seen: &FeatureActivation,
    wanted: &FeatureVersion,
) -> Result<bool> {
    if !matches!(seen.status, FeatureStatus::Active | FeatureStatus::Pending) {
        return Ok(false);
    }
    if seen.feature_version == *wanted {
        return Ok(true);
    }
    let (version, status) = (&seen.feature_version, seen.status);
    Err(Error::Refused {
        code: Code::Conflict,
        message: format!("The feature is {status} in version {version}; deactivate it first."),
        details: json!({ "featureVersion": version, "status": status }),
    })
}

/// Asks for a feature that the entity did not have before.
async fn first(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    entity: &Entity,
    command: ActivateFeature,
    by: AskedBy<'_>,
) -> Result<Stored<FeatureActivation>> {
    let in_environment = FeatureActivationQuery::ByFeature {
        entity_id: entity.id.clone(),
        environment: command.environment,
        active: false,
    };
    let features = scope.records::<FeatureActivation>(uow);
    let limit = cx.limits.features_per_entity;
    let message = "The entity has had as many features in this environment as it may have.";
    ensure_room(features, &in_environment, limit, message).await?;
    let now = uow.now().await?;
    let id = FeatureActivationId::generate(now, cx.entropy.as_ref());
    let (platform, entity) = (scope.id().clone(), entity.id.clone());
    let mut activation = FeatureActivation::create(id, platform, entity, command, now);
    activation.stack_id = by.stack_id.cloned();
    activation.provision_job_id = Some(queue(cx, scope, uow, &activation, by).await?);
    let action = FeatureEvent::Activate.of_event().action;
    let stored = audited::insert(cx, scope, uow, activation, action).await;
    stored.map_err(|error| match error {
        // The same wish was faster: run again, what it made is the answer.
        Error::Store(
            conflict @ StoreError::Conflict {
                index: "feature", ..
            },
        ) => conflict.conflict_as_retry().into(),
        error => error,
    })
}

/// Asks for a feature that went, or did not come.
async fn again(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    seen: &Stored<FeatureActivation>,
    version: FeatureVersion,
    by: AskedBy<'_>,
) -> Result<Stored<FeatureActivation>> {
    let event = FeatureEvent::Activate;
    let mut next = seen.edit().after(event, uow.now().await?)?;
    next.feature_version = version;
    next.stack_id = by.stack_id.cloned();
    next.provision_job_id = Some(queue(cx, scope, uow, &next, by).await?);
    audited::replace(cx, scope, uow, seen, next, event.of_event().action).await
}

/// Queues the job that makes a feature, and enters the build that is.
async fn queue(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    feature: &FeatureActivation,
    by: AskedBy<'_>,
) -> Result<JobId> {
    let input = ActivateInput {
        target: FeatureTarget::of(feature, &scope.platform().slug),
        version: feature.feature_version.clone(),
    };
    let job = enqueue_child::<Activate>(cx, scope, uow, &input, by.job_id).await?;
    let trigger = BuildTrigger::FeatureActivation;
    build::begin(cx, scope, uow, &job.id, feature.environment, trigger).await?;
    Ok(job.id.clone())
}

/// What came of the wish to be rid of a feature.
#[derive(Clone, Debug, PartialEq)]
pub struct Deactivation {
    /// The feature as it stands now.
    pub activation: Stored<FeatureActivation>,
    /// Whether a job was queued for it; not when one is on its way already.
    pub queued: bool,
}

/// Queues the job that removes a feature of an entity, unless there is one. The removal of a feature that is still on its
/// way waits for it. Its data stays.
///
/// # Errors
/// `NOT_FOUND` for an unknown entity, and for a feature it never had; `INVALID_STATE` for an inactive one.
pub async fn deactivate(
    cx: &Context,
    scope: &PlatformScope<grant::FeatureWrite>,
    uow: &mut dyn UnitOfWork,
    entity: &EntityId,
    command: DeactivateFeature,
) -> Result<Deactivation> {
    deactivate_with(cx, scope, uow, entity, command, false).await
}

/// As [`deactivate`]. With `delete_data` the job removes the feature's data too, and is queued after one that does not: the
/// stores in the environment that the feature owns. Stores that jobs made for the platform or for a stack have other owners.
///
/// # Errors
/// As [`deactivate`].
pub async fn deactivate_with(
    cx: &Context,
    scope: &PlatformScope<grant::FeatureWrite>,
    uow: &mut dyn UnitOfWork,
    entity: &EntityId,
    command: DeactivateFeature,
    delete_data: bool,
) -> Result<Deactivation> {
    let scope = scope.writer();
    let entity = entity::not_deleted(scope, uow, entity).await?;
    let (feature, environment) = (&command.feature_id, command.environment);
    let seen = find(scope, uow, &entity.id, feature, environment).await?;
    let seen = seen.ok_or(Error::NotFound(FeatureActivation::KIND))?;
    if seen.status == FeatureStatus::Deactivating && !delete_data {
        return Ok(Deactivation {
            activation: seen,
            queued: false,
        });
    }
    let activation = queue_removal(cx, scope, uow, &seen, delete_data, None).await?;
    Ok(Deactivation {
        activation,
        queued: true,
    })
}

/// Queues the job that removes a feature; `parent` is the job that waits for it.
pub(in crate::use_case::registry) async fn queue_removal(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    seen: &Stored<FeatureActivation>,
    delete_data: bool,
    parent: Option<&JobId>,
) -> Result<Stored<FeatureActivation>> {
    let event = FeatureEvent::Deactivate;
    let mut next = seen.edit();
    if seen.status != FeatureStatus::Deactivating {
        next = next.after(event, uow.now().await?)?;
    }
    let input = DeactivateInput {
        target: FeatureTarget::of(seen, &scope.platform().slug),
        delete_data,
    };
    let job = enqueue_child::<Deactivate>(cx, scope, uow, &input, parent).await?;
    next.provision_job_id = Some(job.id.clone());
    audited::replace(cx, scope, uow, seen, next, event.of_event().action).await
}

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

type Reads = PlatformScope<grant::FeatureRead>;

/// The features of an entity, newest first; inactive ones too.
///
/// # Errors
/// `NOT_FOUND` for an unknown entity; `INVALID_CURSOR`.
pub async fn list(
    scope: &Reads,
    uow: &mut dyn UnitOfWork,
    entity: &EntityId,
    query: &ListQuery,
) -> Result<Page<Stored<FeatureActivation>>> {
    entity::not_deleted(scope, uow, entity).await?;
    let of_entity = FeatureActivationQuery::OfEntity {
        entity_id: entity.clone(),
        in_use: false,
    };
    let features = scope.records::<FeatureActivation>(uow);
    features.page(&of_entity, &query.page()).await
}

/// A feature of an entity in an environment.
///
/// # Errors
/// `NOT_FOUND` for an unknown entity, and for a feature it never had there.
pub async fn get(
    scope: &Reads,
    uow: &mut dyn UnitOfWork,
    entity: &EntityId,
    feature: &FeatureId,
    environment: Environment,
) -> Result<Stored<FeatureActivation>> {
    entity::not_deleted(scope, uow, entity).await?;
    let found = find(scope, uow, entity, feature, environment).await?;
    found.ok_or(Error::NotFound(FeatureActivation::KIND))
}

/// A feature of an entity in an environment, if it ever had it there.
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

/// Returns all features that answer the query, in the query's order. A limit keeps those of an entity few.
async fn all(
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

/// What an entity runs with in an environment.
///
/// # Errors
/// `NOT_FOUND` for an unknown entity.
pub async fn manifest(
    scope: &Reads,
    uow: &mut dyn UnitOfWork,
    entity: &EntityId,
    environment: Environment,
) -> Result<FeatureManifest> {
    entity::not_deleted(scope, uow, entity).await?;
    let active = FeatureActivationQuery::ByFeature {
        entity_id: entity.clone(),
        environment,
        active: true,
    };
    let features = all(scope, uow, active).await?;
    Ok(FeatureManifest {
        platform_id: scope.id().clone(),
        entity_id: entity.clone(),
        environment,
        generated_at: uow.now().await?,
        features: features
            .iter()
            .map(|f| ManifestFeature::from(&**f))
            .collect(),
    })
}

/// The job that moves a feature, or moved it last.
///
/// # Errors
/// `NOT_FOUND` when there is none, because the feature ended with its place.
pub async fn job_of(
    _: &PlatformScope<grant::FeatureWrite>,
    uow: &mut dyn UnitOfWork,
    feature: &FeatureActivation,
) -> Result<Stored<Job>> {
    let job = feature.provision_job_id.as_ref();
    let job = job.ok_or(Error::NotFound(Job::KIND))?;
    let found = provisioning::find(SystemScope::new(), uow, job).await?;
    found.ok_or(Error::NotFound(Job::KIND))
}

/// Refuses while a feature of the resource's entity that has not ended runs as the resource. Its deactivation removes both.
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
            message: "A feature runs as this resource; deactivate it.".to_owned(),
            details: json!({ "featureId": feature.feature_id, "status": feature.status }),
        }),
    }
}

/// Whether the resource has the name of the worker of a feature of its entity.
pub(in crate::use_case::registry) async fn is_worker_of_entity(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    resource: &Resource,
) -> Result<bool> {
    Ok(!with_worker(scope, uow, resource).await?.is_empty())
}

/// The features of the resource's entity whose worker has the resource's name.
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
