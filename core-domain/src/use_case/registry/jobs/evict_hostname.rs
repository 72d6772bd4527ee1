//! The removal of a hostname at the provider for entries that have no right to it.

use super::dns_target::{target_of_domain, target_of_record};
use crate::access::{Batches, SystemScope};
use crate::kernel::{CustomDomainId, DnsRecordId, Result};
use crate::port::{Mode, ProviderError, ResourceRef, UnitOfWork};
use crate::registry::{CustomDomain, CustomDomainQuery, DnsRecord, DnsRecordQuery, Hostname};
use crate::use_case::provisioning::{JobKind, StepContext, StepError};

/// The number of entries without a provider's id that are removed, newest first. Their jobs may have ended before they could
/// record the id.
const MAX_WITHOUT_ID: usize = 20;

/// An entry for which a provider may serve a hostname.
enum Entry {
    Record(DnsRecordId),
    Domain(CustomDomainId),
}

/// An object at the provider whose hostname is removed.
enum Served {
    Record(ResourceRef),
    Domain { owner: String, target: ResourceRef },
}

/// Removes a hostname at the provider for all entries without a proof, of any platform. The caller has the right to the
/// hostname.
pub(super) async fn evict_hostname<K: JobKind>(
    cx: &StepContext<'_, K>,
    hostname: &Hostname,
) -> Result<(), StepError> {
    let mut uow = cx.store.begin(Mode::Read).await?;
    let mut entries = records(uow.as_mut(), hostname).await?;
    entries.extend(domains(uow.as_mut(), hostname).await?);
    drop(uow);
    for entry in entries {
        // Its platform may have proved the hostname since.
        let mut uow = cx.store.begin(Mode::Read).await?;
        let found = find_unproved(uow.as_mut(), &entry).await?;
        drop(uow);
        let Some(served) = found else {
            continue;
        };
        cx.guard().await?;
        let (provider, hostname) = (&cx.infrastructure, hostname.as_str());
        let removed = match &served {
            Served::Record(target) => provider.remove_route(hostname, target).await,
            Served::Domain { owner, target } => {
                provider.stop_serving(hostname, owner, target).await
            }
        };
        match removed {
            // It is another entry's.
            Ok(()) | Err(ProviderError::NameTaken(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

async fn records(uow: &mut dyn UnitOfWork, hostname: &Hostname) -> Result<Vec<Entry>> {
    let (mut entries, mut without_id) = (Vec::new(), 0);
    let mut named = Batches::<DnsRecord>::of(DnsRecordQuery::Named(hostname.clone()));
    while let Some(batch) = named.next(SystemScope::new().records(uow)).await? {
        for record in batch.iter().filter(|record| !record.is_proved()) {
            if may_be_held(record.cf_route_id.is_some(), &mut without_id) {
                entries.push(Entry::Record(record.id.clone()));
            }
        }
    }
    Ok(entries)
}

async fn domains(uow: &mut dyn UnitOfWork, hostname: &Hostname) -> Result<Vec<Entry>> {
    let (mut entries, mut without_id) = (Vec::new(), 0);
    let mut named = Batches::<CustomDomain>::of(CustomDomainQuery::Named(hostname.clone()));
    while let Some(batch) = named.next(SystemScope::new().records(uow)).await? {
        for domain in batch.iter().filter(|domain| !domain.is_proved()) {
            if may_be_held(domain.cf_hostname_id.is_some(), &mut without_id) {
                entries.push(Entry::Domain(domain.id.clone()));
            }
        }
    }
    Ok(entries)
}

fn may_be_held(has_id: bool, without_id: &mut usize) -> bool {
    *without_id += usize::from(!has_id);
    has_id || *without_id <= MAX_WITHOUT_ID
}

/// Finds the object of an entry that still has no proof.
async fn find_unproved(uow: &mut dyn UnitOfWork, entry: &Entry) -> Result<Option<Served>> {
    let system = SystemScope::new();
    match entry {
        Entry::Record(id) => {
            let found = system.records::<DnsRecord>(uow).find(id).await?;
            let Some(record) = found.filter(|record| !record.is_proved()) else {
                return Ok(None);
            };
            let Some(platform) = system.platform(uow, &record.platform_id).await? else {
                return Ok(None);
            };
            let target = target_of_record(&platform, uow, &record).await?;
            Ok(target.map(Served::Record))
        }
        Entry::Domain(id) => {
            let found = system.records::<CustomDomain>(uow).find(id).await?;
            let Some(domain) = found.filter(|domain| !domain.is_proved()) else {
                return Ok(None);
            };
            let Some(platform) = system.platform(uow, &domain.platform_id).await? else {
                return Ok(None);
            };
            let target = target_of_domain(&platform, uow, &domain).await?;
            let owner = domain.platform_id.to_string();
            Ok(target.map(|target| Served::Domain { owner, target }))
        }
    }
}
