//! Having a provider serve a hostname no longer for those who have lost it.

use super::dns_target::{target_of_domain, target_of_record};
use crate::access::{Batches, SystemScope};
use crate::kernel::Result;
use crate::port::{Mode, ProviderError, ResourceRef, UnitOfWork};
use crate::registry::{
    CustomDomain, CustomDomainQuery, CustomDomainStatus, DnsRecord, DnsRecordQuery,
    DnsRecordStatus, Hostname,
};
use crate::use_case::provisioning::{JobKind, StepContext, StepError};

/// The number of entries without a provider's id that are removed, newest first. Their jobs may have ended before they could
/// record the id.
const MAX_WITHOUT_ID: usize = 20;

/// What a provider may serve a hostname for.
enum Holder {
    Record(ResourceRef),
    Domain { owner: String, target: ResourceRef },
}

/// Has the provider serve a hostname no longer for deleted and failed entries, whosever they are. The caller has the right to
/// the hostname.
pub(super) async fn evict_hostname<K: JobKind>(
    cx: &StepContext<'_, K>,
    hostname: &Hostname,
) -> Result<(), StepError> {
    let mut uow = cx.store.begin(Mode::Read).await?;
    let mut holders = records(uow.as_mut(), hostname).await?;
    holders.extend(domains(uow.as_mut(), hostname).await?);
    drop(uow);
    for holder in holders {
        cx.guard().await?;
        let removed = match &holder {
            Holder::Record(target) => {
                let provider = &cx.infrastructure;
                provider.remove_route(hostname.as_str(), target).await
            }
            Holder::Domain { owner, target } => {
                let provider = &cx.infrastructure;
                provider
                    .stop_serving(hostname.as_str(), owner, target)
                    .await
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

async fn records(uow: &mut dyn UnitOfWork, hostname: &Hostname) -> Result<Vec<Holder>> {
    let system = SystemScope::new();
    let (mut holders, mut without_id) = (Vec::new(), 0);
    let mut named = Batches::<DnsRecord>::of(DnsRecordQuery::Named(hostname.clone()));
    while let Some(batch) = named.next(system.records(uow)).await? {
        for record in batch {
            let is_over = matches!(
                record.status,
                DnsRecordStatus::Failed | DnsRecordStatus::Deleted
            );
            if !is_over || !may_be_held(record.cf_route_id.is_some(), &mut without_id) {
                continue;
            }
            let Some(platform) = system.platform(uow, &record.platform_id).await? else {
                continue;
            };
            let target = target_of_record(&platform, uow, &record).await?;
            holders.extend(target.map(Holder::Record));
        }
    }
    Ok(holders)
}

async fn domains(uow: &mut dyn UnitOfWork, hostname: &Hostname) -> Result<Vec<Holder>> {
    let system = SystemScope::new();
    let (mut holders, mut without_id) = (Vec::new(), 0);
    let mut named = Batches::<CustomDomain>::of(CustomDomainQuery::Named(hostname.clone()));
    while let Some(batch) = named.next(system.records(uow)).await? {
        for domain in batch {
            let is_over = matches!(
                domain.status,
                CustomDomainStatus::Failed | CustomDomainStatus::Deleted
            );
            if !is_over || !may_be_held(domain.cf_hostname_id.is_some(), &mut without_id) {
                continue;
            }
            let Some(platform) = system.platform(uow, &domain.platform_id).await? else {
                continue;
            };
            let target = target_of_domain(&platform, uow, &domain).await?;
            let owner = domain.platform_id.to_string();
            holders.extend(target.map(|target| Holder::Domain { owner, target }));
        }
    }
    Ok(holders)
}

fn may_be_held(has_id: bool, without_id: &mut usize) -> bool {
    *without_id += usize::from(!has_id);
    has_id || *without_id <= MAX_WITHOUT_ID
}
