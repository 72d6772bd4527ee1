//! Platform hostnames and their targets.

use core_domain::port::{ProviderError, ResourceRef, Route, RouteHostname};
use core_domain::registry::ResourceType;

use super::worker_route::ZoneHostname;
use super::zone::Zones;
use super::{dns, pages_route, worker_route};
use crate::client::Client;

pub(crate) use super::pages_route::remove_all;

/// Returns the target of a hostname: a worker, a project, or the content of a DNS record that this provider did not
/// create.
pub(crate) async fn find(
    client: &Client,
    zones: &Zones,
    hostname: &str,
) -> Result<Option<Route>, ProviderError> {
    match zones.of_hostname(client, hostname).await? {
        Some(zone) => find_in(client, &zone, hostname).await,
        None => Ok(None),
    }
}

async fn find_in(
    client: &Client,
    zone: &str,
    hostname: &str,
) -> Result<Option<Route>, ProviderError> {
    if let Some(found) = worker_route::find(client, ZoneHostname { zone, hostname }).await? {
        return Ok(Some(found));
    }
    let records = dns::address_records(client, zone, hostname).await?;
    let Some(record) = records.into_iter().next() else {
        return Ok(None);
    };
    if let Some(project) = record.project() {
        // A record without its domain is partly created or partly removed.
        return Ok(pages_route::find(client, project, hostname).await?);
    }
    Ok((!record.is_ours()).then_some(Route {
        id: record.id,
        target: record.content,
    }))
}

/// Adds a route from a hostname to an object. Returns an error if the hostname has another target.
pub(crate) async fn make(
    client: &Client,
    zones: &Zones,
    request: &RouteHostname,
) -> Result<Route, ProviderError> {
    let (hostname, target) = (request.hostname.as_str(), &request.target);
    let Some(zone) = zones.of_hostname(client, hostname).await? else {
        let message = format!("{hostname} is not in a zone of the account");
        return Err(ProviderError::Permanent(message));
    };
    match find_in(client, &zone, hostname).await? {
        Some(found) if found.target == target.name => return Ok(found),
        Some(_) => return Err(ProviderError::NameTaken(hostname.to_owned())),
        None => {}
    }
    match target.resource_type {
        ResourceType::Worker => {
            let zone = zone.as_str();
            worker_route::make(client, ZoneHostname { zone, hostname }, target).await
        }
        ResourceType::Pages => pages_route::add_hostname(client, &zone, hostname, target).await,
        ResourceType::D1 | ResourceType::R2 | ResourceType::Kv | ResourceType::Queue => {
            let message = format!("a hostname cannot refer to {}", target.resource_type);
            Err(ProviderError::Permanent(message))
        }
    }
}

/// Removes the route from a hostname to an object. Returns an error if the hostname has another target.
pub(crate) async fn remove(
    client: &Client,
    zones: &Zones,
    hostname: &str,
    target: &ResourceRef,
) -> Result<(), ProviderError> {
    let zone = zones.of_hostname(client, hostname).await?;
    if let Some(zone) = &zone {
        let found = find_in(client, zone, hostname).await?;
        if found.is_some_and(|found| found.target != target.name) {
            return Err(ProviderError::NameTaken(hostname.to_owned()));
        }
    }
    match (target.resource_type, &zone) {
        (ResourceType::Worker, Some(zone)) => {
            worker_route::remove(client, ZoneHostname { zone, hostname }, target).await?;
        }
        (ResourceType::Pages, _) => pages_route::remove(client, zones, hostname, target).await?,
        _ => {}
    }
    Ok(())
}
