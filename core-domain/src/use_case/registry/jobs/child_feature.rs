//! Features that a job has activated or removed by jobs of their own, and waits for.

use std::time::Duration;

use crate::access::SystemScope;
use crate::port::UnitOfWork;
use crate::provisioning::Job;
use crate::registry::FeatureActivation;
use crate::use_case::provisioning::{self, StepError};

/// How often they are looked at when nobody calls.
pub(super) const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// Fails for a feature whose job has stopped, when it is a job that this one waits for.
pub(super) async fn ensure_not_failed_for(
    job: &Job,
    uow: &mut dyn UnitOfWork,
    feature: &FeatureActivation,
) -> Result<(), StepError> {
    let Some(child) = &feature.provision_job_id else {
        return Ok(());
    };
    let child = provisioning::find(SystemScope::new(), uow, child).await?;
    if child.is_some_and(|child| child.parent_job_id.as_ref() == Some(&job.id)) {
        let message = format!("the job of the feature {} has stopped", feature.feature_id);
        return Err(StepError::permanent("FEATURE_JOB_FAILED", message));
    }
    Ok(())
}
