//! The step of `platform.reconcile` that compares the recorded secrets of workers and sites with those at the provider.
//! A secret that a crash left unrecorded is recorded; one that the provider no longer has becomes `missing`.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;

use super::reconcile_report::{Reconciliation, Repair, RepairAction, Report, record_report};
use super::target::ensure_not_deleted;
use crate::access::Batches;
use crate::kernel::{ResourceId, Result, Stored};
use crate::port::{ResourceRef, UnitOfWork};
use crate::registry::{
    Resource, ResourceQuery, ResourceSecret, ResourceStatus, ResourceType, SecretName, SecretStatus,
};
use crate::use_case::provisioning::{
    JobContext, JobKind, JobStep, Observation, StepContext, StepError,
};
use crate::use_case::registry::secret;

/// Compares the secrets of all active workers and sites.
#[derive(Clone, Copy, Debug)]
pub(super) struct CompareSecrets;

#[async_trait]
impl<K: JobKind<Input = Reconciliation>> JobStep<K> for CompareSecrets {
    type Output = Report;

    fn name(&self) -> &'static str {
        "secrets"
    }

    async fn observe(&self, cx: &StepContext<'_, K>) -> Result<Observation<Report>, StepError> {
        let (mut uow, platform) = cx.read().await?;
        ensure_not_deleted(uow.as_mut(), platform.as_deref(), None).await?;
        Ok(Observation::Absent)
    }

    async fn apply(&self, cx: &StepContext<'_, K>) -> Result<Report, StepError> {
        let mut report = Report::default();
        for (resource, recorded) in resources(cx).await? {
            let object = ResourceRef {
                resource_type: resource.resource_type,
                name: resource.cf_name.to_string(),
            };
            let existing = cx.infrastructure.secret_names(&object).await?;
            compare(
                &resource,
                &recorded,
                &existing,
                cx.input.repair,
                &mut report,
            );
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
            record_repair(cx, uow, repair).await?;
        }
        record_report(cx, &cx.scope, uow, output).await
    }

    async fn record_wait(
        &self,
        cx: &JobContext<'_, K>,
        uow: &mut dyn UnitOfWork,
        found: &Report,
    ) -> Result<()> {
        JobStep::<K>::record(self, cx, uow, found).await
    }

    fn timeout(&self) -> Duration {
        Duration::from_secs(600)
    }
}

/// Returns the active workers and sites in the compared environments, with their recorded secrets.
async fn resources<K: JobKind<Input = Reconciliation>>(
    cx: &StepContext<'_, K>,
) -> Result<Vec<(Stored<Resource>, Vec<Stored<ResourceSecret>>)>, StepError> {
    let (mut uow, platform) = cx.read().await?;
    let mut found = Vec::new();
    let Some(platform) = platform else {
        return Ok(found);
    };
    let all = ResourceQuery::All { deleted: false };
    let mut batches = Batches::<Resource>::of(all);
    while let Some(batch) = batches.next(platform.records(uow.as_mut())).await? {
        for resource in batch {
            let has_secrets = matches!(
                resource.resource_type,
                ResourceType::Worker | ResourceType::Pages
            );
            let is_active = resource.status == ResourceStatus::Active;
            if has_secrets && is_active && cx.input.covers(resource.environment) {
                let recorded = secret::all(&platform, uow.as_mut(), &resource.id).await?;
                found.push((resource, recorded));
            }
        }
    }
    Ok(found)
}

/// Adds the differences of one resource to the report, with their repairs if they are requested.
fn compare(
    resource: &Resource,
    recorded: &[Stored<ResourceSecret>],
    existing: &[String],
    repair: bool,
    report: &mut Report,
) {
    let has_value = |secret: &ResourceSecret| {
        matches!(secret.status, SecretStatus::Set | SecretStatus::Rotated)
    };
    let recorded: BTreeSet<&str> = recorded
        .iter()
        .filter(|secret| has_value(secret))
        .map(|secret| secret.secret_name.as_str())
        .collect();
    let existing: BTreeSet<&str> = existing
        .iter()
        .map(String::as_str)
        .filter(|name| SecretName::parse(name).is_ok())
        .collect();
    report.checked += recorded.len();
    for name in existing.difference(&recorded) {
        report.add_orphan(&label(resource, name));
        if repair && !report.is_full() {
            report.add_repair(repair_of(resource, name, RepairAction::Entered));
        }
    }
    for name in recorded.difference(&existing) {
        report.add_missing(&label(resource, name));
        if repair && !report.is_full() {
            report.add_repair(repair_of(resource, name, RepairAction::Failed));
        }
    }
}

/// Returns the name of a secret in a report: `{object}/{secret}`.
fn label(resource: &Resource, name: &str) -> String {
    format!("{}/{name}", resource.cf_name)
}

fn repair_of(resource: &Resource, name: &str, action: RepairAction) -> Repair {
    Repair {
        id: Some(resource.id.to_string()),
        environment: Some(resource.environment),
        ..Repair::new(&label(resource, name), action)
    }
}

/// Updates the record of a secret, unless its resource has been deleted since.
async fn record_repair<K: JobKind<Input = Reconciliation>>(
    cx: &JobContext<'_, K>,
    uow: &mut dyn UnitOfWork,
    repair: &Repair,
) -> Result<()> {
    let resource = repair.id.as_deref().and_then(ResourceId::parse);
    let name = repair.name.rsplit_once('/').map(|(_, name)| name);
    let name = name.and_then(|name| SecretName::parse(name).ok());
    let (Some(resource), Some(name)) = (resource, name) else {
        return Ok(());
    };
    let found = cx.scope.records::<Resource>(uow).find(&resource).await?;
    if found.is_none_or(|found| found.status == ResourceStatus::Deleted) {
        return Ok(());
    }
    let status = match repair.action {
        RepairAction::Failed => SecretStatus::Missing,
        _ => SecretStatus::Set,
    };
    secret::upsert(cx, &cx.scope, uow, &resource, name, status).await?;
    Ok(())
}
