//! `dns.route` and `dns.remove`: point the hostnames of DNS records to their resources after the ownership is proved,
//! and remove the routes.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::custom_domain::RECORDS_MISSING;
use super::hostname::{ensure_can_be_routed, remove_route, route};
use crate::access::{PlatformAccess, PlatformWriter};
use crate::kernel::{DnsRecordId, PlatformId, PlatformOwned, Result, Stored, Timestamp};
use crate::port::{DnsResolver, Mode, ResourceRef, UnitOfWork};
use crate::provisioning::{FailureKind, LaneKey};
use crate::registry::{
    CustomDomain, CustomDomainQuery, DnsRecord, DnsRecordEvent, DnsRecordQuery, DnsRecordStatus,
    MissingRecord, PlatformStatus, Resource,
};
use crate::use_case::provisioning::{
    JobContext, JobInput, JobKind, JobStep, Observation, StepContext, StepError, Steps, Undone,
    enqueue,
};
use crate::use_case::registry::dns_record::{
    apply_job_outcome, record_proof, record_route, record_route_id,
};
use crate::use_case::registry::hostname::ensure_not_served_elsewhere;

/// The input of the jobs: a DNS record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::use_case::registry) struct DnsTarget {
    pub(in crate::use_case::registry) platform_id: PlatformId,
    pub(in crate::use_case::registry) dns_record_id: DnsRecordId,
}

impl JobInput for DnsTarget {
    type Owner = PlatformOwned;

    fn lane(&self) -> LaneKey {
        LaneKey::platform(&self.platform_id)
    }

    fn platform_id(&self) -> Option<&PlatformId> {
        Some(&self.platform_id)
    }
}

impl DnsTarget {
    /// Creates the input for a DNS record of a platform.
    pub(in crate::use_case::registry) fn of(
        scope: &PlatformAccess,
        dns_record: &DnsRecordId,
    ) -> Self {
        Self {
            platform_id: scope.id().clone(),
            dns_record_id: dns_record.clone(),
        }
    }
}

/// A DNS record and the object to which its hostname points.
#[derive(Clone, Debug)]
pub(super) struct RoutedRecord {
    pub(super) record: Stored<DnsRecord>,
    pub(super) target: ResourceRef,
}

/// Returns the record in any status with its platform; `None` if the record, its resource or its platform does not
/// exist.
pub(super) async fn find_record<K: JobKind<Input = DnsTarget>>(
    cx: &StepContext<'_, K>,
    uow: &mut dyn UnitOfWork,
) -> Result<Option<(PlatformWriter, RoutedRecord)>> {
    let Some(platform) = cx.platform(uow).await? else {
        return Ok(None);
    };
    let records = platform.records::<DnsRecord>(uow);
    let Some(record) = records.find(&cx.input.dns_record_id).await? else {
        return Ok(None);
    };
    let target = target_of_record(&platform, uow, &record).await?;
    Ok(target.map(|target| (platform, RoutedRecord { record, target })))
}

/// Returns the record if it is pending, this is its job and its platform is not deleted. Also returns the current time.
pub(super) async fn find_pending<K: JobKind<Input = DnsTarget>>(
    cx: &StepContext<'_, K>,
) -> Result<(Option<RoutedRecord>, Timestamp)> {
    let mut uow = cx.store.begin(Mode::Read).await?;
    let now = uow.now().await?;
    let found = find_record(cx, uow.as_mut()).await?;
    let pending = found.filter(|(platform, routed)| {
        let is_deleted = platform.platform().status == PlatformStatus::Deleted;
        !is_deleted && routed.record.is_pending_for(&cx.job.id)
    });
    Ok((pending.map(|(_, routed)| routed), now))
}

/// Returns the object at the provider to which a DNS record points.
pub(super) async fn target_of_record(
    platform: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    record: &DnsRecord,
) -> Result<Option<ResourceRef>> {
    let resources = platform.records::<Resource>(uow);
    let resource = resources.find(&record.resource_id).await?;
    Ok(resource.map(|resource| ResourceRef {
        resource_type: resource.resource_type,
        name: resource.cf_name.to_string(),
    }))
}

/// Returns the object at the provider to which a custom domain points.
pub(super) async fn target_of_domain(
    platform: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    domain: &CustomDomain,
) -> Result<Option<ResourceRef>> {
    let records = platform.records::<DnsRecord>(uow);
    match records.find(&domain.dns_record_id).await? {
        Some(record) => target_of_record(platform, uow, &record).await,
        None => Ok(None),
    }
}

