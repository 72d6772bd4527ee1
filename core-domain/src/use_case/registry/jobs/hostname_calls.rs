//! Calls of a provider for the hostnames of custom domains and DNS records.

use super::dns_target::{RoutedRecord, target_of_domain};
use super::evict_hostname::evict_hostname;
use crate::access::SystemScope;
use crate::kernel::Result;
use crate::port::{
    Mode, ProviderError, ResourceRef, Route, RouteHostname, ServeHostname, ServedHostname,
};
use crate::registry::{CustomDomain, DnsRecord, DnsTargetType};
use crate::use_case::provisioning::{JobKind, StepContext, StepError};

/// Returns the state of the domain at the provider; `None` if its hostname is not served, or leads to another object.
pub(super) async fn at_provider<K: JobKind>(
    cx: &StepContext<'_, K>,
    domain: &CustomDomain,
) -> Result<Option<ServedHostname>, ProviderError> {
    let Ok(target) = find_target(cx, domain).await else {
        let problem = "what the domain leads to could not be read";
        return Err(ProviderError::Transient(problem.into()));
    };
    let Some(target) = target else {
        return Ok(None);
    };
    let (hostname, owner) = (domain.hostname.as_str(), domain.platform_id.as_str());
    let found = cx.infrastructure.served_hostname(hostname, owner, &target);
    let leads_there = |found: &ServedHostname| found.target.as_deref() == Some(&target.name);
    Ok(found.await?.filter(leads_there))
}

/// Returns the object at the provider that the domain leads to.
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

/// Asks the provider to serve a hostname. If it is taken by entries without a proof, removes those and asks again.
pub(super) async fn serve<K: JobKind>(
    cx: &StepContext<'_, K>,
    domain: &CustomDomain,
    effect_key: String,
) -> Result<ServedHostname, StepError> {
    let Some(target) = find_target(cx, domain).await? else {
        let missing = "the resource that the domain leads to is gone".to_owned();
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

/// Stops serving the hostname of a custom domain. A hostname of another owner stays.
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

/// Refuses a DNS record that no provider can serve.
///
/// # Errors
/// `PROVIDER_REFUSED` for a record of type `redirect`.
pub(super) fn ensure_can_be_routed(record: &DnsRecord) -> Result<(), StepError> {
    if record.target_type != DnsTargetType::Redirect {
        return Ok(());
    }
    let message = "no provider redirects hostnames: let it lead to a worker that does";
    Err(StepError::permanent("PROVIDER_REFUSED", message))
}

/// Routes a hostname to its resource. If it is taken by entries without a proof, removes those and asks again.
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

/// Removes the route of a hostname. A route to another object stays.
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
