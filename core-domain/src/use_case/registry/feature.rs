//! Features of entities: activation and deactivation by jobs, and the manifest of active features.

use super::feature_state::{all, find, is_active_or_pending};
use super::jobs::{Activate, ActivateInput, Deactivate, DeactivateInput, FeatureTarget};
use super::{build, entity_tree};
use crate::access::{PlatformScope, PlatformWriter, SystemScope, audited, ensure_room};
use crate::kernel::{
    Context, EntityId, Environment, Error, FeatureActivationId, JobId, ListQuery, Machine, Page,
    Record, Result, StackId, StoreError, Stored, permission,
};
use crate::port::UnitOfWork;
use crate::provisioning::{ACTIVATE_FEATURE, Job};
use crate::registry::{
    ActivateFeature, ActivatePlatformFeature, BuildTrigger, DeactivateFeature, Entity,
    FeatureActivation, FeatureActivationQuery, FeatureEvent, FeatureId, FeatureManifest,
    FeatureStatus, ManifestFeature,
};
use crate::use_case::provisioning;
use crate::use_case::provisioning::{enqueue_child, estimated_seconds};

/// The result of an activation request.
#[derive(Clone, Debug, PartialEq)]
pub struct Activation {
    /// The current state of the feature.
    pub activation: Stored<FeatureActivation>,
    /// Whether a job was queued. `false` if the feature is already active or its activation is in progress.
    pub queued: bool,
    /// The estimated duration of an activation job, in seconds.
    pub estimated_seconds: i64,
}

/// The stack and job on behalf of which a feature is activated.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::use_case::registry) struct ActivationOrigin<'a> {
    /// The workspace stack that includes the feature.
    pub(in crate::use_case::registry) stack_id: Option<&'a StackId>,
    /// The job that waits for the activation. It becomes the parent of the activation job.
    pub(in crate::use_case::registry) job_id: Option<&'a JobId>,
}

/// Activates a feature of an entity: queues the job that creates the feature's worker. Does nothing if this version is
/// already active or being activated.
///
/// # Errors
/// - `NOT_FOUND` if the entity does not exist.
/// - `INVALID_STATE` if the entity or one above it is suspended, or while the feature is being removed.
/// - `CONFLICT` if another version is active or being activated.
/// - `LIMIT_REACHED` if the entity has its maximum number of features, inactive ones included, or if too many jobs of
///   the platform are queued.
pub async fn activate(
    cx: &Context,
    scope: &PlatformScope<permission::FeatureWrite>,
    uow: &mut dyn UnitOfWork,
    entity: &EntityId,
    command: ActivateFeature,
) -> Result<Activation> {
    let by = ActivationOrigin::default();
    activate_for(cx, scope.writer(), uow, entity, command, by).await
}

/// Activates a feature of a platform: of its default tenant, in production. Does nothing if it is already active or
/// being activated in this version and with this configuration.
///
/// # Errors
/// - `INVALID_STATE` while the feature is being removed, or if the default tenant is suspended.
/// - `CONFLICT` if another version or configuration is active or being activated.
/// - `LIMIT_REACHED` as for [`activate`].
pub async fn activate_on_platform(
    cx: &Context,
    scope: &PlatformScope<permission::FeatureWrite>,
    uow: &mut dyn UnitOfWork,
    command: ActivatePlatformFeature,
) -> Result<Activation> {
    let tenant = entity_tree::default_tenant(cx, scope.writer(), uow).await?;
    activate(cx, scope, uow, &tenant.id, command.into()).await
}

/// Deactivates a feature of a platform: of its default tenant, in production. The data of the feature is kept.
///
/// # Errors
/// `NOT_FOUND` if the platform never had the feature; `INVALID_STATE` if the feature is inactive.
pub async fn deactivate_on_platform(
    cx: &Context,
    scope: &PlatformScope<permission::FeatureWrite>,
    uow: &mut dyn UnitOfWork,
    feature_id: FeatureId,
) -> Result<Deactivation> {
    let tenant = entity_tree::find_default_tenant(scope, uow).await?;
    let tenant = tenant.ok_or(Error::NotFound(FeatureActivation::KIND))?;
    let command = DeactivateFeature {
        feature_id,
        environment: Environment::Prod,
    };
    deactivate(cx, scope, uow, &tenant.id, command).await
}