/// The name of the step that waits for the proof.
const PROOF: &str = "proof";

/// The job kind `dns.route`.
#[derive(Clone, Debug)]
pub(in crate::use_case::registry) struct RouteDnsRecord {
    /// The resolver for the lookups of proofs.
    pub(in crate::use_case::registry) dns: Arc<dyn DnsResolver>,
}

#[async_trait]
impl JobKind for RouteDnsRecord {
    const NAME: &'static str = "dns.route";
    /// The proof step has its own time limit.
    const DEADLINE: Duration = Duration::from_secs(365 * 24 * 60 * 60);
    type Input = DnsTarget;

    fn steps() -> Steps<Self> {
        Steps::new().step(ProveHostname).step(RouteToResource)
    }

    /// Activates the record only if an operator forced the job to complete. Otherwise the last step has activated it.
    async fn on_completed(
        &self,
        cx: &JobContext<'_, Self>,
        uow: &mut dyn UnitOfWork,
    ) -> Result<()> {
        if !cx.job.forced {
            return Ok(());
        }
        let events = [DnsRecordEvent::Restart, DnsRecordEvent::Route];
        apply_events(cx, uow, &events).await
    }

    /// Fails the record, and queues the removal of a route that the job may have created.
    async fn on_failed(&self, cx: &JobContext<'_, Self>, uow: &mut dyn UnitOfWork) -> Result<()> {
        apply_events(cx, uow, &[DnsRecordEvent::Fail]).await?;
        // The job calls the provider only after the proof. A cancelled job is undone instead.
        let is_asked = cx.job.output_of(PROOF).is_some();
        if !is_asked || cx.job.failure_kind == Some(FailureKind::Cancelled) {
            return Ok(());
        }
        let Some(platform) = cx.platform(uow).await? else {
            return Ok(());
        };
        enqueue::<RemoveDnsRecord>(cx, &platform, uow, cx.input).await?;
        Ok(())
    }

    async fn on_resumed(&self, cx: &JobContext<'_, Self>, uow: &mut dyn UnitOfWork) -> Result<()> {
        apply_events(cx, uow, &[DnsRecordEvent::Restart]).await
    }
}

/// Applies events of the job to its record.
async fn apply_events(
    cx: &JobContext<'_, RouteDnsRecord>,
    uow: &mut dyn UnitOfWork,
    events: &[DnsRecordEvent],
) -> Result<()> {
    let Some(platform) = cx.platform(uow).await? else {
        return Ok(());
    };
    let own = (&cx.input.dns_record_id, &cx.job.id);
    apply_job_outcome(cx, &platform, uow, own, events).await
}

/// The result of a lookup of the proof.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Proof {
    /// The missing DNS records; `None` if the record no longer has to be served.
    missing_records: Option<Vec<MissingRecord>>,
}

/// Waits until the platform has proved the hostname, up to seven days from the first successful lookup.
#[derive(Clone, Copy, Debug)]
struct ProveHostname;

#[async_trait]
impl JobStep<RouteDnsRecord> for ProveHostname {
    type Output = Proof;

