//! Customers' hostnames by the type of their target. For a worker, the hostname is a custom hostname of one zone with a
//! route in that zone. For a project, it is a domain of the project, which includes its certificate.
//!
//! The customer's DNS record points to a platform hostname. For a project, Cloudflare may require a CNAME to the
//! project's own name instead. The requirement is reported as the reason why the hostname is pending.

use core_domain::port::{ProviderError, ResourceRef, ServeHostname, ServedHostname};
use core_domain::registry::ResourceType;

use super::worker_route::ZoneHostname;
use super::zone::Zones;
use super::{custom, pages_route, worker_route};
use crate::client::Client;

/// Returns the state of an owner's hostname; `None` if it does not exist.
pub(crate) async fn find(
    client: &Client,
    zones: &Zones,
    hostname: &str,
    owner: &str,
    target: &ResourceRef,
) -> Result<Option<ServedHostname>, ProviderError> {
    if target.resource_type == ResourceType::Pages {
        return Ok(pages_route::find_served(client, &target.name, hostname).await?);
    }
    let Some(found) = custom::find(client, zones, hostname, owner).await? else {
        return Ok(None);
    };
    let route = match custom::zone(client, zones).await? {
        Some(zone) => {
            let zone = zone.as_str();
            worker_route::script_route(client, ZoneHostname { zone, hostname }).await?
        }
        None => None,
    };
    Ok(Some(ServedHostname {
        target: route.map(|route| route.target),
        ..found
    }))
}

/// Requests a hostname for the target. If the hostname has failed, restarts its validation.
pub(crate) async fn serve(
    client: &Client,
    zones: &Zones,
    request: &ServeHostname,
) -> Result<ServedHostname, ProviderError> {
    let (hostname, target) = (request.hostname.as_str(), &request.target);
    match target.resource_type {
        ResourceType::Worker => {
            let found = custom::serve(client, zones, request).await?;
            if let Some(zone) = custom::zone(client, zones).await? {
                let zone = zone.as_str();
                worker_route::ensure_route(client, ZoneHostname { zone, hostname }, target).await?;
            }
            Ok(ServedHostname {
                target: Some(target.name.clone()),
                ..found
            })
        }
        ResourceType::Pages => pages_route::serve(client, &target.name, hostname).await,
        ResourceType::D1 | ResourceType::R2 | ResourceType::Kv | ResourceType::Queue => {
            let message = format!("a hostname cannot refer to {}", target.resource_type);
            Err(ProviderError::Permanent(message))
        }
    }
}

/// Stops serving an owner's hostname and deletes its certificates.
pub(crate) async fn stop(
    client: &Client,
    zones: &Zones,
    hostname: &str,
    owner: &str,
    target: &ResourceRef,
) -> Result<(), ProviderError> {
    if target.resource_type == ResourceType::Pages {
        return Ok(pages_route::remove_domain(client, &target.name, hostname).await?);
    }
    custom::ensure_not_foreign(client, zones, hostname, owner).await?;
    if let Some(zone) = custom::zone(client, zones).await? {
        let zone = zone.as_str();
        worker_route::remove_route(client, ZoneHostname { zone, hostname }, target).await?;
    }
    custom::stop(client, zones, hostname, owner).await
}
