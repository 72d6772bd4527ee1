//! The step of a deprovisioning that has the custom domains of a platform not served any more.

use std::time::Duration;

use async_trait::async_trait;

use super::deprovision_input::Removal;
use super::hostname_calls::stop_serving;
use crate::access::{Batches, PlatformAccess};
use crate::kernel::{CustomDomainId, Result, Stored};
use crate::port::{Mode, UnitOfWork};
use crate::registry::{CustomDomain, CustomDomainQuery, DnsRecord, Resource};
use crate::use_case::provisioning::{
    JobContext, JobKind, JobStep, Observation, StepContext, StepError,
};
use crate::use_case::registry::domain::{forget_hostname, may_be_served};

/// How many domains one attempt works on at the most.
const PORTION: usize = 100;

/// Has the domains that lead to what is removed not served any more; of all environments deleted ones too, whose own job
/// may have been called off.
#[derive(Clone, Copy, Debug)]
pub(super) struct RemoveHostnames;

#[async_trait]
impl<K: JobKind<Input = Removal>> JobStep<K> for RemoveHostnames {
    /// The domains that are not served any more.
    type Output = Vec<CustomDomainId>;

    fn name(&self) -> &'static str {
        "hostnames"
    }

    async fn observe(
        &self,
        _cx: &StepContext<'_, K>,
    ) -> Result<Observation<Self::Output>, StepError> {
        Ok(Observation::Absent)
    }

    async fn apply(&self, cx: &StepContext<'_, K>) -> Result<Self::Output, StepError> {
        let served = served(cx).await?;
        let is_entered = |domain: &Stored<CustomDomain>| domain.cf_hostname_id.is_some();
        let (entered, asked_for): (Vec<_>, Vec<_>) = served.into_iter().partition(is_entered);
        let mut removed = Vec::new();
        for domain in entered.iter().take(PORTION) {
            match remove(cx, domain).await {
                Err(error) if removed.is_empty() => return Err(error),
                Err(_) => return Err(StepError::unfinished(&removed)?),
                Ok(()) => removed.push(domain.id.clone()),
            }
        }
        if entered.len() > PORTION {
            return Err(StepError::unfinished(&removed)?);
        }
        // Nothing would tell of these that they are done.
        for domain in &asked_for {
            remove(cx, domain).await?;
        }
        Ok(removed)
    }

    async fn record(
        &self,
        cx: &JobContext<'_, K>,
        uow: &mut dyn UnitOfWork,
        output: &Self::Output,
    ) -> Result<()> {
        let Some(platform) = cx.platform(uow).await? else {
            return Ok(());
        };
        for domain in output {
            forget_hostname(cx, &platform, uow, domain, |_| true).await?;
        }
        Ok(())
    }

    async fn record_wait(
        &self,
        cx: &JobContext<'_, K>,
        uow: &mut dyn UnitOfWork,
        found: &Self::Output,
    ) -> Result<()> {
        self.record(cx, uow, found).await
    }

    fn timeout(&self) -> Duration {
        Duration::from_secs(600)
    }
}

async fn remove<K: JobKind<Input = Removal>>(
    cx: &StepContext<'_, K>,
    domain: &CustomDomain,
) -> Result<(), StepError> {
    cx.guard().await?;
    stop_serving(cx, domain).await
}

/// The domains that may be served and lead to what is removed.
async fn served<K: JobKind<Input = Removal>>(
    cx: &StepContext<'_, K>,
) -> Result<Vec<Stored<CustomDomain>>, StepError> {
    let mut uow = cx.store.begin(Mode::Read).await?;
    let mut served = Vec::new();
    let Some(platform) = cx.platform(uow.as_mut()).await? else {
        return Ok(served);
    };
    let all = CustomDomainQuery::All {
        deleted: cx.input.environment.is_none(),
    };
    let mut domains = Batches::<CustomDomain>::of(all);
    while let Some(batch) = domains.next(platform.records(uow.as_mut())).await? {
        for domain in batch {
            if may_be_served(uow.as_mut(), &domain).await?
                && is_covered(cx, &platform, uow.as_mut(), &domain).await?
            {
                served.push(domain);
            }
        }
    }
    Ok(served)
}

/// Whether the domain leads to a resource that is removed, and so goes with it.
async fn is_covered<K: JobKind<Input = Removal>>(
    cx: &StepContext<'_, K>,
    platform: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    domain: &CustomDomain,
) -> Result<bool> {
    if cx.input.environment.is_none() {
        return Ok(true);
    }
    let records = platform.records::<DnsRecord>(uow);
    let Some(record) = records.find(&domain.dns_record_id).await? else {
        return Ok(false);
    };
    let resources = platform.records::<Resource>(uow);
    let resource = resources.find(&record.resource_id).await?;
    Ok(resource.is_some_and(|resource| cx.input.covers(resource.environment)))
}