    fn name(&self) -> &'static str {
        PROOF
    }

    async fn observe(
        &self,
        cx: &StepContext<'_, RouteDnsRecord>,
    ) -> Result<Observation<Proof>, StepError> {
        let (routed, now) = find_pending(cx).await?;
        let Some(RoutedRecord { record, .. }) = routed else {
            return Ok(Observation::Present(Proof {
                missing_records: None,
            }));
        };
        // This check comes first, so that no platform loses the hostname to a record that cannot be served.
        ensure_can_be_routed(&record)?;
        let proved = Proof {
            missing_records: Some(Vec::new()),
        };
        if record.is_vouched || has_proved_domain(cx, &record).await? {
            return Ok(Observation::Present(proved));
        }
        let proof = record.proof_record();
        let Ok(texts) = cx.kind.dns.txt(&proof.name).await else {
            return Err(StepError::Wait {
                until: record.next_check(now),
                reason: "a response from the DNS".to_owned(),
                output: None,
            });
        };
        if texts.contains(&proof.value) {
            return Ok(Observation::Present(proved));
        }
        if record.is_given_up(now) {
            let message = format!("the proof of {} was not created in time", record.hostname);
            return Err(StepError::permanent(RECORDS_MISSING, message));
        }
        let reason = format!("the proof of {}", record.hostname);
        let found = Proof {
            missing_records: Some(vec![proof]),
        };
        Err(StepError::wait_with(
            record.next_check(now),
            reason,
            &found,
        )?)
    }

    async fn apply(&self, _cx: &StepContext<'_, RouteDnsRecord>) -> Result<Proof, StepError> {
        Err(StepError::permanent(
            RECORDS_MISSING,
            "only the holder of the hostname can create its proof",
        ))
    }

    async fn record(
        &self,
        cx: &JobContext<'_, RouteDnsRecord>,
        uow: &mut dyn UnitOfWork,
        output: &Proof,
    ) -> Result<()> {
        let Some(missing) = &output.missing_records else {
            // No other job serves the record of a deleted platform.
            return apply_events(cx, uow, &[DnsRecordEvent::Fail]).await;
        };
        let Some(platform) = cx.platform(uow).await? else {
            return Ok(());
        };
        let own = (&cx.input.dns_record_id, &cx.job.id);
        record_proof(cx, &platform, uow, own, missing).await
    }

    async fn record_wait(
        &self,
        cx: &JobContext<'_, RouteDnsRecord>,
        uow: &mut dyn UnitOfWork,
        found: &Proof,
    ) -> Result<()> {
        self.record(cx, uow, found).await
    }
}

/// Returns whether the platform has an active custom domain with the hostname, which it had to prove.
async fn has_proved_domain(
    cx: &StepContext<'_, RouteDnsRecord>,
    record: &DnsRecord,
) -> Result<bool> {
    let mut uow = cx.store.begin(Mode::Read).await?;
    let Some(platform) = cx.platform(uow.as_mut()).await? else {
        return Ok(false);
    };
    let active = CustomDomainQuery::Active(record.hostname.clone());
    let domains = platform.records::<CustomDomain>(uow.as_mut());
    Ok(domains.first(&active).await?.is_some())
}

/// Points the hostname to the resource. The output is the id of the route; `None` if the record must no longer be
/// served.
#[derive(Clone, Copy, Debug)]
struct RouteToResource;

#[async_trait]
impl JobStep<RouteDnsRecord> for RouteToResource {
    const CAN_UNDO: bool = true;
    type Output = Option<String>;

    fn name(&self) -> &'static str {
        "route"
    }

    async fn observe(
        &self,
        cx: &StepContext<'_, RouteDnsRecord>,
    ) -> Result<Observation<Option<String>>, StepError> {
        let (Some(routed), _) = find_pending(cx).await? else {
            return Ok(Observation::Present(None));
        };
        // A platform that has proved the hostname since then keeps it.
        let mut uow = cx.store.begin(Mode::Read).await?;
        if let Some(platform) = cx.platform(uow.as_mut()).await? {
            ensure_not_served_elsewhere(&platform, uow.as_mut(), &routed.record.hostname).await?;
        }
        drop(uow);
        let found = cx.infrastructure.get_route(routed.record.hostname.as_str());
        let found = found.await?;
        Ok(match found {
            Some(route) if route.target == routed.target.name => {
                Observation::Present(Some(route.id))
            }
            _ => Observation::Absent,
        })
    }

    async fn apply(
        &self,
        cx: &StepContext<'_, RouteDnsRecord>,
    ) -> Result<Option<String>, StepError> {
        let (Some(routed), _) = find_pending(cx).await? else {
            return Ok(None);
        };
        let route = route(cx, &routed, cx.effect_key.to_owned()).await?;
        Ok(Some(route.id))
    }

    async fn record(
        &self,
        cx: &JobContext<'_, RouteDnsRecord>,
        uow: &mut dyn UnitOfWork,
        output: &Option<String>,
    ) -> Result<()> {
        let (Some(route), Some(platform)) = (output, cx.platform(uow).await?) else {
            return Ok(());
        };
        let own = (&cx.input.dns_record_id, &cx.job.id);
        record_route(cx, &platform, uow, own, route).await
    }

    /// Keeps the route of a record that is pending or active again.
    async fn undo(&self, cx: &StepContext<'_, RouteDnsRecord>) -> Result<Undone, StepError> {
        let mut uow = cx.store.begin(Mode::Read).await?;
        let found = find_record(cx, uow.as_mut()).await?;
        drop(uow);
        match found {
            Some((_, routed)) if routed.record.status == DnsRecordStatus::Failed => {
                remove_route(cx, &routed).await?;
                Ok(Undone::Removed)
            }
            Some(_) => Ok(Undone::left("its record is in use")),
            None => Ok(Undone::left("its record does not exist")),
        }
    }

    async fn record_undo(
        &self,
        cx: &JobContext<'_, RouteDnsRecord>,
        uow: &mut dyn UnitOfWork,
        undone: &Undone,
    ) -> Result<()> {
        let platform = cx.platform(uow).await?;
        let Some(platform) = platform.filter(|_| undone.is_removed()) else {
            return Ok(());
        };
        let id = &cx.input.dns_record_id;
        let record: Option<Stored<DnsRecord>> = platform.records(uow).find(id).await?;
        if record.is_some_and(|record| record.status == DnsRecordStatus::Failed) {
            record_route_id(cx, &platform, uow, id, None).await?;
        }
        Ok(())
    }
}

