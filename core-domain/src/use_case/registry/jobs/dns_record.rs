//! `dns.route` and `dns.remove`: point the hostnames of DNS records to their resources after the ownership is proved,
//! and remove the routes.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::custom_domain::RECORDS_MISSING;
use super::dns_record_removal::{DnsTarget, RemoveDnsRecord, find_record, record_route_id};
use super::hostname::{RoutedRecord, ensure_can_be_routed, remove_route, route};
use super::hostname_assignment::assign;
use super::sync_hostnames::sync_if_suspended;
use crate::access::{PlatformAccess, PlatformWriter, audited};
use crate::kernel::{
    Context, DnsRecordId, Error, JobId, Line, Machine, Result, StoreError, Stored, Timestamp,
};
use crate::port::{DnsResolver, UnitOfWork};
use crate::provisioning::FailureKind;
use crate::registry::{
    CustomDomain, CustomDomainQuery, DnsRecord, DnsRecordEvent, DnsRecordStatus, MissingRecord,
    PlatformStatus,
};
use crate::use_case::provisioning::{
    JobContext, JobKind, JobStep, Observation, StepContext, StepError, Steps, Undone, enqueue,
};
use crate::use_case::registry::hostname::{
    Claim, dns_record_exists_error, ensure_not_served_elsewhere,
};

/// Returns the record if it is pending, this is its job and its platform is not deleted. Also returns the current time.
pub(super) async fn find_pending<K: JobKind<Input = DnsTarget>>(
    cx: &StepContext<'_, K>,
) -> Result<(Option<RoutedRecord>, Timestamp)> {
    let (mut uow, found) = find_record(cx).await?;
    let now = uow.now().await?;
    let pending = found.filter(|(platform, routed)| {
        let is_deleted = platform.platform().status == PlatformStatus::Deleted;
        !is_deleted && routed.record.is_pending_for(&cx.job.id)
    });
    Ok((pending.map(|(_, routed)| routed), now))
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
        enqueue::<RemoveDnsRecord>(cx, &cx.scope, uow, cx.input).await?;
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
    let (record, job) = (&cx.input.dns_record_id, &cx.job.id);
    apply_job_outcome(cx, &cx.scope, uow, record, job, events).await
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
        let (record, job) = (&cx.input.dns_record_id, &cx.job.id);
        record_proof(cx, &cx.scope, uow, record, job, missing).await
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
    let (mut uow, Some(platform)) = cx.read().await? else {
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
        let (mut uow, platform) = cx.read().await?;
        if let Some(platform) = platform {
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
        let Some(route) = output else {
            return Ok(());
        };
        let (record, job) = (&cx.input.dns_record_id, &cx.job.id);
        record_route(cx, &cx.scope, uow, record, job, route).await
    }

    /// Keeps the route of a record that is pending or active again.
    async fn undo(&self, cx: &StepContext<'_, RouteDnsRecord>) -> Result<Undone, StepError> {
        match find_record(cx).await?.1 {
            Some((_, routed)) if routed.record.status == DnsRecordStatus::Failed => {
                remove_route(cx, &routed).await?;
                Ok(Undone::Removed)
            }
            Some(_) => Ok(Undone::kept_because("its record is in use")),
            None => Ok(Undone::kept_because("its record does not exist")),
        }
    }

    async fn record_undo(
        &self,
        cx: &JobContext<'_, RouteDnsRecord>,
        uow: &mut dyn UnitOfWork,
        undone: &Undone,
    ) -> Result<()> {
        if !undone.is_removed() {
            return Ok(());
        }
        let id = &cx.input.dns_record_id;
        let record: Option<Stored<DnsRecord>> = cx.scope.records(uow).find(id).await?;
        if record.is_some_and(|record| record.status == DnsRecordStatus::Failed) {
            record_route_id(cx, &cx.scope, uow, id, None).await?;
        }
        Ok(())
    }
}

/// Returns the record if it is pending and this is its job.
async fn find_pending_for(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    record: &DnsRecordId,
    job: &JobId,
) -> Result<Option<Stored<DnsRecord>>> {
    let found = scope.records::<DnsRecord>(uow).find(record).await?;
    Ok(found.filter(|record| record.is_pending_for(job)))
}

/// Records which DNS records are missing, as found by the record's job. If none is missing, the platform takes the
/// hostname.
///
/// # Errors
/// `CONFLICT` if no proof is needed and another platform is served under the hostname.
async fn record_proof(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    record: &DnsRecordId,
    job: &JobId,
    missing: &[MissingRecord],
) -> Result<()> {
    let Some(seen) = find_pending_for(scope, uow, record, job).await? else {
        return Ok(());
    };
    if missing.is_empty() {
        let claim = if seen.is_vouched {
            Claim::Vouched
        } else {
            Claim::Proved
        };
        assign(cx, scope, uow, &seen.hostname, claim).await?;
    }
    let next = seen.edit().after_look_up(missing, uow.now().await?);
    audited::replace(cx, scope, uow, &seen, next, "dns_record.checked").await?;
    Ok(())
}

/// Records that the hostname points to the resource.
///
/// # Errors
/// `CONFLICT` if another platform is now served under the hostname.
async fn record_route(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    record: &DnsRecordId,
    job: &JobId,
    route: &str,
) -> Result<()> {
    let Some(seen) = find_pending_for(scope, uow, record, job).await? else {
        return Ok(());
    };
    ensure_not_served_elsewhere(scope, uow, &seen.hostname).await?;
    let event = DnsRecordEvent::Route;
    let mut next = seen.edit().after(event)?;
    next.cf_route_id = Line::parse(route).ok();
    replace_record(cx, scope, uow, &seen, next, event.transition().action).await?;
    sync_if_suspended(cx, scope, uow).await
}

/// Applies the outcome of its job to a record: the possible ones of `events`, in their order. Does nothing if the
/// record has another job, is active or is deleted.
///
/// # Errors
/// `CONFLICT` if the record would become active and another platform is served under the hostname.
async fn apply_job_outcome(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    record: &DnsRecordId,
    job: &JobId,
    events: &[DnsRecordEvent],
) -> Result<()> {
    let found = scope.records::<DnsRecord>(uow).find(record).await?;
    let follows = |seen: &DnsRecord| {
        let is_open = matches!(
            seen.status,
            DnsRecordStatus::Pending | DnsRecordStatus::Failed
        );
        is_open && seen.job_id.as_ref() == Some(job)
    };
    let Some(seen) = found.filter(|seen| follows(seen)) else {
        return Ok(());
    };
    let (mut next, mut action) = (seen.edit(), "dns_record.updated");
    for event in events {
        if event.next(next.status).is_ok() {
            next = next.after(*event)?;
            action = event.transition().action;
        }
    }
    if next.status == DnsRecordStatus::Active {
        ensure_not_served_elsewhere(scope, uow, &next.hostname).await?;
        // Only an operator who forces the job to complete activates the record this way.
        next.is_vouched = true;
    }
    replace_record(cx, scope, uow, &seen, next, action).await
}

/// Stores a changed record. Converts a conflict on the unique index `hostname`.
async fn replace_record(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    seen: &Stored<DnsRecord>,
    next: DnsRecord,
    action: &'static str,
) -> Result<()> {
    let stored = audited::replace(cx, scope, uow, seen, next, action).await;
    let stored = stored.map_err(|error| match error {
        Error::Store(StoreError::Conflict {
            index: "hostname", ..
        }) => dns_record_exists_error(),
        error => error,
    });
    stored.map(drop)
}
