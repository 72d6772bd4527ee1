//! The step of `platform.reconcile` that compares DNS records with the hostnames that the provider routes.

use std::time::Duration;

use async_trait::async_trait;

use super::dns_record_removal::record_route_id;
use super::hostname::{RoutedRecord, remove_route, route, target_of_record};
use super::reconcile_report::{Reconciliation, Repair, RepairAction, Report, record_report};
use super::target::ensure_not_deleted;
use crate::access::Batches;
use crate::kernel::{DnsRecordId, Result};
use crate::port::{Route, UnitOfWork};
use crate::registry::{DnsRecord, DnsRecordQuery, DnsRecordStatus};
use crate::use_case::provisioning::{
    JobContext, JobKind, JobStep, Observation, StepContext, StepError,
};

/// Compares the DNS records whose hostnames the provider routes or should route.
#[derive(Clone, Copy, Debug)]
pub(super) struct CompareRecords;

/// A difference between a DNS record and its route.
enum Difference {
    /// The hostname should point to the resource but does not.
    Missing,
    /// The hostname points to the resource, but by another route than the recorded one.
    Changed(Route),
    /// The record is deleted or has failed. `routed` tells whether its hostname still points to the resource.
    Ended { routed: bool },
}

#[async_trait]
impl<K: JobKind<Input = Reconciliation>> JobStep<K> for CompareRecords {
    type Output = Report;

    fn name(&self) -> &'static str {
        "routes"
    }

    async fn observe(&self, _cx: &StepContext<'_, K>) -> Result<Observation<Report>, StepError> {
        Ok(Observation::Absent)
    }

    async fn apply(&self, cx: &StepContext<'_, K>) -> Result<Report, StepError> {
        let mut report = Report::default();
        for routed in records(cx).await? {
            report.checked += 1;
            let Some(difference) = compare(cx, &routed).await? else {
                continue;
            };
            let hostname = routed.record.hostname.as_str();
            match &difference {
                Difference::Missing => report.add_missing(hostname),
                Difference::Ended { routed: true } => report.add_orphan(hostname),
                Difference::Changed(_) | Difference::Ended { routed: false } => {
                    report.add_changed(hostname);
                }
            }
            if !cx.input.repair {
                continue;
            }
            match repair(cx, &routed, difference).await {
                Ok(repair) => report.add_repair(repair),
                Err(error) if report.repaired.is_empty() => return Err(error),
                Err(_) => return Err(StepError::unfinished(&report)?),
            }
            if report.is_full() {
                return Err(StepError::unfinished(&report)?);
            }
        }
        Ok(report)
    }

    async fn record(
        &self,
        cx: &JobContext<'_, K>,
        uow: &mut dyn UnitOfWork,
        output: &Report,
    ) -> Result<()> {
        for repair in &output.repaired {
            if let Some(record) = repair.id.as_deref().and_then(DnsRecordId::parse) {
                let route = repair.cf_id.as_deref();
                record_route_id(cx, &cx.scope, uow, &record, route).await?;
            }
        }
        record_report(cx, &cx.scope, uow, output).await
    }

    async fn record_wait(
        &self,
        cx: &JobContext<'_, K>,
        uow: &mut dyn UnitOfWork,
        found: &Report,
    ) -> Result<()> {
        self.record(cx, uow, found).await
    }

    fn timeout(&self) -> Duration {
        Duration::from_secs(600)
    }
}

/// Returns the records whose hostnames the provider routes or should route, including deleted ones that it may still
/// route.
async fn records<K: JobKind<Input = Reconciliation>>(
    cx: &StepContext<'_, K>,
) -> Result<Vec<RoutedRecord>, StepError> {
    let (mut uow, platform) = cx.read().await?;
    let platform = ensure_not_deleted(uow.as_mut(), platform.as_deref(), None).await?;
    let mut found = Vec::new();
    let mut all = Batches::<DnsRecord>::of(DnsRecordQuery::All { deleted: true });
    while let Some(batch) = all.next(platform.records(uow.as_mut())).await? {
        for record in batch {
            let is_active = record.status == DnsRecordStatus::Active;
            let is_pending = record.status == DnsRecordStatus::Pending;
            let is_routed = is_active || !is_pending && record.cf_route_id.is_some();
            let is_covered = cx.input.environment.is_none_or(|e| e == record.environment);
            if is_routed && is_covered {
                let target = target_of_record(platform, uow.as_mut(), &record).await?;
                found.extend(target.map(|target| RoutedRecord { record, target }));
            }
        }
    }
    Ok(found)
}

/// Compares a record with the provider.
async fn compare<K: JobKind<Input = Reconciliation>>(
    cx: &StepContext<'_, K>,
    routed: &RoutedRecord,
) -> Result<Option<Difference>, StepError> {
    let record = &routed.record;
    let found = cx
        .infrastructure
        .get_route(record.hostname.as_str())
        .await?;
    let found = found.filter(|route| route.target == routed.target.name);
    if record.status != DnsRecordStatus::Active {
        let is_routed = found.is_some() && !is_routed_by_another(cx, routed).await?;
        return Ok(Some(Difference::Ended { routed: is_routed }));
    }
    Ok(match found {
        None => Some(Difference::Missing),
        Some(route) => {
            let is_known = record.cf_route_id.as_ref().map(|id| id.as_str()) == Some(&route.id);
            (!is_known).then_some(Difference::Changed(route))
        }
    })
}

/// Returns whether the platform has another DNS record that points the hostname to the same resource.
async fn is_routed_by_another<K: JobKind<Input = Reconciliation>>(
    cx: &StepContext<'_, K>,
    routed: &RoutedRecord,
) -> Result<bool, StepError> {
    let record = &routed.record;
    let (mut uow, Some(platform)) = cx.read().await? else {
        return Ok(false);
    };
    let again = DnsRecordQuery::Entered(record.hostname.clone());
    let records = platform.records::<DnsRecord>(uow.as_mut());
    let again = records.first(&again).await?;
    Ok(again.is_some_and(|again| again.id != record.id && again.resource_id == record.resource_id))
}

/// Repairs a difference at the provider.
async fn repair<K: JobKind<Input = Reconciliation>>(
    cx: &StepContext<'_, K>,
    routed: &RoutedRecord,
    difference: Difference,
) -> Result<Repair, StepError> {
    let record = &routed.record;
    let mended = |action, route: Option<Route>| Repair {
        id: Some(record.id.to_string()),
        environment: Some(record.environment),
        cf_id: route.map(|route| route.id),
        ..Repair::new(record.hostname.as_str(), action)
    };
    Ok(match difference {
        Difference::Missing => {
            let key = format!("{}-{}", cx.effect_key, record.id);
            mended(RepairAction::Created, Some(route(cx, routed, key).await?))
        }
        Difference::Changed(route) => mended(RepairAction::Updated, Some(route)),
        Difference::Ended { routed: true } => {
            cx.guard().await?;
            remove_route(cx, routed).await?;
            mended(RepairAction::Removed, None)
        }
        Difference::Ended { routed: false } => mended(RepairAction::Updated, None),
    })
}