/// The job kind `dns.remove`.
#[derive(Clone, Copy, Debug)]
pub(in crate::use_case::registry) struct RemoveDnsRecord;

impl JobKind for RemoveDnsRecord {
    const NAME: &'static str = "dns.remove";
    const HAS_HOOKS: bool = false;
    type Input = DnsTarget;

    fn steps() -> Steps<Self> {
        Steps::new().step(RemoveRoute)
    }
}

/// Removes the route from the hostname to the resource.
#[derive(Clone, Copy, Debug)]
struct RemoveRoute;

#[async_trait]
impl JobStep<RemoveDnsRecord> for RemoveRoute {
    type Output = ();

    fn name(&self) -> &'static str {
        "route"
    }

    async fn observe(
        &self,
        cx: &StepContext<'_, RemoveDnsRecord>,
    ) -> Result<Observation<()>, StepError> {
        let Some(routed) = to_remove(cx).await? else {
            return Ok(Observation::Present(()));
        };
        let found = cx.infrastructure.get_route(routed.record.hostname.as_str());
        let found = found.await?;
        let leads_here = found.is_some_and(|route| route.target == routed.target.name);
        Ok(if leads_here {
            Observation::Absent
        } else {
            Observation::Present(())
        })
    }

    async fn apply(&self, cx: &StepContext<'_, RemoveDnsRecord>) -> Result<(), StepError> {
        match to_remove(cx).await? {
            Some(routed) => remove_route(cx, &routed).await,
            None => Ok(()),
        }
    }

    async fn record(
        &self,
        cx: &JobContext<'_, RemoveDnsRecord>,
        uow: &mut dyn UnitOfWork,
        (): &(),
    ) -> Result<()> {
        let Some(platform) = cx.platform(uow).await? else {
            return Ok(());
        };
        let id = &cx.input.dns_record_id;
        let record: Option<Stored<DnsRecord>> = platform.records(uow).find(id).await?;
        if record.is_some_and(|record| must_not_be_served(&record)) {
            record_route_id(cx, &platform, uow, id, None).await?;
        }
        Ok(())
    }
}

/// Returns whether the record must not be served: it has ended, or its platform has not proved it.
fn must_not_be_served(record: &DnsRecord) -> bool {
    !record.is_proved()
}

/// Returns the record, unless another DNS record of its platform points the hostname to the same resource.
async fn to_remove(
    cx: &StepContext<'_, RemoveDnsRecord>,
) -> Result<Option<RoutedRecord>, StepError> {
    let mut uow = cx.store.begin(Mode::Read).await?;
    let found = find_record(cx, uow.as_mut()).await?;
    let Some((platform, routed)) = found.filter(|(_, routed)| must_not_be_served(&routed.record))
    else {
        return Ok(None);
    };
    let again = DnsRecordQuery::Entered(routed.record.hostname.clone());
    let again = platform.records::<DnsRecord>(uow.as_mut()).first(&again);
    let is_wanted = again.await?.is_some_and(|again| {
        let leads_there = again.resource_id == routed.record.resource_id;
        again.id != routed.record.id && leads_there && again.is_proved()
    });
    Ok((!is_wanted).then_some(routed))
}
