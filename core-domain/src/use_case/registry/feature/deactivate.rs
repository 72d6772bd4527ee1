//! Deactivating features.

use crate::access::{PlatformScope, audited};
use crate::kernel::{Context, EntityId, Error, Machine, Record, Result, Stored, grant};
use crate::port::UnitOfWork;
use crate::registry::{
    DeactivateFeature, FeatureActivation, FeatureActivationQuery, FeatureEvent, FeatureStatus,
};
use crate::use_case::provisioning::enqueue;
use crate::use_case::registry::entity;
use crate::use_case::registry::jobs::{Deactivate, FeatureTarget};

/// What came of the wish to be rid of a feature.
#[derive(Clone, Debug, PartialEq)]
pub struct Deactivation {
    /// The feature as it stands now.
    pub activation: Stored<FeatureActivation>,
    /// Whether a job was queued for it; not when one is on its way already.
    pub queued: bool,
}

/// Queues the job that removes a feature of an entity, unless there is one. The removal of a feature that is still on its
/// way waits for it.
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
    let scope = scope.writer();
    let entity = entity::not_deleted(scope, uow, entity).await?;
    let exactly = FeatureActivationQuery::Exactly {
        entity_id: entity.id.clone(),
        environment: command.environment,
        feature_id: command.feature_id,
    };
    let seen = scope.records::<FeatureActivation>(uow);
    let seen = seen.first(&exactly).await?;
    let seen = seen.ok_or(Error::NotFound(FeatureActivation::KIND))?;
    if seen.status == FeatureStatus::Deactivating {
        return Ok(Deactivation {
            activation: seen,
            queued: false,
        });
    }
    let event = FeatureEvent::Deactivate;
    let mut next = seen.edit().after(event, uow.now().await?)?;
    let target = FeatureTarget::of(&seen, &scope.platform().slug);
    let job = enqueue::<Deactivate>(cx, scope, uow, &target).await?;
    next.provision_job_id = Some(job.id.clone());
    let activation = audited::replace(cx, scope, uow, &seen, next, event.of_event().action).await?;
    Ok(Deactivation {
        activation,
        queued: true,
    })
}
