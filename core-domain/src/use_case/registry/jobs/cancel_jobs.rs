//! The deprovisioning step that cancels the platform's other jobs in portions.

use std::collections::BTreeSet;

use async_trait::async_trait;

use super::deprovision_input::Removal;
use crate::kernel::Result;
use crate::port::{Mode, UnitOfWork};
use crate::use_case::provisioning::{
    self, JobContext, JobKind, JobStep, Observation, StepContext, StepError,
};

/// The name of the step.
pub(super) const CANCEL_JOBS: &str = "jobs";

/// The reason recorded with each cancelled job.
const REASON: &str = "The platform is being removed for good.";

/// Cancels the platform's other unfinished jobs. Each attempt cancels one portion in the unit of work that ends it.
#[derive(Clone, Copy, Debug)]
pub(super) struct CancelJobs;

#[async_trait]
impl<K: JobKind<Input = Removal>> JobStep<K> for CancelJobs {
    const RECORDS: bool = false;
    type Output = ();

    fn name(&self) -> &'static str {
        CANCEL_JOBS
    }

    async fn observe(&self, cx: &StepContext<'_, K>) -> Result<Observation<()>, StepError> {
        let mut uow = cx.store.begin(Mode::Read).await?;
        let Some(platform) = cx.platform(uow.as_mut()).await? else {
            return Ok(Observation::Present(()));
        };
        let own = BTreeSet::from([cx.job.id.clone()]);
        let other = provisioning::find_unfinished(&platform, uow.as_mut(), &own).await?;
        Ok(other.map_or(Observation::Present(()), |_| Observation::Absent))
    }

    async fn apply(&self, _cx: &StepContext<'_, K>) -> Result<(), StepError> {
        Err(StepError::unfinished(&())?)
    }

    async fn record_wait(
        &self,
        cx: &JobContext<'_, K>,
        uow: &mut dyn UnitOfWork,
        (): &(),
    ) -> Result<()> {
        if let Some(platform) = cx.platform(uow).await? {
            cx.cancel_other_jobs(&platform, uow, REASON).await?;
        }
        Ok(())
    }
}
