//! What a job of a DNS record works for, and what the record leads to at the provider.

use serde::{Deserialize, Serialize};

use crate::access::{PlatformAccess, PlatformWriter};
use crate::kernel::{DnsRecordId, PlatformId, PlatformOwned, Result, Stored, Timestamp};
use crate::port::{Mode, ResourceRef, UnitOfWork};
use crate::provisioning::LaneKey;
use crate::registry::{CustomDomain, DnsRecord, PlatformStatus, Resource};
use crate::use_case::provisioning::{JobInput, JobKind, StepContext};

/// The DNS record a job works for.
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
    /// A DNS record of a platform.
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

/// A DNS record, and the object its hostname leads to.
#[derive(Clone, Debug)]
pub(super) struct RoutedRecord {
    pub(super) record: Stored<DnsRecord>,
    pub(super) target: ResourceRef,
}

/// Finds the record in any status; `None` if it or its platform does not exist.
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

/// Finds the record if this job is to have it served, and the platform is not deleted; and the instant.
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

/// Returns the object at the provider that a DNS record leads to.
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

/// Returns the object at the provider that a custom domain leads to.
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
