//! `domain.verify`: a kind of earlier versions. Each remaining job queues a `domain.add` job for its custom domain.

use async_trait::async_trait;

use super::domain_records::LOOK_UP_RECORDS;
use super::domain_target::DomainTarget;
use crate::kernel::{Result, Stored};
use crate::port::UnitOfWork;
use crate::registry::{CustomDomain, CustomDomainStatus};
use crate::use_case::provisioning::{
    JobContext, JobKind, JobStep, Observation, StepContext, StepError, Steps,
};
use crate::use_case::registry::domain::resume;

/// The kind `domain.verify`.
#[derive(Clone, Copy, Debug)]
pub(super) struct VerifyDomain;

impl JobKind for VerifyDomain {
    const NAME: &'static str = "domain.verify";
    const HOOKS: bool = false;
    type Input = DomainTarget;

    fn steps() -> Steps<Self> {
        Steps::new().then(HandOn)
    }
}

/// Queues the new job of the domain.
#[derive(Clone, Copy, Debug)]
struct HandOn;

#[async_trait]
impl JobStep<VerifyDomain> for HandOn {
    type Output = ();

    fn name(&self) -> &'static str {
        LOOK_UP_RECORDS
    }

    async fn observe(
        &self,
        _cx: &StepContext<'_, VerifyDomain>,
    ) -> Result<Observation<()>, StepError> {
        Ok(Observation::Present(()))
    }

    async fn apply(&self, _cx: &StepContext<'_, VerifyDomain>) -> Result<(), StepError> {
        Ok(())
    }

    async fn record(
        &self,
        cx: &JobContext<'_, VerifyDomain>,
        uow: &mut dyn UnitOfWork,
        (): &(),
    ) -> Result<()> {
        let Some(platform) = cx.platform(uow).await? else {
            return Ok(());
        };
        let domains = platform.records::<CustomDomain>(uow);
        let found: Option<Stored<CustomDomain>> = domains.find(&cx.input.domain_id).await?;
        let is_unserved = |domain: &CustomDomain| {
            !matches!(
                domain.status,
                CustomDomainStatus::Active | CustomDomainStatus::Deleted
            )
        };
        let Some(seen) = found.filter(|seen| seen.job_id == cx.job.id && is_unserved(seen)) else {
            return Ok(());
        };
        resume(cx, &platform, uow, &seen).await?;
        Ok(())
    }
}
