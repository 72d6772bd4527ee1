//! The steps of `platform.reconcile` that compare hostnames with the provider: DNS records with the hostnames that it
//! routes, and custom domains with the hostnames that it serves.

use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;

use super::custom_domain_removal::{RecordedHostname, clear_hostname_id, record_hostname};
use super::dns_record_removal::record_route_id;
use super::hostname::{
    RoutedRecord, at_provider, remove_route, route, serve, stop_serving, target_of_record,
};
use super::reconcile_report::{Reconciliation, Repair, RepairAction, Report, record_report};
use super::target::ensure_not_deleted;
use crate::access::{Batches, PlatformAccess};
use crate::kernel::{CustomDomainId, DnsRecordId, Result, Stored};
use crate::port::{Route, ServedHostname, UnitOfWork};
use crate::registry::{
    CustomDomain, CustomDomainQuery, CustomDomainStatus, DnsRecord, DnsRecordQuery,
    DnsRecordStatus, Hostname,
};
use crate::use_case::provisioning::{
    JobContext, JobKind, JobStep, Observation, StepContext, StepError,
};

/// Records whose hostnames the provider has or should have.
#[async_trait]
pub(super) trait HostnameRecords<K: JobKind<Input = Reconciliation>>:
    Debug + Send + Sync + 'static
{
    /// A record, with its target at the provider if the comparison needs it.
    type Record: Send + Sync;

    /// The state of a hostname at the provider.
    type ProviderState: Send;

    /// Returns the name of the step.
    fn name(&self) -> &'static str;

    /// Returns the records to compare, including deleted ones whose hostname the provider may still have.
    async fn list(&self, cx: &StepContext<'_, K>) -> Result<Vec<Self::Record>, StepError>;

    /// Returns the hostname of a record.
    fn hostname<'r>(&self, record: &'r Self::Record) -> &'r Hostname;

    /// Compares a record with the provider.
    async fn compare(
        &self,
        cx: &StepContext<'_, K>,
        record: &Self::Record,
    ) -> Result<Option<Difference<Self::ProviderState>>, StepError>;

    /// Repairs a difference at the provider.
    async fn repair(
        &self,
        cx: &StepContext<'_, K>,
        record: &Self::Record,
        difference: Difference<Self::ProviderState>,
    ) -> Result<Repair, StepError>;

    /// Applies a repair to its record.
    async fn record_repair(
        &self,
        cx: &JobContext<'_, K>,
        uow: &mut dyn UnitOfWork,
        repair: &Repair,
    ) -> Result<()>;
}

/// A difference between a record and its hostname at the provider.
pub(super) enum Difference<F> {
    /// The provider should have the hostname but does not.
    Missing,
    /// The provider has the hostname, but in another state than the recorded one.
    Changed(F),
    /// The record is deleted or has failed, and the provider still has the hostname.
    LeftOver,
    /// The record is deleted or has failed, and the provider no longer has the hostname.
    Removed,
}

impl<F> Difference<F> {
    /// Returns the difference of a record that is deleted or has failed.
    const fn of_ended(is_left_over: bool) -> Self {
        if is_left_over {
            Self::LeftOver
        } else {
            Self::Removed
        }
    }
}

/// The step that compares the records `D`, and repairs the differences on request.
#[derive(Clone, Copy, Debug)]
pub(super) struct CompareHostnames<D>(pub(super) D);

