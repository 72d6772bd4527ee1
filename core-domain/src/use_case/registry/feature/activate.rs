//! Activating features.

use serde_json::json;

use super::read::find;
use crate::access::{PlatformScope, PlatformWriter, audited, ensure_room};
use crate::kernel::{
    Code, Context, EntityId, Error, FeatureActivationId, JobId, Machine, Result, StackId,
    StoreError, Stored, grant,
};
use crate::port::UnitOfWork;
use crate::provisioning::ACTIVATE_FEATURE;
use crate::registry::{
    ActivateFeature, BuildTrigger, Entity, FeatureActivation, FeatureActivationQuery, FeatureEvent,
    FeatureStatus, FeatureVersion,
};
use crate::use_case::provisioning::{enqueue_child, estimated_seconds};
use crate::use_case::registry::jobs::{Activate, ActivateInput, FeatureTarget};
use crate::use_case::registry::{build, entity};

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
