//! Calls to the provider for the hostnames of custom domains and DNS records.

use crate::access::{Batches, PlatformAccess, SystemScope};
use crate::kernel::{CustomDomainId, DnsRecordId, Result, Stored};
use crate::port::{
    Mode, ProviderError, ResourceRef, Route, RouteHostname, ServeHostname, ServedHostname,
    UnitOfWork,
};
use crate::registry::{
    CustomDomain, CustomDomainQuery, DnsRecord, DnsRecordQuery, DnsTargetType, Hostname, Resource,
};
use crate::use_case::provisioning::{JobKind, StepContext, StepError};

/// Returns the state of a custom domain at the provider; `None` if its hostname is not served or points to another
/// object.
pub(super) async fn at_provider<K: JobKind>(
    cx: &StepContext<'_, K>,
    domain: &CustomDomain,
) -> Result<Option<ServedHostname>, ProviderError> {
    let Ok(target) = find_target(cx, domain).await else {
        let problem = "the resource of the custom domain could not be read";
        return Err(ProviderError::Transient(problem.into()));
    };
    let Some(target) = target else {
        return Ok(None);
    };
    let (hostname, owner) = (domain.hostname.as_str(), domain.platform_id.as_str());
    let found = cx
        .infrastructure
        .get_served_hostname(hostname, owner, &target);
    let leads_there = |found: &ServedHostname| found.target.as_deref() == Some(&target.name);
    Ok(found.await?.filter(leads_there))
}

/// Returns the object at the provider to which the domain points.
async fn find_target<K: JobKind>(
    cx: &StepContext<'_, K>,
    domain: &CustomDomain,
) -> Result<Option<ResourceRef>> {
    let mut uow = cx.store.begin(Mode::Read).await?;
    let platform = SystemScope::new().platform(uow.as_mut(), &domain.platform_id);
    match platform.await? {
        Some(platform) => target_of_domain(&platform, uow.as_mut(), domain).await,
        None => Ok(None),
    }
}

/// Asks the provider to serve a hostname. If it is taken by records without a proof, removes it for those and asks
/// again.
pub(super) async fn serve<K: JobKind>(
    cx: &StepContext<'_, K>,
    domain: &CustomDomain,
    effect_key: String,
) -> Result<ServedHostname, StepError> {
    let Some(target) = find_target(cx, domain).await? else {
        let missing = "the resource of the custom domain does not exist".to_owned();
        return Err(StepError::Precondition(missing));
    };
    let request = ServeHostname {
        hostname: domain.hostname.to_string(),
        target_dns: domain.target_dns.to_string(),
        target,
        owner: domain.platform_id.to_string(),
        effect_key,
    };
    cx.guard().await?;
    match cx.infrastructure.serve_hostname(&request).await {
        Err(ProviderError::NameTaken(_)) => {
            evict_hostname(cx, &domain.hostname).await?;
            Ok(cx.infrastructure.serve_hostname(&request).await?)
        }
        outcome => Ok(outcome?),
    }
}

/// Stops serving the hostname of a custom domain. A hostname of another owner is kept.
pub(super) async fn stop_serving<K: JobKind>(
    cx: &StepContext<'_, K>,
    domain: &CustomDomain,
) -> Result<(), StepError> {
    let Some(target) = find_target(cx, domain).await? else {
        return Ok(());
    };
    let (hostname, owner) = (domain.hostname.as_str(), domain.platform_id.as_str());
    let stopped = cx.infrastructure.stop_serving(hostname, owner, &target);
    match stopped.await {
        Err(ProviderError::NameTaken(_)) => Ok(()),
        outcome => Ok(outcome?),
    }
}

/// Checks that a provider can serve a DNS record.
///
/// # Errors
/// `PROVIDER_REFUSED` if the record has the type `redirect`.
pub(super) fn ensure_can_be_routed(record: &DnsRecord) -> Result<(), StepError> {
    if record.target_type != DnsTargetType::Redirect {
        return Ok(());
    }
    let message =
        "providers cannot redirect hostnames: point the hostname to a worker that redirects";
    Err(StepError::permanent("PROVIDER_REFUSED", message))
}

/// Routes a hostname to its resource. If it is taken by records without a proof, removes it for those and asks again.
pub(super) async fn route<K: JobKind>(
    cx: &StepContext<'_, K>,
    routed: &RoutedRecord,
    effect_key: String,
) -> Result<Route, StepError> {
    let record = &routed.record;
    ensure_can_be_routed(record)?;
    let request = RouteHostname {
        hostname: record.hostname.to_string(),
        target: routed.target.clone(),
        owner: record.platform_id.to_string(),
        effect_key,
    };
    cx.guard().await?;
    match cx.infrastructure.route_hostname(&request).await {
        Err(ProviderError::NameTaken(_)) => {
            evict_hostname(cx, &record.hostname).await?;
            Ok(cx.infrastructure.route_hostname(&request).await?)
        }
        outcome => Ok(outcome?),
    }
}

