//! Hostnames that lead to projects: a domain of the project and a CNAME.

use core_domain::port::{ProviderError, ResourceRef, Route};
use core_domain::registry::ResourceType;
use http::Method;
use serde::Deserialize;
use serde_json::json;

use super::dns::{self, NewRecord};
use super::zone::Zones;
use crate::client::Client;
use crate::error::CallError;
use crate::pages::project::{self, MISSING, PATH};

/// What projects' own names end with; these are no domains that were added.
const OWN: &str = ".pages.dev";

#[derive(Deserialize)]
struct Domain {
    id: String,
    name: String,
}

/// The domain of a project.
pub(super) async fn find(
    client: &Client,
    project: &str,
    hostname: &str,
) -> Result<Option<Route>, CallError> {
    let path = [&PATH[..], &[project, "domains", hostname]].concat();
    let call = client.call(Method::GET, "pages.find_domain", &path);
    let found = client.find::<Domain>(call, MISSING).await?;
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
        // Which code says that it is there already is not known.
        Err(error) => match find(client, project, hostname).await {
            Ok(Some(found)) => Ok(found),
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
    let path = [&PATH[..], &[&target.name, "domains", hostname]].concat();
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