#[async_trait]
impl<K, D> JobStep<K> for CompareHostnames<D>
where
    K: JobKind<Input = Reconciliation>,
    D: HostnameRecords<K>,
{
    type Output = Report;

    fn name(&self) -> &'static str {
        self.0.name()
    }

    async fn observe(&self, _cx: &StepContext<'_, K>) -> Result<Observation<Report>, StepError> {
        Ok(Observation::Absent)
    }

    async fn apply(&self, cx: &StepContext<'_, K>) -> Result<Report, StepError> {
        let mut report = Report::default();
        for record in self.0.list(cx).await? {
            report.checked += 1;
            let Some(difference) = self.0.compare(cx, &record).await? else {
                continue;
            };
            let hostname = self.0.hostname(&record).as_str();
            match &difference {
                Difference::Missing => report.add_missing(hostname),
                Difference::LeftOver => report.add_orphan(hostname),
                Difference::Changed(_) | Difference::Removed => report.add_changed(hostname),
            }
            if !cx.input.repair {
                continue;
            }
            match self.0.repair(cx, &record, difference).await {
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
            self.0.record_repair(cx, uow, repair).await?;
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

/// The DNS records.
#[derive(Clone, Copy, Debug)]
pub(super) struct DnsRecords;

#[async_trait]
impl<K: JobKind<Input = Reconciliation>> HostnameRecords<K> for DnsRecords {
    type Record = RoutedRecord;
    type ProviderState = Route;

    fn name(&self) -> &'static str {
        "routes"
    }

    async fn list(&self, cx: &StepContext<'_, K>) -> Result<Vec<RoutedRecord>, StepError> {
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

    fn hostname<'r>(&self, routed: &'r RoutedRecord) -> &'r Hostname {
        &routed.record.hostname
    }

    async fn compare(
        &self,
        cx: &StepContext<'_, K>,
        routed: &RoutedRecord,
    ) -> Result<Option<Difference<Route>>, StepError> {
        let record = &routed.record;
        let found = cx
            .infrastructure
            .get_route(record.hostname.as_str())
            .await?;
        let found = found.filter(|route| route.target == routed.target.name);
        if record.status != DnsRecordStatus::Active {
            let is_routed = found.is_some() && !is_routed_by_another(cx, routed).await?;
            return Ok(Some(Difference::of_ended(is_routed)));
        }
        Ok(match found {
            None => Some(Difference::Missing),
            Some(route) => {
                let is_known = record.cf_route_id.as_ref().map(|id| id.as_str()) == Some(&route.id);
                (!is_known).then_some(Difference::Changed(route))
            }
        })
    }

    async fn repair(
        &self,
        cx: &StepContext<'_, K>,
        routed: &RoutedRecord,
        difference: Difference<Route>,
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
            Difference::LeftOver => {
                cx.guard().await?;
                remove_route(cx, routed).await?;
                mended(RepairAction::Removed, None)
            }
            Difference::Removed => mended(RepairAction::Updated, None),
        })
    }

    async fn record_repair(
        &self,
        cx: &JobContext<'_, K>,
        uow: &mut dyn UnitOfWork,
        repair: &Repair,
    ) -> Result<()> {
        let Some(record) = repair.id.as_deref().and_then(DnsRecordId::parse) else {
            return Ok(());
        };
        record_route_id(cx, &cx.scope, uow, &record, repair.cf_id.as_deref()).await
    }
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

/// The custom domains.
#[derive(Clone, Copy, Debug)]
pub(super) struct CustomDomains;

#[async_trait]
impl<K: JobKind<Input = Reconciliation>> HostnameRecords<K> for CustomDomains {
    type Record = Stored<CustomDomain>;
    type ProviderState = ServedHostname;

