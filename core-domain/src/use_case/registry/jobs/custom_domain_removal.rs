//! `domain.remove`: stops serving custom domains. Also deletes the custom domains of deleted DNS records.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::hostname::{at_provider, stop_serving};
use crate::access::{Batches, Covers, PlatformAccess, PlatformWriter, SystemScope, audited};
use crate::kernel::{
    Context, CustomDomainId, DnsRecordId, Machine, PlatformId, PlatformOwned, Result, Stored,
};
use crate::port::UnitOfWork;
use crate::provisioning::{ADD_DOMAIN, LaneKey};
use crate::registry::{
    CustomDomain, CustomDomainEvent, CustomDomainQuery, CustomDomainStatus, ProviderName, SslStatus,
};
use crate::use_case::provisioning;
use crate::use_case::provisioning::{
    JobContext, JobInput, JobKind, JobStep, Observation, StepContext, StepError, Steps, enqueue,
};

/// The input of the jobs: a custom domain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::use_case::registry) struct DomainTarget {
    pub(in crate::use_case::registry) platform_id: PlatformId,
    pub(in crate::use_case::registry) domain_id: CustomDomainId,
}

impl JobInput for DomainTarget {
    type Owner = PlatformOwned;

    fn lane(&self) -> LaneKey {
        LaneKey::platform(&self.platform_id)
    }

    fn platform_id(&self) -> Option<&PlatformId> {
        Some(&self.platform_id)
    }
}

impl DomainTarget {
    /// Creates the input for a domain of a platform.
    pub(in crate::use_case::registry) fn of(
        scope: &PlatformAccess,
        domain: &CustomDomainId,
    ) -> Self {
        Self {
            platform_id: scope.id().clone(),
            domain_id: domain.clone(),
        }
    }
}

/// The job kind `domain.remove`.
#[derive(Clone, Copy, Debug)]
pub(in crate::use_case::registry) struct RemoveDomain;

impl JobKind for RemoveDomain {
    const NAME: &'static str = "domain.remove";
    const HAS_HOOKS: bool = false;
    type Input = DomainTarget;

    fn steps() -> Steps<Self> {
        Steps::new().step(StopServing)
    }
}

/// Stops serving the hostname.
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
        clear_hostname_id(cx, &cx.scope, uow, &cx.input.domain_id, must_not_be_served).await
    }
}

/// Returns whether the domain must not be served: it has ended, or its platform has not proved it.
fn must_not_be_served(domain: &CustomDomain) -> bool {
    !domain.is_proved()
}

/// Returns the domain, unless another custom domain of its platform is served under the hostname.
async fn to_remove(
    cx: &StepContext<'_, RemoveDomain>,
) -> Result<Option<Stored<CustomDomain>>, StepError> {
    let (mut uow, found) = find_domain(cx).await?;
    let Some((platform, domain)) = found.filter(|(_, domain)| must_not_be_served(domain)) else {
        return Ok(None);
    };
    let again = CustomDomainQuery::Entered(domain.hostname.clone());
    let again = platform.records::<CustomDomain>(uow.as_mut()).first(&again);
    let is_wanted = again
        .await?
        .is_some_and(|again| again.id != domain.id && again.is_proved());
    Ok((!is_wanted).then_some(domain))
}

/// Begins a unit of work for reading. Returns it with the domain in any status and its platform; `None` if one of them
/// does not exist.
pub(super) async fn find_domain<K: JobKind<Input = DomainTarget>>(
    cx: &StepContext<'_, K>,
) -> Result<(
    Box<dyn UnitOfWork>,
    Option<(PlatformWriter, Stored<CustomDomain>)>,
)> {
    let (mut uow, platform) = cx.read().await?;
    let Some(platform) = platform else {
        return Ok((uow, None));
    };
    let domains = platform.records::<CustomDomain>(uow.as_mut());
    let found = domains.find(&cx.input.domain_id).await?;
    Ok((uow, found.map(|domain| (platform, domain))))
}