/// Removes the route of a hostname. A route to another object is kept.
pub(super) async fn remove_route<K: JobKind>(
    cx: &StepContext<'_, K>,
    routed: &RoutedRecord,
) -> Result<(), StepError> {
    let hostname = routed.record.hostname.as_str();
    let removed = cx.infrastructure.remove_route(hostname, &routed.target);
    match removed.await {
        Err(ProviderError::NameTaken(_)) => Ok(()),
        outcome => Ok(outcome?),
    }
}

/// Maximum number of records without an id at the provider for which a hostname is removed, newest first. Their jobs
/// may have ended before they stored the id.
const MAX_WITHOUT_ID: usize = 20;

/// A record for which the provider may serve a hostname.
enum UnprovedRecord {
    Record(DnsRecordId),
    Domain(CustomDomainId),
}

/// The object whose hostname is removed at the provider.
enum EvictionTarget {
    Record(ResourceRef),
    Domain { owner: String, target: ResourceRef },
}

/// Removes a hostname at the provider for all records without a proof, of any platform. The caller must have the right
/// to the hostname.
pub(super) async fn evict_hostname<K: JobKind>(
    cx: &StepContext<'_, K>,
    hostname: &Hostname,
) -> Result<(), StepError> {
    let mut uow = cx.store.begin(Mode::Read).await?;
    let mut unproved = records(uow.as_mut(), hostname).await?;
    unproved.extend(domains(uow.as_mut(), hostname).await?);
    drop(uow);
    for record in unproved {
        // The platform of the record may have proved the hostname in between.
        let mut uow = cx.store.begin(Mode::Read).await?;
        let found = find_unproved(uow.as_mut(), &record).await?;
        drop(uow);
        let Some(served) = found else {
            continue;
        };
        cx.guard().await?;
        let (provider, hostname) = (&cx.infrastructure, hostname.as_str());
        let removed = match &served {
            EvictionTarget::Record(target) => provider.remove_route(hostname, target).await,
            EvictionTarget::Domain { owner, target } => {
                provider.stop_serving(hostname, owner, target).await
            }
        };
        match removed {
            // The hostname belongs to another record.
            Ok(()) | Err(ProviderError::NameTaken(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Returns the DNS records of a hostname without a proof that the provider may serve.
async fn records(uow: &mut dyn UnitOfWork, hostname: &Hostname) -> Result<Vec<UnprovedRecord>> {
    let (mut unproved, mut without_id) = (Vec::new(), 0);
    let mut named = Batches::<DnsRecord>::of(DnsRecordQuery::Named(hostname.clone()));
    while let Some(batch) = named.next(SystemScope::new().records(uow)).await? {
        for record in batch.iter().filter(|record| !record.is_proved()) {
            if may_be_served(record.cf_route_id.is_some(), &mut without_id) {
                unproved.push(UnprovedRecord::Record(record.id.clone()));
            }
        }
    }
    Ok(unproved)
}

/// Returns the custom domains of a hostname without a proof that the provider may serve.
async fn domains(uow: &mut dyn UnitOfWork, hostname: &Hostname) -> Result<Vec<UnprovedRecord>> {
    let (mut unproved, mut without_id) = (Vec::new(), 0);
    let mut named = Batches::<CustomDomain>::of(CustomDomainQuery::Named(hostname.clone()));
    while let Some(batch) = named.next(SystemScope::new().records(uow)).await? {
        for domain in batch.iter().filter(|domain| !domain.is_proved()) {
            if may_be_served(domain.cf_hostname_id.is_some(), &mut without_id) {
                unproved.push(UnprovedRecord::Domain(domain.id.clone()));
            }
        }
    }
    Ok(unproved)
}

/// Returns whether the provider may serve a record: it has an id, or is one of the newest [`MAX_WITHOUT_ID`] without
/// one.
fn may_be_served(has_id: bool, without_id: &mut usize) -> bool {
    *without_id += usize::from(!has_id);
    has_id || *without_id <= MAX_WITHOUT_ID
}

/// Returns the object of a record that still has no proof.
async fn find_unproved(
    uow: &mut dyn UnitOfWork,
    record: &UnprovedRecord,
) -> Result<Option<EvictionTarget>> {
    let system = SystemScope::new();
    match record {
        UnprovedRecord::Record(id) => {
            let found = system.records::<DnsRecord>(uow).find(id).await?;
            let Some(record) = found.filter(|record| !record.is_proved()) else {
                return Ok(None);
            };
            let Some(platform) = system.platform(uow, &record.platform_id).await? else {
                return Ok(None);
            };
            let target = target_of_record(&platform, uow, &record).await?;
            Ok(target.map(EvictionTarget::Record))
        }
        UnprovedRecord::Domain(id) => {
            let found = system.records::<CustomDomain>(uow).find(id).await?;
            let Some(domain) = found.filter(|domain| !domain.is_proved()) else {
                return Ok(None);
            };
            let Some(platform) = system.platform(uow, &domain.platform_id).await? else {
                return Ok(None);
            };
            let target = target_of_domain(&platform, uow, &domain).await?;
            let owner = domain.platform_id.to_string();
            Ok(target.map(|target| EvictionTarget::Domain { owner, target }))
        }
    }
}

/// A DNS record and the object to which its hostname points.
#[derive(Clone, Debug)]
pub(super) struct RoutedRecord {
    pub(super) record: Stored<DnsRecord>,
    pub(super) target: ResourceRef,
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
