//! Features that a job has activated or removed by jobs of their own, and waits for.

use std::time::Duration;

use super::stack_target::StackTarget;
use crate::access::{PlatformWriter, SystemScope};
use crate::kernel::{Context, JobId, Result, Stored};
use crate::port::UnitOfWork;
use crate::provisioning::Job;
use crate::registry::FeatureActivation;
use crate::use_case::provisioning::{self, StepError};
use crate::use_case::registry::feature;
use crate::use_case::registry::stack_instance::follow;

/// How often they are looked at when nobody calls.
pub(super) const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// Fails for a feature whose job has stopped, when it is a job that this one waits for.
pub(super) async fn ensure_not_failed_for(
    job: &Job,
    uow: &mut dyn UnitOfWork,
    feature: &FeatureActivation,
) -> Result<(), StepError> {
    if was_asked_by(job, uow, feature).await? {
        let message = format!("the job of the feature {} has stopped", feature.feature_id);
        return Err(StepError::permanent("FEATURE_JOB_FAILED", message));
    }
    Ok(())
}

/// Whether the job queued the one that the feature follows.
pub(super) async fn was_asked_by(
    job: &Job,
    uow: &mut dyn UnitOfWork,
    feature: &FeatureActivation,
) -> Result<bool> {
    let Some(child) = &feature.provision_job_id else {
        return Ok(false);
    };
    let child = provisioning::find(SystemScope::new(), uow, child).await?;
    Ok(child.is_some_and(|child| child.parent_job_id.as_ref() == Some(&job.id)))
}

/// Queues the job that removes a feature of a stack, unless another stack asks for it as well: then it goes with that one.
pub(super) async fn let_go(
    cx: &Context,
    platform: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    (target, seen): (&StackTarget, &Stored<FeatureActivation>),
    delete_data: bool,
    parent: Option<&JobId>,
) -> Result<()> {
    let own = (&target.entity_id, &target.stack_instance_id);
    let (environment, id) = (target.environment, &seen.feature_id);
    let other = follow::other_with_feature(platform, uow, own, environment, id).await?;
    if let Some(other) = other {
        return feature::hand_over(cx, platform, uow, seen, &other).await;
    }
    feature::queue_removal(cx, platform, uow, seen, delete_data, parent).await?;
    Ok(())
}