/// Records that the provider does not serve a domain: clears its id, if `is_gone` returns `true` for the current
/// record.
pub(super) async fn clear_hostname_id(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    domain: &CustomDomainId,
    is_gone: impl Fn(&CustomDomain) -> bool + Send,
) -> Result<()> {
    let found = scope.records::<CustomDomain>(uow).find(domain).await?;
    let Some(seen) = found.filter(|domain| is_gone(domain)) else {
        return Ok(());
    };
    let next = CustomDomain {
        cf_hostname_id: None,
        ..seen.edit()
    };
    audited::replace(cx, scope, uow, &seen, next, "domain.updated").await?;
    Ok(())
}

/// The state of a hostname at the provider, as far as a custom domain records it.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordedHostname<'a> {
    /// The id of the hostname at the provider.
    pub(super) cf_hostname_id: &'a str,
    /// The status of its certificate.
    pub(super) ssl_status: SslStatus,
}

/// Records the domain's id at the provider and the status of its certificate. Does not depend on the job of the domain.
/// A deleted domain does not change.
pub(super) async fn record_hostname(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    domain: &CustomDomainId,
    hostname: RecordedHostname<'_>,
) -> Result<()> {
    let found = scope.records::<CustomDomain>(uow).find(domain).await?;
    let is_there = |domain: &CustomDomain| domain.status != CustomDomainStatus::Deleted;
    let Some(seen) = found.filter(|domain| is_there(domain)) else {
        return Ok(());
    };
    let next = CustomDomain {
        cf_hostname_id: ProviderName::parse(hostname.cf_hostname_id).ok(),
        ssl_status: hostname.ssl_status,
        ..seen.edit()
    };
    audited::replace(cx, scope, uow, &seen, next, "domain.updated").await?;
    Ok(())
}

/// Returns whether the provider may serve the domain. That is so if it has an id at the provider, or if its job may
/// have requested it without recording the result.
pub(super) async fn may_be_served(uow: &mut dyn UnitOfWork, domain: &CustomDomain) -> Result<bool> {
    if domain.cf_hostname_id.is_some() {
        return Ok(true);
    }
    let job = provisioning::find(SystemScope::new(), uow, &domain.job_id).await?;
    Ok(job.is_some_and(|job| job.kind == ADD_DOMAIN))
}

/// Queues the job that stops serving a domain, if the provider may serve it.
pub(in crate::use_case::registry) async fn queue_domain_removal(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    domain: &CustomDomain,
) -> Result<()> {
    if may_be_served(uow, domain).await? {
        let target = DomainTarget::of(scope, &domain.id);
        enqueue::<RemoveDomain>(cx, scope, uow, &target).await?;
    }
    Ok(())
}

/// Deletes the domains of a DNS record. Queues jobs that stop serving those that have an id at the provider.
pub(super) async fn delete_on(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    dns_record: &DnsRecordId,
) -> Result<()> {
    let on_record = CustomDomainQuery::OnDnsRecord(dns_record.clone());
    let mut domains = Batches::<CustomDomain>::of(on_record);
    while let Some(batch) = domains.next(scope.records(uow)).await? {
        for domain in batch {
            soft_delete_domain(cx, scope, uow, &domain).await?;
            // A deprovisioning already stopped serving the other domains and cleared their ids.
            if domain.cf_hostname_id.is_some() {
                queue_domain_removal(cx, scope, uow, &domain).await?;
            }
        }
    }
    Ok(())
}

/// Marks a domain as deleted.
pub(in crate::use_case::registry) async fn soft_delete_domain(
    cx: &Context,
    scope: &impl Covers<PlatformOwned>,
    uow: &mut dyn UnitOfWork,
    seen: &Stored<CustomDomain>,
) -> Result<()> {
    let event = CustomDomainEvent::Delete;
    let next = seen.edit().after(event, uow.now().await?)?;
    audited::replace(cx, scope, uow, seen, next, event.transition().action).await?;
    Ok(())
}
