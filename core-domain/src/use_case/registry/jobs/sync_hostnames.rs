//! `platform.hostnames`: starts serving the hostnames of a platform after it was restored, and stops after it was
//! suspended or deleted. The job has its own lane, because a suspension holds the lane of the platform.
//!
//! A DNS record or custom domain has an id at the provider while it is served. The ids show the progress of the job.

use std::marker::PhantomData;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::custom_domain_removal::{RecordedHostname, clear_hostname_id, record_hostname};
use super::dns_record_removal::record_route_id;
use super::hostname::{
    RoutedRecord, at_provider, remove_route, route, serve, stop_serving, target_of_record,
};
use crate::access::{Batches, PlatformAccess, PlatformWriter};
use crate::kernel::{
    Context, CustomDomainId, DnsRecordId, PlatformId, PlatformOwned, Record, Result, Stored,
};
use crate::port::{Persisted, UnitOfWork};
use crate::provisioning::{LaneKey, LanePlace};
use crate::registry::{
    CustomDomain, CustomDomainQuery, CustomDomainStatus, DnsRecord, DnsRecordQuery,
    DnsRecordStatus, PlatformStatus, SslStatus,
};
use crate::use_case::provisioning::{
    JobContext, JobInput, JobKind, JobStep, Observation, StepContext, StepError, Steps, enqueue,
};

/// Maximum number of hostnames that one attempt handles.
const PORTION: usize = 100;

/// The job kind `platform.hostnames`.
#[derive(Clone, Copy, Debug)]
pub(in crate::use_case::registry) struct SyncHostnames;

/// The input of the job: the platform whose hostnames are started or stopped.
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
    const HAS_HOOKS: bool = false;
    const NAME: &'static str = "platform.hostnames";
    /// Jobs at the front of a lane do not count against the limit of queued jobs. A suspension must never be refused
    /// for that reason.
    const PLACE: LanePlace = LanePlace::Front;
    type Input = HostnamesOf;

    fn steps() -> Steps<Self> {
        let records = Steps::new().step(SyncEntries::<DnsRecord>(PhantomData));
        records.step(SyncEntries::<CustomDomain>(PhantomData))
    }
}

/// Queues the job, if the platform has or had DNS records.
pub(in crate::use_case::registry) async fn queue_sync(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
) -> Result<()> {
    let records = scope.records::<DnsRecord>(uow);
    let all = DnsRecordQuery::All { deleted: true };
    if records.first(&all).await?.is_none() {
        return Ok(());
    }
    let input = HostnamesOf {
        platform_id: scope.id().clone(),
    };
    enqueue::<SyncHostnames>(cx, scope, uow, &input).await?;
    Ok(())
}

/// Queues the job if the platform is suspended. Must be called after another job asked the provider to serve a
/// hostname.
pub(in crate::use_case::registry) async fn sync_if_suspended(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
) -> Result<()> {
    match scope.suspension() {
        Some(_) => queue_sync(cx, scope, uow).await,
        None => Ok(()),
    }
}

/// The target state of a platform's hostnames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TargetState {
    /// The provider serves the hostnames.
    Served,
    /// The provider does not serve the hostnames.
    Unserved,
    /// The hostnames do not change, because the provider itself refuses visitors of suspended platforms.
    AsTheyAre,
}

/// Returns the target state for the platform's current status.
fn target_state(cx: &StepContext<'_, SyncHostnames>, platform: &PlatformAccess) -> TargetState {
    if platform.platform().status == PlatformStatus::Deleted {
        return TargetState::Unserved;
    }
    match platform.suspension() {
        None => TargetState::Served,
        Some(_) if cx.infrastructure.refuses_suspended() => TargetState::AsTheyAre,
        Some(_) => TargetState::Unserved,
    }
}

/// The state of a hostname that the provider serves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AtProvider {
    /// The id of the route or hostname at the provider.
    cf_id: String,
    /// The status of the certificate; `None` for a DNS record.
    ssl_status: Option<SslStatus>,
}

/// A record whose state at the provider changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SyncedHostname {
    /// The id of the DNS record or custom domain.
    id: String,
    /// The state at the provider; `None` if the hostname is no longer served.
    served: Option<AtProvider>,
}

/// A record with a hostname: a DNS record or a custom domain.
#[async_trait]
trait HostnameRecord: Persisted + Record<Owner = PlatformOwned> {
    /// The name of the step.
    const STEP: &'static str;

    /// Selects all records of a platform, including deleted ones.
    fn all() -> Self::Query;

    /// Returns whether the hostname must be served while the platform is not suspended.
    fn is_active(&self) -> bool;

    /// Returns whether a job may have asked the provider to serve the hostname.
    fn may_be_served(&self) -> bool;

    /// Returns whether the record has an id at the provider.
    fn has_cf_id(&self) -> bool;

    /// Serves the hostname. Does nothing if it is served already.
    async fn serve(
        cx: &StepContext<'_, SyncHostnames>,
        record: &Stored<Self>,
    ) -> Result<AtProvider, StepError>;

