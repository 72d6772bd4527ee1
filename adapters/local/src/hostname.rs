//! Hostnames of workers and sites. Each hostname is one file that is replaced atomically.
//!
//! ```text
//! route/{hostname}      a platform hostname, with the worker or pages project that serves it
//! hostname/{hostname}   a customer's hostname, with the worker or pages project that serves it
//! ```
//! The local provider manages neither DNS nor certificates: a hostname is served as soon as its file exists.

use core_domain::port::{
    HostnameState, ResourceRef, Route, RouteHostname, ServeHostname, ServedHostname,
};
use core_domain::registry::{ResourceType, SslStatus};
use serde::{Deserialize, Serialize};

use crate::data_dir::{DataDir, PublishLock};
use crate::error::{LocalError, Result};
use crate::manifest::{Manifest, read_json, to_json};
use crate::names::{digest, display_name, is_hostname};
use crate::site;

pub(crate) const ROUTES: &str = "route";
pub(crate) const SERVED: &str = "hostname";

/// The object that serves an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RouteTarget {
    /// The name of a worker.
    Worker(String),
    /// The address label of a site: `{project}` or `{branch}--{project}`.
    Site(String),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RouteRecord {
    id: String,
    target_type: ResourceType,
    target: String,
    owner: String,
    effect_key: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ServedHostnameRecord {
    id: String,
    target_type: ResourceType,
    target: String,
    target_dns: String,
    owner: String,
    effect_key: String,
}

impl RouteRecord {
    fn leads_to(&self, target: &ResourceRef) -> bool {
        self.target_type == target.resource_type && self.target == target.name
    }
}

impl ServedHostnameRecord {
    fn leads_to(&self, target: &ResourceRef) -> bool {
        self.target_type == target.resource_type && self.target == target.name
    }
}

fn route_target(target_type: ResourceType, target: String) -> RouteTarget {
    match target_type {
        ResourceType::Worker => RouteTarget::Worker(target),
        _ => RouteTarget::Site(target),
    }
}

/// Returns the route of a platform hostname; `None` if there is none.
pub(crate) fn route(data: &DataDir, hostname: &str) -> Result<Option<Route>> {
    let found = read_route(data, hostname)?;
    Ok(found.map(|routed| Route {
        id: routed.id,
        target: routed.target,
    }))
}

/// Adds a route from a platform hostname to an object. `domain` is the parent domain of the objects' own addresses.
/// Returns the existing route if it has the same target.
pub(crate) fn add_route(data: &DataDir, request: &RouteHostname, domain: &str) -> Result<Route> {
    let RouteHostname {
        hostname, target, ..
    } = request;
    check_hostname(hostname)?;
    let lock = data.lock_publish()?;
    check_target(data, target, &request.owner)?;
    if let Some(known) = read_route(data, hostname)? {
        if known.leads_to(target) {
            return Ok(Route {
                id: known.id,
                target: known.target,
            });
        }
        return name_taken(hostname);
    }
    let serves_http =
        read_served(data, hostname)?.is_some_and(|known| known.owner != request.owner);
    if serves_http || find_by_own_address(data, hostname, domain)?.is_some() {
        return name_taken(hostname);
    }
    let routed = RouteRecord {
        id: id_of(hostname, &request.effect_key),
        target_type: target.resource_type,
        target: target.name.clone(),
        owner: request.owner.clone(),
        effect_key: request.effect_key.clone(),
    };
    write(data, [ROUTES, hostname], &routed, &lock)?;
    Ok(Route {
        id: routed.id,
        target: routed.target,
    })
}

fn check_target(data: &DataDir, target: &ResourceRef, owner: &str) -> Result<()> {
    if !is_served(target.resource_type) {
        let what = format!("a hostname cannot lead to a {}", target.resource_type);
        return Err(LocalError::Invalid(what));
    }
    // An object of another owner is indistinguishable from a missing one.
    let found = match Manifest::read_owned(data, target, owner) {
        Err(LocalError::NameTaken(_)) => None,
        found => found?,
    };
    match found {
        Some(_) => Ok(()),
        None => Err(LocalError::Missing(display_name(target))),
    }
}

/// Deletes the route from a platform hostname to an object. Succeeds if the hostname has no route.
pub(crate) fn remove_route(data: &DataDir, hostname: &str, target: &ResourceRef) -> Result<()> {
    let _lock = data.lock_publish()?;
    match read_route(data, hostname)? {
        None => Ok(()),
        Some(known) if !known.leads_to(target) => name_taken(hostname),
        Some(_) => data.remove_file(&[ROUTES, hostname]).map(drop),
    }
}

/// Deletes every hostname of an object that is about to be deleted.
pub(crate) fn remove_routes_to(
    data: &DataDir,
    target: &ResourceRef,
    _: &PublishLock,
) -> Result<()> {
    if !is_served(target.resource_type) {
        return Ok(());
    }
    for hostname in data.list(&[ROUTES])? {
        if read_route(data, &hostname)?.is_some_and(|known| known.leads_to(target)) {
            data.remove_file(&[ROUTES, &hostname])?;
        }
    }
    for hostname in data.list(&[SERVED])? {
        if read_served(data, &hostname)?.is_some_and(|known| known.leads_to(target)) {
            data.remove_file(&[SERVED, &hostname])?;
        }
    }
    Ok(())
}

/// Returns the state of a customer's hostname; `None` if it is unknown or has another owner.
pub(crate) fn served_hostname(
    data: &DataDir,
    hostname: &str,
    owner: &str,
) -> Result<Option<ServedHostname>> {
    let found = read_served(data, hostname)?;
    Ok(found
        .filter(|known| known.owner == owner)
        .map(to_served_hostname))
}

/// Starts to serve a customer's hostname with an object, or changes its target.
pub(crate) fn serve(
    data: &DataDir,
    request: &ServeHostname,
    domain: &str,
) -> Result<ServedHostname> {
    let hostname = request.hostname.as_str();
    check_hostname(hostname)?;
    check_hostname(&request.target_dns)?;
    let lock = data.lock_publish()?;
    let target = &request.target;
    check_target(data, target, &request.owner)?;
    let routed = read_route(data, hostname)?;
    let is_routed = routed.is_some_and(|known| known.owner != request.owner);
    let id = match read_served(data, hostname)? {
        Some(known) if known.owner != request.owner => return name_taken(hostname),
        Some(known) => known.id,
        None if is_routed || find_by_own_address(data, hostname, domain)?.is_some() => {
            return name_taken(hostname);
        }
        None => id_of(hostname, &request.effect_key),
    };
    let served = ServedHostnameRecord {
        id,
        target_type: target.resource_type,
        target: target.name.clone(),
        target_dns: request.target_dns.clone(),
        owner: request.owner.clone(),
        effect_key: request.effect_key.clone(),
    };
    write(data, [SERVED, hostname], &served, &lock)?;
    Ok(to_served_hostname(served))
}

/// Stops serving a customer's hostname. Succeeds if it is not served.
pub(crate) fn stop_serving(data: &DataDir, hostname: &str, owner: &str) -> Result<()> {
    let _lock = data.lock_publish()?;
    match read_served(data, hostname)? {
        None => Ok(()),
        Some(known) if known.owner != owner => name_taken(hostname),
        Some(_) => data.remove_file(&[SERVED, hostname]).map(drop),
    }
}

/// Returns the object that serves a host. Objects' own addresses below `domain` come first, then platform hostnames,
/// then customers' hostnames.
pub(crate) fn resolve_host(
    data: &DataDir,
    host: &str,
    domain: &str,
) -> Result<Option<RouteTarget>> {
    if let Some(place) = find_by_own_address(data, host, domain)? {
        return Ok(Some(place));
    }
    if let Some(known) = read_route(data, host)? {
        return Ok(Some(route_target(known.target_type, known.target)));
    }
    let served = read_served(data, host)?;
    Ok(served.map(|known| route_target(known.target_type, known.target)))
}

/// Returns the object that has this host as its own address.
fn find_by_own_address(data: &DataDir, host: &str, domain: &str) -> Result<Option<RouteTarget>> {
    let label = host
        .strip_suffix(domain)
        .and_then(|host| host.strip_suffix('.'));
    match label {
        Some(label) => find_by_label(data, label),
        None => Ok(None),
    }
}

/// Returns the object of an address label. A site wins over a worker of the same name.
pub(crate) fn find_by_label(data: &DataDir, label: &str) -> Result<Option<RouteTarget>> {
    if site::resolve(data, label)?.is_some() || Manifest::exists(data, ResourceType::Pages, label)?
    {
        return Ok(Some(RouteTarget::Site(label.to_owned())));
    }
    let is_worker = Manifest::exists(data, ResourceType::Worker, label)?;
    Ok(is_worker.then(|| RouteTarget::Worker(label.to_owned())))
}

/// Returns whether objects of this type serve HTTP requests.
pub(crate) const fn is_served(resource_type: ResourceType) -> bool {
    matches!(resource_type, ResourceType::Worker | ResourceType::Pages)
}

fn read_route(data: &DataDir, hostname: &str) -> Result<Option<RouteRecord>> {
    read(data, ROUTES, hostname)
}

fn read_served(data: &DataDir, hostname: &str) -> Result<Option<ServedHostnameRecord>> {
    read(data, SERVED, hostname)
}

fn read<T: serde::de::DeserializeOwned>(
    data: &DataDir,
    folder: &str,
    hostname: &str,
) -> Result<Option<T>> {
    // Only valid hostnames have files.
    if !is_hostname(hostname) {
        return Ok(None);
    }
    read_json(data, &[folder, hostname])
}

fn write<T: Serialize>(data: &DataDir, parts: [&str; 2], value: &T, _: &PublishLock) -> Result<()> {
    data.replace_file(&parts, &[&to_json(value)?])
}

fn to_served_hostname(served: ServedHostnameRecord) -> ServedHostname {
    ServedHostname {
        id: served.id,
        target: Some(served.target),
        state: HostnameState::Active,
        certificate: SslStatus::Active,
    }
}

fn id_of(hostname: &str, effect_key: &str) -> String {
    digest(&[hostname.as_bytes(), effect_key.as_bytes()])[..32].to_owned()
}

fn check_hostname(hostname: &str) -> Result<()> {
    if is_hostname(hostname) {
        return Ok(());
    }
    Err(LocalError::Invalid(format!(
        "{hostname:?} is not a hostname"
    )))
}

fn name_taken<T>(hostname: &str) -> Result<T> {
    Err(LocalError::NameTaken(hostname.to_owned()))
}