/// Lists the features of a platform: those of its default tenant in production, ordered by id, including inactive ones.
///
/// # Errors
/// Only those of the store.
pub async fn list_of_platform(
    scope: &Reads,
    uow: &mut dyn UnitOfWork,
) -> Result<Vec<Stored<FeatureActivation>>> {
    let Some(tenant) = entity_tree::find_default_tenant(scope, uow).await? else {
        return Ok(Vec::new());
    };
    let in_production = FeatureActivationQuery::ByFeature {
        entity_id: tenant.id.clone(),
        environment: Environment::Prod,
        active: false,
    };
    all(scope, uow, in_production).await
}

/// Activates a feature like [`activate`], on behalf of a stack or job. A feature that is already active or being
/// activated keeps its stack and job.
pub(in crate::use_case::registry) async fn activate_for(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    entity: &EntityId,
    command: ActivateFeature,
    by: ActivationOrigin<'_>,
) -> Result<Activation> {
    let entity = entity_tree::not_deleted(scope, uow, entity).await?;
    entity_tree::ensure_not_suspended(scope, uow, &entity).await?;
    let feature = command.feature_id.clone().into();
    let known = find(scope, uow, &entity.id, &feature, command.environment).await?;
    let estimated_seconds = estimated_seconds(uow, ACTIVATE_FEATURE).await?;
    let (activation, queued) = match known {
        Some(seen) if is_active_or_pending(&seen, &command.version, command.config.as_ref())? => {
            (seen, false)
        }
        Some(seen) => (reactivate(cx, scope, uow, &seen, command, by).await?, true),
        None => (insert(cx, scope, uow, &entity, command, by).await?, true),
    };
    Ok(Activation {
        activation,
        queued,
        estimated_seconds,
    })
}

/// Creates the record of a feature that the entity never had, and queues its job.
async fn insert(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    entity: &Entity,
    command: ActivateFeature,
    by: ActivationOrigin<'_>,
) -> Result<Stored<FeatureActivation>> {
    let in_environment = FeatureActivationQuery::ByFeature {
        entity_id: entity.id.clone(),
        environment: command.environment,
        active: false,
    };
    let features = scope.records::<FeatureActivation>(uow);
    let limit = cx.limits.features_per_entity;
    let message = "The entity has reached its maximum number of features in this environment.";
    ensure_room(features, &in_environment, limit, message).await?;
    let now = uow.now().await?;
    let id = FeatureActivationId::generate(now, cx.entropy.as_ref());
    let (platform, entity) = (scope.id().clone(), entity.id.clone());
    let mut activation = FeatureActivation::create(id, platform, entity, command, now);
    activation.stack_id = by.stack_id.cloned();
    activation.provision_job_id = Some(queue(cx, scope, uow, &activation, by).await?);
    let action = FeatureEvent::Activate.transition().action;
    let stored = audited::insert(cx, scope, uow, activation, action).await;
    stored.map_err(|error| match error {
        // A concurrent call created the record. The retry of this unit of work finds it.
        Error::Store(
            conflict @ StoreError::Conflict {
                index: "feature", ..
            },
        ) => conflict.conflict_as_retry().into(),
        error => error,
    })
}

/// Activates a feature that is inactive or failed.
async fn reactivate(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    seen: &Stored<FeatureActivation>,
    command: ActivateFeature,
    by: ActivationOrigin<'_>,
) -> Result<Stored<FeatureActivation>> {
    let event = FeatureEvent::Activate;
    let mut next = seen.edit().apply_event(event, uow.now().await?)?;
    next.feature_version = command.version;
    next.config = command.config.or(next.config);
    next.stack_id = by.stack_id.cloned();
    next.provision_job_id = Some(queue(cx, scope, uow, &next, by).await?);
    audited::replace(cx, scope, uow, seen, next, event.transition().action).await
}