    /// Stops serving the hostname.
    async fn stop(
        cx: &StepContext<'_, SyncHostnames>,
        record: &Stored<Self>,
    ) -> Result<(), StepError>;

    /// Records the state at the provider.
    async fn record(
        cx: &Context,
        scope: &PlatformWriter,
        uow: &mut dyn UnitOfWork,
        synced: &SyncedHostname,
    ) -> Result<()>;
}

/// Brings the hostnames of one record type into the target state.
#[derive(Clone, Copy, Debug)]
struct SyncEntries<E>(PhantomData<E>);

#[async_trait]
impl<E: HostnameRecord> JobStep<SyncHostnames> for SyncEntries<E> {
    type Output = Vec<SyncedHostname>;

    fn name(&self) -> &'static str {
        E::STEP
    }

    async fn observe(
        &self,
        _cx: &StepContext<'_, SyncHostnames>,
    ) -> Result<Observation<Vec<SyncedHostname>>, StepError> {
        Ok(Observation::Absent)
    }

    /// Continues after a hostname fails. Returns the first error only if nothing else changed.
    async fn apply(
        &self,
        cx: &StepContext<'_, SyncHostnames>,
    ) -> Result<Vec<SyncedHostname>, StepError> {
        let (mut synced, mut failed) = (Vec::new(), None);
        for id in list_differing::<E>(cx).await? {
            match sync::<E>(cx, &id).await {
                Ok(done) => synced.extend(done),
                Err(StepError::LeaseLost) => return Err(StepError::LeaseLost),
                Err(error) => failed = failed.or(Some(error)),
            }
            if synced.len() == PORTION {
                return Err(StepError::unfinished(&synced)?);
            }
        }
        match failed {
            Some(error) if synced.is_empty() => Err(error),
            Some(_) => Err(StepError::unfinished(&synced)?),
            None => Ok(synced),
        }
    }

    async fn record(
        &self,
        cx: &JobContext<'_, SyncHostnames>,
        uow: &mut dyn UnitOfWork,
        output: &Vec<SyncedHostname>,
    ) -> Result<()> {
        for synced in output {
            E::record(cx, &cx.scope, uow, synced).await?;
        }
        Ok(())
    }

    async fn record_wait(
        &self,
        cx: &JobContext<'_, SyncHostnames>,
        uow: &mut dyn UnitOfWork,
        found: &Vec<SyncedHostname>,
    ) -> Result<()> {
        self.record(cx, uow, found).await
    }

    fn timeout(&self) -> Duration {
        Duration::from_secs(600)
    }
}

/// Returns whether the state of a hostname must change. A record without an id may be served, because its job may have
/// ended before it stored the id.
fn differs<E: HostnameRecord>(record: &E, wanted: TargetState) -> bool {
    match wanted {
        TargetState::Served => record.is_active() && !record.has_cf_id(),
        TargetState::Unserved => record.has_cf_id() || record.may_be_served(),
        TargetState::AsTheyAre => false,
    }
}

/// Returns the ids of the records whose state must change. Records without an id at the provider come last, because
/// nothing records that they are done.
async fn list_differing<E: HostnameRecord>(
    cx: &StepContext<'_, SyncHostnames>,
) -> Result<Vec<String>, StepError> {
    let (mut uow, Some(platform)) = cx.read().await? else {
        return Ok(Vec::new());
    };
    let wanted = target_state(cx, &platform);
    let (mut with_id, mut without_id) = (Vec::new(), Vec::new());
    let mut batches = Batches::<E>::of(E::all());
    while let Some(batch) = batches.next(platform.records(uow.as_mut())).await? {
        for record in batch.iter().filter(|record| differs::<E>(record, wanted)) {
            match record.has_cf_id() {
                true => with_id.push(record.key().to_owned()),
                false => without_id.push(record.key().to_owned()),
            }
        }
    }
    with_id.append(&mut without_id);
    Ok(with_id)
}

/// Reads a record again and brings its hostname into the target state. Returns the change to record; `None` if there is
/// none.
async fn sync<E: HostnameRecord>(
    cx: &StepContext<'_, SyncHostnames>,
    id: &str,
) -> Result<Option<SyncedHostname>, StepError> {
    let Some((record, wanted)) = find::<E>(cx, id).await? else {
        return Ok(None);
    };
    if !differs::<E>(&record, wanted) {
        return Ok(None);
    }
    cx.guard().await?;
    let had_id = record.has_cf_id();
    let mut served = None;
    if wanted == TargetState::Served {
        served = Some(E::serve(cx, &record).await?);
        // A job that removed the record in between found no hostname at the provider, so it is removed here.
        let now = find::<E>(cx, id).await?;
        if now.is_none_or(|(record, _)| !record.is_active()) {
            served = None;
        }
    }
    if served.is_none() {
        cx.guard().await?;
        E::stop(cx, &record).await?;
    }
    let is_recorded = had_id || served.is_some();
    let id = id.to_string();
    Ok(is_recorded.then_some(SyncedHostname { id, served }))
}

