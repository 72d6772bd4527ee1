//! Hostnames that lead to projects: a domain of the project and a CNAME.

use core_domain::port::{HostnameState, ProviderError, ResourceRef, Route, ServedHostname};
use core_domain::registry::{ResourceType, SslStatus};
use http::Method;
use serde::Deserialize;
use serde_json::json;

use super::dns::{self, NewRecord};
use super::zone::Zones;
use crate::client::Client;
use crate::error::{CallError, shortened};
use crate::pages::project::{self, MISSING, PATH};

/// The hostname is a domain of a project already.
const DUPLICATE: u32 = 8_000_018;

/// What projects' own names end with; these are no domains that were added.
const OWN: &str = ".pages.dev";

/// The domain will not be served, unless it is checked again.
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

/// What Cloudflare says of a check of a domain.
#[derive(Default, Deserialize)]
struct Check {
    error_message: Option<String>,
}

impl Domain {
    fn into_served_hostname(self, project: &str) -> ServedHostname {
        let checks = [self.verification_data, self.validation_data];
        let detail = checks.into_iter().find_map(|check| check.error_message);
        let text = match detail {
            Some(detail) => format!("the domain is {}: {}", self.status, shortened(&detail)),
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

/// How far a customer's hostname is that leads to a project.
pub(super) async fn find_served(
    client: &Client,
    project: &str,
    hostname: &str,
) -> Result<Option<ServedHostname>, CallError> {
    let found = read(client, project, hostname).await?;
    Ok(found.map(|domain| domain.into_served_hostname(project)))
}

/// Has a customer's hostname lead to a project, or asks once more for one that was given up.
pub(super) async fn serve(
    client: &Client,
    project: &str,
    hostname: &str,
) -> Result<ServedHostname, ProviderError> {
    ensure_domain(client, project, hostname).await?;
    let unseen = || ProviderError::Transient("the new domain is not shown yet".into());
    let found = read(client, project, hostname).await?.ok_or_else(unseen)?;
    if !FAILED.contains(&found.status.as_str()) {
        return Ok(found.into_served_hostname(project));
    }
    let path = [&PATH[..], &[project, "domains", hostname]].concat();
    let call = client.call(Method::PATCH, "pages.check_domain", &path);
    let checked = client.fetch::<Domain>(call).await?.result;
    Ok(checked.into_served_hostname(project))
}

/// The domain of a project.
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

/// Lets a hostname that leads nowhere lead to a project.
pub(super) async fn make(
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
        // The code may say that it is there already, in this project or another one.
        Err(error) => match find(client, project, hostname).await {
            Ok(Some(found)) => Ok(found),
            Ok(None) if error.has(DUPLICATE) => Err(ProviderError::NameTaken(hostname.to_owned())),
            Err(look) if error.has(DUPLICATE) => Err(look.into()),
            _ => Err(error.into()),
        },
    }
}

/// Takes the hostname away from a project: the record that leads to it first, so that no name ever leads to a project that
/// somebody else could make.
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

/// Takes a domain away from a project.
pub(super) async fn remove_domain(
    client: &Client,
    project: &str,
    hostname: &str,
) -> Result<(), CallError> {
    let path = [&PATH[..], &[project, "domains", hostname]].concat();
    let call = client.call(Method::DELETE, "pages.remove_domain", &path);
    client.remove(call, MISSING).await
}

/// Takes every hostname away from a project.
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
    let added = |domain: &Domain| !domain.name.ends_with(OWN);
    for domain in domains.unwrap_or_default().into_iter().filter(added) {
        remove(client, zones, &domain.name, &target).await?;
    }
    Ok(())
}