/// Queues the activation job and creates its build record.
async fn queue(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    feature: &FeatureActivation,
    by: ActivationOrigin<'_>,
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

/// The result of a deactivation request.
#[derive(Clone, Debug, PartialEq)]
pub struct Deactivation {
    /// The current state of the feature.
    pub activation: Stored<FeatureActivation>,
    /// Whether a job was queued. `false` if the feature is already being removed.
    pub queued: bool,
}

/// Deactivates a feature of an entity: queues the job that removes the feature's worker, unless it is already queued.
/// If the activation is in progress, the removal runs after it. The data of the feature is kept.
///
/// # Errors
/// `NOT_FOUND` if the entity does not exist or never had the feature; `INVALID_STATE` if the feature is inactive.
pub async fn deactivate(
    cx: &Context,
    scope: &PlatformScope<permission::FeatureWrite>,
    uow: &mut dyn UnitOfWork,
    entity: &EntityId,
    command: DeactivateFeature,
) -> Result<Deactivation> {
    deactivate_with(cx, scope, uow, entity, command, false).await
}

/// Deactivates a feature like [`deactivate`]. If `delete_data` is `true`, the job also removes the stores that the
/// feature owns in the environment. The job is then queued even if a removal without data is in progress.
///
/// Stores that jobs created for the platform or for a stack have other owners and are kept.
///
/// # Errors
/// Those of [`deactivate`].
pub async fn deactivate_with(
    cx: &Context,
    scope: &PlatformScope<permission::FeatureWrite>,
    uow: &mut dyn UnitOfWork,
    entity: &EntityId,
    command: DeactivateFeature,
    delete_data: bool,
) -> Result<Deactivation> {
    let scope = scope.writer();
    let entity = entity_tree::not_deleted(scope, uow, entity).await?;
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

/// Queues the job that removes a feature. `parent` is the job that waits for it.
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
        next = next.apply_event(event, uow.now().await?)?;
    }
    let input = DeactivateInput {
        target: FeatureTarget::of(seen, &scope.platform().slug),
        delete_data,
    };
    let job = enqueue_child::<Deactivate>(cx, scope, uow, &input, parent).await?;
    next.provision_job_id = Some(job.id.clone());
    audited::replace(cx, scope, uow, seen, next, event.transition().action).await
}

type Reads = PlatformScope<permission::FeatureRead>;

/// Lists the features of an entity, newest first, including inactive ones.
///
/// # Errors
/// `NOT_FOUND` if the entity does not exist; `INVALID_CURSOR` if the cursor does not belong to this list.
pub async fn list(
    scope: &Reads,
    uow: &mut dyn UnitOfWork,
    entity: &EntityId,
    query: &ListQuery,
) -> Result<Page<Stored<FeatureActivation>>> {
    entity_tree::not_deleted(scope, uow, entity).await?;
    let of_entity = FeatureActivationQuery::OfEntity {
        entity_id: entity.clone(),
        in_use: false,
    };
    let features = scope.records::<FeatureActivation>(uow);
    features.page(&of_entity, &query.page()).await
}

/// Returns a feature of an entity in an environment.
///
/// # Errors
/// `NOT_FOUND` if the entity does not exist or never had the feature in this environment.
pub async fn get(
    scope: &Reads,
    uow: &mut dyn UnitOfWork,
    entity: &EntityId,
    feature: &FeatureId,
    environment: Environment,
) -> Result<Stored<FeatureActivation>> {
    entity_tree::not_deleted(scope, uow, entity).await?;
    let found = find(scope, uow, entity, feature, environment).await?;
    found.ok_or(Error::NotFound(FeatureActivation::KIND))
}

/// Returns the active features of an entity in an environment.
///
/// # Errors
/// `NOT_FOUND` if the entity does not exist.
pub async fn manifest(
    scope: &Reads,
    uow: &mut dyn UnitOfWork,
    entity: &EntityId,
    environment: Environment,
) -> Result<FeatureManifest> {
    entity_tree::not_deleted(scope, uow, entity).await?;
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

/// Returns the current or last job of a feature.
///
/// # Errors
/// `NOT_FOUND` if the feature has no job, for example because it ended with its entity or environment.
pub async fn job_of(
    _: &PlatformScope<permission::FeatureWrite>,
    uow: &mut dyn UnitOfWork,
    feature: &FeatureActivation,
) -> Result<Stored<Job>> {
    let job = feature.provision_job_id.as_ref();
    let job = job.ok_or(Error::NotFound(Job::KIND))?;
    let found = provisioning::find(SystemScope::new(), uow, job).await?;
    found.ok_or(Error::NotFound(Job::KIND))
}
