//! The step of `platform.reconcile` that compares custom domains with the hostnames that the provider serves.

use std::time::Duration;

use async_trait::async_trait;

use super::custom_domain_removal::{clear_hostname_id, record_hostname};
use super::hostname::{at_provider, serve, stop_serving};
use super::reconcile_report::{Reconciliation, Repair, RepairAction, Report, record_report};
use super::target::ensure_not_deleted;
use crate::access::{Batches, PlatformAccess};
use crate::kernel::{CustomDomainId, Result, Stored};
use crate::port::{ServedHostname, UnitOfWork};
use crate::registry::{CustomDomain, CustomDomainQuery, CustomDomainStatus, DnsRecord};
use crate::use_case::provisioning::{
    JobContext, JobKind, JobStep, Observation, StepContext, StepError,
};

/// Compares the custom domains that the provider serves or should serve.
#[derive(Clone, Copy, Debug)]
pub(super) struct CompareDomains;

/// A difference between a domain and its hostname at the provider.
enum Difference {
    /// The domain should be served but is not.
    Missing,
    /// The domain is served, but its recorded id or certificate status differs.
    Changed(ServedHostname),
    /// The domain is deleted or has failed. `served` tells whether the provider still serves it.
    Ended { served: bool },
}

#[async_trait]
impl<K: JobKind<Input = Reconciliation>> JobStep<K> for CompareDomains {
    type Output = Report;

    fn name(&self) -> &'static str {
        "hostnames"
    }

    async fn observe(&self, _cx: &StepContext<'_, K>) -> Result<Observation<Report>, StepError> {
        Ok(Observation::Absent)
    }

    async fn apply(&self, cx: &StepContext<'_, K>) -> Result<Report, StepError> {
        let mut report = Report::default();
        for domain in domains(cx).await? {
            report.checked += 1;
            let Some(difference) = compare(cx, &domain).await? else {
                continue;
            };
            match &difference {
                Difference::Missing => report.add_missing(domain.hostname.as_str()),
                Difference::Ended { served: true } => report.add_orphan(domain.hostname.as_str()),
                Difference::Changed(_) | Difference::Ended { served: false } => {
                    report.add_changed(domain.hostname.as_str());
                }
            }
            if !cx.input.repair {
                continue;
            }
            match repair(cx, &domain, difference).await {
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
            let Some(domain) = repair.id.as_deref().and_then(CustomDomainId::parse) else {
                continue;
            };
            match (&repair.cf_id, repair.ssl_status) {
                (Some(id), Some(ssl_status)) => {
                    let at_provider = (id.as_str(), ssl_status);
                    record_hostname(cx, &cx.scope, uow, &domain, at_provider).await?;
                }
                _ => {
                    clear_hostname_id(cx, &cx.scope, uow, &domain, has_ended).await?;
                }
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

/// Returns whether the domain is deleted or has failed.
fn has_ended(domain: &CustomDomain) -> bool {
    matches!(
        domain.status,
        CustomDomainStatus::Deleted | CustomDomainStatus::Failed
    )
}

/// Returns the domains that the provider serves or should serve, including deleted ones that it may still serve.
async fn domains<K: JobKind<Input = Reconciliation>>(
    cx: &StepContext<'_, K>,
) -> Result<Vec<Stored<CustomDomain>>, StepError> {
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

/// Compares a domain with the provider.
async fn compare<K: JobKind<Input = Reconciliation>>(
    cx: &StepContext<'_, K>,
    domain: &CustomDomain,
) -> Result<Option<Difference>, StepError> {
    let found = at_provider(cx, domain).await?;
    if has_ended(domain) {
        let served = found.is_some() && !is_entered_again(cx, domain).await?;
        return Ok(Some(Difference::Ended { served }));
    }
    Ok(match found {
        // Only an active domain must be served: it was proved and has not failed since.
        None => (domain.status == CustomDomainStatus::Active).then_some(Difference::Missing),
        Some(found) => {
            let is_known = domain.cf_hostname_id.as_ref().map(|id| id.as_str()) == Some(&found.id);
            let differs = !is_known || domain.ssl_status != found.certificate;
            differs.then_some(Difference::Changed(found))
        }
    })
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

/// Repairs a difference at the provider.
async fn repair<K: JobKind<Input = Reconciliation>>(
    cx: &StepContext<'_, K>,
    domain: &CustomDomain,
    difference: Difference,
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
        Difference::Ended { served: true } => {
            cx.guard().await?;
            stop_serving(cx, domain).await?;
            mended(RepairAction::Removed)
        }
        Difference::Ended { served: false } => mended(RepairAction::Updated),
    })
}
