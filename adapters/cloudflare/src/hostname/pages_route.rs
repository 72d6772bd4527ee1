//! Hostnames of projects: a domain of the project and a CNAME record.

use core_domain::port::{HostnameState, ProviderError, ResourceRef, Route, ServedHostname};
use core_domain::registry::{ResourceType, SslStatus};
use http::Method;
use serde::Deserialize;
use serde_json::json;

use super::dns::{self, NewRecord};
use super::zone::Zones;
use crate::client::Client;
use crate::error::{CallError, shorten};
use crate::pages::project::{self, MISSING, PATH};

/// The error code if the hostname is already a domain of a project.
const DUPLICATE: u32 = 8_000_018;

/// The suffix of the projects' own names. These are not added domains.
const PAGES_DEV_SUFFIX: &str = ".pages.dev";

/// The states of a domain that is not served unless it is checked again.
const FAILED: [&str; 3] = ["deactivated", "blocked", "error"];

#[derive(Deserialize)]
struct Domain {
    id: String,
    name: String,
    #[serde(default)]
    status: String,
    #[serde(default)]
    validation_data: Check,
    #[serde(default)]
    verification_data: Check,
}

/// The result of a check of a domain.
#[derive(Default, Deserialize)]
struct Check {
    error_message: Option<String>,
}

impl Domain {
    fn into_served_hostname(self, project: &str) -> ServedHostname {
        let checks = [self.verification_data, self.validation_data];
        let detail = checks.into_iter().find_map(|check| check.error_message);
        let text = match detail {
            Some(detail) => format!("the domain is {}: {}", self.status, shorten(&detail)),
            None => format!("the domain is {}", self.status),
        };
        let (state, certificate) = match self.status.as_str() {
            "active" => (HostnameState::Active, SslStatus::Active),
            status if FAILED.contains(&status) => (HostnameState::Failed(text), SslStatus::Failed),
            _ => (HostnameState::Pending(text), SslStatus::PendingIssuance),
        };
        ServedHostname {
            id: self.id,
            target: Some(project.to_owned()),
            state,
            certificate,
        }
    }
}

async fn read(client: &Client, project: &str, hostname: &str) -> Result<Option<Domain>, CallError> {
    let path = [&PATH[..], &[project, "domains", hostname]].concat();
    let call = client.call(Method::GET, "pages.find_domain", &path);
    client.find::<Domain>(call, MISSING).await
}

/// Returns the state of a customer's hostname of a project; `None` if it does not exist.
pub(super) async fn find_served(
    client: &Client,
    project: &str,
    hostname: &str,
) -> Result<Option<ServedHostname>, CallError> {
    let found = read(client, project, hostname).await?;
    Ok(found.map(|domain| domain.into_served_hostname(project)))
}

/// Adds a customer's hostname to a project. If the hostname has failed, starts a new check.
pub(super) async fn serve(
    client: &Client,
    project: &str,
    hostname: &str,
) -> Result<ServedHostname, ProviderError> {
    ensure_domain(client, project, hostname).await?;
    let unseen = || ProviderError::Transient("the new domain is not visible yet".into());
    let found = read(client, project, hostname).await?.ok_or_else(unseen)?;
    if !FAILED.contains(&found.status.as_str()) {
        return Ok(found.into_served_hostname(project));
    }
    let path = [&PATH[..], &[project, "domains", hostname]].concat();
    let call = client.call(Method::PATCH, "pages.check_domain", &path);
    let checked = client.fetch::<Domain>(call).await?.result;
    Ok(checked.into_served_hostname(project))
}

/// Returns the domain of a project as a route; `None` if it does not exist.
pub(super) async fn find(
    client: &Client,
    project: &str,
    hostname: &str,
) -> Result<Option<Route>, CallError> {
    let found = read(client, project, hostname).await?;
    Ok(found.map(|domain| Route {
        id: domain.id,
        target: project.to_owned(),
    }))
}

/// Adds a platform hostname without a route to a project.
pub(super) async fn add_hostname(
    client: &Client,
    zone: &str,
    hostname: &str,
    target: &ResourceRef,
) -> Result<Route, ProviderError> {
    let project = project::read(client, &target.name).await?;
    let Some(subdomain) = project.as_ref().and_then(|project| project.subdomain()) else {
        return Err(ProviderError::Transient(
            "the project has no subdomain yet".into(),
        ));
    };
    let route = ensure_domain(client, &target.name, hostname).await?;
    let record = NewRecord {
        hostname,
        kind: "CNAME",
        content: subdomain,
        target,
    };
    dns::ensure(client, zone, record).await?;
    Ok(route)
}

async fn ensure_domain(
    client: &Client,
    project: &str,
    hostname: &str,
) -> Result<Route, ProviderError> {
    if let Some(found) = find(client, project, hostname).await? {
        return Ok(found);
    }
    let path = [&PATH[..], &[project, "domains"]].concat();
    let call = client.call(Method::POST, "pages.add_domain", &path);
    match client
        .fetch::<Domain>(call.json(&json!({ "name": hostname })))
        .await
    {
        Ok(answer) => Ok(Route {
            id: answer.result.id,
            target: project.to_owned(),
        }),
        // The code can mean that the domain exists, in this project or another one.
        Err(error) => match find(client, project, hostname).await {
            Ok(Some(found)) => Ok(found),
            Ok(None) if error.has(DUPLICATE) => Err(ProviderError::NameTaken(hostname.to_owned())),
            Err(look) if error.has(DUPLICATE) => Err(look.into()),
            _ => Err(error.into()),
        },
    }
}

/// Removes a hostname from a project. The DNS record is deleted first, so that the name never points to a project name
/// that another account could register.
pub(super) async fn remove(
    client: &Client,
    zones: &Zones,
    hostname: &str,
    target: &ResourceRef,
) -> Result<(), CallError> {
    if let Some(zone) = zones.of_hostname(client, hostname).await? {
        dns::remove_of(client, &zone, hostname, target).await?;
    }
    remove_domain(client, &target.name, hostname).await
}

/// Removes a domain from a project.
pub(super) async fn remove_domain(
    client: &Client,
    project: &str,
    hostname: &str,
) -> Result<(), CallError> {
    let path = [&PATH[..], &[project, "domains", hostname]].concat();
    let call = client.call(Method::DELETE, "pages.remove_domain", &path);
    client.remove(call, MISSING).await
}

/// Removes all hostnames from a project.
pub(crate) async fn remove_all(
    client: &Client,
    zones: &Zones,
    project: &str,
) -> Result<(), CallError> {
    let path = [&PATH[..], &[project, "domains"]].concat();
    let list = client.call(Method::GET, "pages.domains", &path);
    let domains = client.find::<Vec<Domain>>(list, MISSING).await?;
    let target = ResourceRef {
        resource_type: ResourceType::Pages,
        name: project.to_owned(),
    };
    let added = |domain: &Domain| !domain.name.ends_with(PAGES_DEV_SUFFIX);
    for domain in domains.unwrap_or_default().into_iter().filter(added) {
        remove(client, zones, &domain.name, &target).await?;
    }
    Ok(())
}
