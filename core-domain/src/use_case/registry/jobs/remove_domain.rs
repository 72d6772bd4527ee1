//! `domain.remove`: a custom domain that was deleted, or has failed, is not served any more.

use async_trait::async_trait;

use super::domain_target::{DomainTarget, find_domain};
use super::hostname_calls::{at_provider, stop_serving};
use crate::kernel::{Result, Stored};
use crate::port::{Mode, UnitOfWork};
use crate::registry::{CustomDomain, CustomDomainQuery};
use crate::use_case::provisioning::{
    JobContext, JobKind, JobStep, Observation, StepContext, StepError, Steps,
};
use crate::use_case::registry::domain::forget_hostname;

/// The kind.
#[derive(Clone, Copy, Debug)]
pub(in crate::use_case::registry) struct RemoveDomain;

impl JobKind for RemoveDomain {
    const NAME: &'static str = "domain.remove";
    const HOOKS: bool = false;
    type Input = DomainTarget;

    fn steps() -> Steps<Self> {
        Steps::new().then(StopServing)
    }
}

/// Has the hostname not served any more.
#[derive(Clone, Copy, Debug)]
struct StopServing;

#[async_trait]
impl JobStep<RemoveDomain> for StopServing {
    type Output = ();

    fn name(&self) -> &'static str {
        "hostname"
    }

    async fn observe(
        &self,
        cx: &StepContext<'_, RemoveDomain>,
    ) -> Result<Observation<()>, StepError> {
        let Some(domain) = to_remove(cx).await? else {
            return Ok(Observation::Present(()));
        };
        let found = at_provider(cx, &domain).await?;
        Ok(found.map_or(Observation::Present(()), |_| Observation::Absent))
    }

    async fn apply(&self, cx: &StepContext<'_, RemoveDomain>) -> Result<(), StepError> {
        match to_remove(cx).await? {
            Some(domain) => stop_serving(cx, &domain).await,
            None => Ok(()),
        }
    }

    async fn record(
        &self,
        cx: &JobContext<'_, RemoveDomain>,
        uow: &mut dyn UnitOfWork,
        (): &(),
    ) -> Result<()> {
        let Some(platform) = cx.platform(uow).await? else {
            return Ok(());
        };
        forget_hostname(cx, &platform, uow, &cx.input.domain_id, is_over).await
    }
}

/// Tells whether the domain may not be served: it is over, or its platform has not proved it.
fn is_over(domain: &CustomDomain) -> bool {
    !domain.is_proved()
}

/// Returns the domain, unless another entry of its platform is served under the hostname.
async fn to_remove(
    cx: &StepContext<'_, RemoveDomain>,
) -> Result<Option<Stored<CustomDomain>>, StepError> {
    let mut uow = cx.store.begin(Mode::Read).await?;
    let found = find_domain(cx, uow.as_mut()).await?;
    let Some((platform, domain)) = found.filter(|(_, domain)| is_over(domain)) else {
        return Ok(None);
    };
    let again = CustomDomainQuery::Entered(domain.hostname.clone());
    let again = platform.records::<CustomDomain>(uow.as_mut()).first(&again);
    let is_wanted = again
        .await?
        .is_some_and(|again| again.id != domain.id && again.is_proved());
    Ok((!is_wanted).then_some(domain))
}
