//! `platform.hostnames`: after a platform was suspended, deleted or restored, has its hostnames served or not served. The job
//! has a lane of its own, because a suspension holds that of the platform.

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::dns_target::{RoutedRecord, target_of_record};
use super::route_dns_record::{remove_route, route};
use super::serve_domain::{at_provider, serve, stop_serving};
use crate::access::{Batches, PlatformAccess, PlatformWriter};
use crate::kernel::{Context, PlatformId, PlatformOwned, Result, Stored};
use crate::port::{Mode, UnitOfWork};
use crate::provisioning::{LaneKey, LanePlace};
use crate::registry::{CustomDomain, CustomDomainQuery, DnsRecord, DnsRecordQuery, PlatformStatus};
use crate::use_case::provisioning::{
    JobInput, JobKind, JobStep, Observation, StepContext, StepError, Steps, enqueue,
};

/// The kind.
#[derive(Clone, Copy, Debug)]
pub(in crate::use_case::registry) struct SyncHostnames;

/// The platform whose hostnames are served or not served.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::use_case::registry) struct HostnamesOf {
    pub(in crate::use_case::registry) platform_id: PlatformId,
}

impl JobInput for HostnamesOf {
    type Owner = PlatformOwned;

    fn lane(&self) -> LaneKey {
        LaneKey::hostnames(&self.platform_id)
    }

    fn platform_id(&self) -> Option<&PlatformId> {
        Some(&self.platform_id)
    }
}

impl JobKind for SyncHostnames {
    const HOOKS: bool = false;
    const NAME: &'static str = "platform.hostnames";
    /// A suspension is never refused for the number of queued jobs.
    const PLACE: LanePlace = LanePlace::Front;
    type Input = HostnamesOf;

    fn steps() -> Steps<Self> {
        Steps::new().then(SyncRecords).then(SyncDomains)
    }
}

/// Queues the job, for a platform that has hostnames that are served.
pub(in crate::use_case::registry) async fn queue_sync(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
) -> Result<()> {
    let records = scope.records::<DnsRecord>(uow);
    let mut has_hostnames = records.first(&DnsRecordQuery::Served).await?.is_some();
    if !has_hostnames {
        let domains = scope.records::<CustomDomain>(uow);
        has_hostnames = domains.first(&CustomDomainQuery::Served).await?.is_some();
    }
    if has_hostnames {
        let input = HostnamesOf {
            platform_id: scope.id().clone(),
        };
        enqueue::<SyncHostnames>(cx, scope, uow, &input).await?;
    }
    Ok(())
}

/// The state that a platform's hostnames are brought into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    /// The provider serves the hostnames.
    Served,
    /// The provider does not serve the hostnames.
    Unserved,
    /// The provider refuses visitors itself.
    AsTheyAre,
}

fn wanted(cx: &StepContext<'_, SyncHostnames>, platform: &PlatformAccess) -> Wanted {
    if platform.platform().status == PlatformStatus::Deleted {
        return Wanted::Unserved;
    }
    match platform.suspension() {
        None => Wanted::Served,
        Some(_) if cx.infrastructure.refuses_suspended() => Wanted::AsTheyAre,
        Some(_) => Wanted::Unserved,
    }
}

/// The DNS records that are active.
#[derive(Clone, Copy, Debug)]
struct SyncRecords;

#[async_trait]
impl JobStep<SyncHostnames> for SyncRecords {
    const RECORDS: bool = false;
    type Output = usize;

    fn name(&self) -> &'static str {
        "records"
    }

    async fn observe(
        &self,
        _cx: &StepContext<'_, SyncHostnames>,
    ) -> Result<Observation<usize>, StepError> {
        Ok(Observation::Absent)
    }

    async fn apply(&self, cx: &StepContext<'_, SyncHostnames>) -> Result<usize, StepError> {
        let mut uow = cx.store.begin(Mode::Read).await?;
        let Some(platform) = cx.platform(uow.as_mut()).await? else {
            return Ok(0);
        };
        let mut active = Vec::new();
        let mut batches = Batches::<DnsRecord>::of(DnsRecordQuery::Served);
        while let Some(batch) = batches.next(platform.records(uow.as_mut())).await? {
            for record in batch {
                let target = target_of_record(&platform, uow.as_mut(), &record).await?;
                active.extend(target.map(|target| RoutedRecord { record, target }));
            }
        }
        drop(uow);
        let wanted = wanted(cx, &platform);
        for routed in &active {
            cx.guard().await?;
            match wanted {
                Wanted::Served => {
                    let key = format!("{}-{}", cx.effect_key, routed.record.id);
                    route(cx, routed, key).await?;
                }
                Wanted::Unserved => remove_route(cx, routed).await?,
                Wanted::AsTheyAre => {}
            }
        }
        Ok(active.len())
    }

    fn timeout(&self) -> Duration {
        Duration::from_secs(600)
    }
}

/// The custom domains that are active.
#[derive(Clone, Copy, Debug)]
struct SyncDomains;

#[async_trait]
impl JobStep<SyncHostnames> for SyncDomains {
    const RECORDS: bool = false;
    type Output = usize;

    fn name(&self) -> &'static str {
        "domains"
    }

    async fn observe(
        &self,
        _cx: &StepContext<'_, SyncHostnames>,
    ) -> Result<Observation<usize>, StepError> {
        Ok(Observation::Absent)
    }

    async fn apply(&self, cx: &StepContext<'_, SyncHostnames>) -> Result<usize, StepError> {
        let mut uow = cx.store.begin(Mode::Read).await?;
        let Some(platform) = cx.platform(uow.as_mut()).await? else {
            return Ok(0);
        };
        let mut active: Vec<Stored<CustomDomain>> = Vec::new();
        let mut batches = Batches::<CustomDomain>::of(CustomDomainQuery::Served);
        while let Some(batch) = batches.next(platform.records(uow.as_mut())).await? {
            active.extend(batch);
        }
        drop(uow);
        let wanted = wanted(cx, &platform);
        for domain in &active {
            match wanted {
                Wanted::Served => {
                    if at_provider(cx, domain).await?.is_none() {
                        let key = format!("{}-{}", cx.effect_key, domain.id);
                        serve(cx, domain, key).await?;
                    }
                }
                Wanted::Unserved => {
                    cx.guard().await?;
                    stop_serving(cx, domain).await?;
                }
                Wanted::AsTheyAre => {}
            }
        }
        Ok(active.len())
    }

    fn timeout(&self) -> Duration {
        Duration::from_secs(600)
    }
}