    fn name(&self) -> &'static str {
        "hostnames"
    }

    async fn list(&self, cx: &StepContext<'_, K>) -> Result<Vec<Stored<CustomDomain>>, StepError> {
        let (mut uow, platform) = cx.read().await?;
        let platform = ensure_not_deleted(uow.as_mut(), platform.as_deref(), None).await?;
        let mut found = Vec::new();
        let mut all = Batches::<CustomDomain>::of(CustomDomainQuery::All { deleted: true });
        while let Some(batch) = all.next(platform.records(uow.as_mut())).await? {
            for domain in batch {
                let is_active = domain.status == CustomDomainStatus::Active;
                let is_served = is_active || domain.cf_hostname_id.is_some();
                if is_served && is_covered(cx, platform, uow.as_mut(), &domain).await? {
                    found.push(domain);
                }
            }
        }
        Ok(found)
    }

    fn hostname<'r>(&self, domain: &'r Stored<CustomDomain>) -> &'r Hostname {
        &domain.hostname
    }

    async fn compare(
        &self,
        cx: &StepContext<'_, K>,
        domain: &Stored<CustomDomain>,
    ) -> Result<Option<Difference<ServedHostname>>, StepError> {
        let found = at_provider(cx, domain).await?;
        if has_ended(domain) {
            let is_served = found.is_some() && !is_entered_again(cx, domain).await?;
            return Ok(Some(Difference::of_ended(is_served)));
        }
        Ok(match found {
            // Only an active domain must be served: it was proved and has not failed since.
            None => (domain.status == CustomDomainStatus::Active).then_some(Difference::Missing),
            Some(found) => {
                let is_known =
                    domain.cf_hostname_id.as_ref().map(|id| id.as_str()) == Some(&found.id);
                let differs = !is_known || domain.ssl_status != found.certificate;
                differs.then_some(Difference::Changed(found))
            }
        })
    }

    async fn repair(
        &self,
        cx: &StepContext<'_, K>,
        domain: &Stored<CustomDomain>,
        difference: Difference<ServedHostname>,
    ) -> Result<Repair, StepError> {
        let mended = |action| Repair {
            id: Some(domain.id.to_string()),
            ..Repair::new(domain.hostname.as_str(), action)
        };
        let as_served = |action, found: ServedHostname| Repair {
            cf_id: Some(found.id),
            ssl_status: Some(found.certificate),
            ..mended(action)
        };
        Ok(match difference {
            Difference::Missing => {
                let key = format!("{}-{}", cx.effect_key, domain.id);
                as_served(RepairAction::Created, serve(cx, domain, key).await?)
            }
            Difference::Changed(found) => as_served(RepairAction::Updated, found),
            Difference::LeftOver => {
                cx.guard().await?;
                stop_serving(cx, domain).await?;
                mended(RepairAction::Removed)
            }
            Difference::Removed => mended(RepairAction::Updated),
        })
    }

    async fn record_repair(
        &self,
        cx: &JobContext<'_, K>,
        uow: &mut dyn UnitOfWork,
        repair: &Repair,
    ) -> Result<()> {
        let Some(domain) = repair.id.as_deref().and_then(CustomDomainId::parse) else {
            return Ok(());
        };
        match (&repair.cf_id, repair.ssl_status) {
            (Some(id), Some(ssl_status)) => {
                let hostname = RecordedHostname {
                    cf_hostname_id: id,
                    ssl_status,
                };
                record_hostname(cx, &cx.scope, uow, &domain, hostname).await
            }
            _ => clear_hostname_id(cx, &cx.scope, uow, &domain, has_ended).await,
        }
    }
}

/// Returns whether the domain is deleted or has failed.
fn has_ended(domain: &CustomDomain) -> bool {
    matches!(
        domain.status,
        CustomDomainStatus::Deleted | CustomDomainStatus::Failed
    )
}

/// Returns whether the domain points to an environment that is compared.
async fn is_covered<K: JobKind<Input = Reconciliation>>(
    cx: &StepContext<'_, K>,
    platform: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    domain: &CustomDomain,
) -> Result<bool> {
    let Some(environment) = cx.input.environment else {
        return Ok(true);
    };
    let records = platform.records::<DnsRecord>(uow);
    let record = records.find(&domain.dns_record_id).await?;
    Ok(record.is_some_and(|record| record.environment == environment))
}

/// Returns whether the platform has another custom domain with the same hostname.
async fn is_entered_again<K: JobKind<Input = Reconciliation>>(
    cx: &StepContext<'_, K>,
    domain: &CustomDomain,
) -> Result<bool, StepError> {
    let (mut uow, Some(platform)) = cx.read().await? else {
        return Ok(false);
    };
    let again = CustomDomainQuery::Entered(domain.hostname.clone());
    let domains = platform.records::<CustomDomain>(uow.as_mut());
    let again = domains.first(&again).await?;
    Ok(again.is_some_and(|again| again.id != domain.id))
}