/// Returns the current record and the target state.
async fn find<E: HostnameRecord>(
    cx: &StepContext<'_, SyncHostnames>,
    id: &str,
) -> Result<Option<(Stored<E>, TargetState)>, StepError> {
    let (mut uow, Some(platform)) = cx.read().await? else {
        return Ok(None);
    };
    let record = platform.records::<E>(uow.as_mut()).find(id).await?;
    Ok(record.map(|record| (record, target_state(cx, &platform))))
}

/// Returns the effect key for one record.
fn effect_key(cx: &StepContext<'_, SyncHostnames>, id: &impl std::fmt::Display) -> String {
    format!("{}-{id}", cx.effect_key)
}

#[async_trait]
impl HostnameRecord for DnsRecord {
    const STEP: &'static str = "records";

    fn all() -> DnsRecordQuery {
        DnsRecordQuery::All { deleted: true }
    }

    fn is_active(&self) -> bool {
        self.status == DnsRecordStatus::Active
    }

    fn may_be_served(&self) -> bool {
        self.is_proved()
    }

    fn has_cf_id(&self) -> bool {
        self.cf_route_id.is_some()
    }

    async fn serve(
        cx: &StepContext<'_, SyncHostnames>,
        record: &Stored<Self>,
    ) -> Result<AtProvider, StepError> {
        let Some(routed) = find_routed_record(cx, record).await? else {
            let missing = "the resource of the DNS record does not exist".to_owned();
            return Err(StepError::Precondition(missing));
        };
        let route = route(cx, &routed, effect_key(cx, &record.id)).await?;
        Ok(AtProvider {
            cf_id: route.id,
            ssl_status: None,
        })
    }

    async fn stop(
        cx: &StepContext<'_, SyncHostnames>,
        record: &Stored<Self>,
    ) -> Result<(), StepError> {
        match find_routed_record(cx, record).await? {
            Some(routed) => remove_route(cx, &routed).await,
            None => Ok(()),
        }
    }

    async fn record(
        cx: &Context,
        scope: &PlatformWriter,
        uow: &mut dyn UnitOfWork,
        synced: &SyncedHostname,
    ) -> Result<()> {
        let Some(id) = DnsRecordId::parse(&synced.id) else {
            return Ok(());
        };
        let route = synced.served.as_ref().map(|served| served.cf_id.as_str());
        record_route_id(cx, scope, uow, &id, route).await
    }
}

/// Returns the record with its object; `None` if the platform or the resource does not exist.
async fn find_routed_record(
    cx: &StepContext<'_, SyncHostnames>,
    record: &Stored<DnsRecord>,
) -> Result<Option<RoutedRecord>, StepError> {
    let (mut uow, Some(platform)) = cx.read().await? else {
        return Ok(None);
    };
    let target = target_of_record(&platform, uow.as_mut(), record).await?;
    let record = record.clone();
    Ok(target.map(|target| RoutedRecord { record, target }))
}

#[async_trait]
impl HostnameRecord for CustomDomain {
    const STEP: &'static str = "domains";

    fn all() -> CustomDomainQuery {
        CustomDomainQuery::All { deleted: true }
    }

    fn is_active(&self) -> bool {
        self.status == CustomDomainStatus::Active
    }

    fn may_be_served(&self) -> bool {
        self.is_proved()
    }

    fn has_cf_id(&self) -> bool {
        self.cf_hostname_id.is_some()
    }

    async fn serve(
        cx: &StepContext<'_, SyncHostnames>,
        record: &Stored<Self>,
    ) -> Result<AtProvider, StepError> {
        let found = match at_provider(cx, record).await? {
            Some(found) => found,
            None => serve(cx, record, effect_key(cx, &record.id)).await?,
        };
        Ok(AtProvider {
            cf_id: found.id,
            ssl_status: Some(found.certificate),
        })
    }

    async fn stop(
        cx: &StepContext<'_, SyncHostnames>,
        record: &Stored<Self>,
    ) -> Result<(), StepError> {
        stop_serving(cx, record).await
    }

    async fn record(
        cx: &Context,
        scope: &PlatformWriter,
        uow: &mut dyn UnitOfWork,
        synced: &SyncedHostname,
    ) -> Result<()> {
        let Some(id) = CustomDomainId::parse(&synced.id) else {
            return Ok(());
        };
        let Some(AtProvider { cf_id, ssl_status }) = &synced.served else {
            return clear_hostname_id(cx, scope, uow, &id, |_| true).await;
        };
        let ssl_status = ssl_status.unwrap_or(SslStatus::PendingIssuance);
        let hostname = RecordedHostname {
            cf_hostname_id: cf_id,
            ssl_status,
        };
        record_hostname(cx, scope, uow, &id, hostname).await
    }
}
