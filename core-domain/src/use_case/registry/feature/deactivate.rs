//! Deactivating features.

use super::read::find;
use crate::access::{PlatformScope, PlatformWriter, audited};
use crate::kernel::{Context, EntityId, Error, JobId, Machine, Record, Result, Stored, grant};
use crate::port::UnitOfWork;
use crate::registry::{DeactivateFeature, FeatureActivation, FeatureEvent, FeatureStatus};
use crate::use_case::provisioning::enqueue_child;
use crate::use_case::registry::entity;
use crate::use_case::registry::jobs::{Deactivate, DeactivateInput, FeatureTarget};

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
