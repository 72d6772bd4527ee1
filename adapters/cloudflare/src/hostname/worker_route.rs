//! Hostnames of workers. Usually a hostname is a custom domain of the worker, which includes its DNS record and its
//! certificate. Custom domains cannot be wildcards, so a wildcard is a route with a separate DNS record.

use core_domain::port::{ProviderError, ResourceRef, Route};
use http::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::dns::{self, NewRecord};
use crate::call::Call;
use crate::client::Client;
use crate::error::CallError;

/// The error code if the custom domain of a worker does not exist.
const DOMAIN_MISSING: u32 = 100_114;

/// The error code if the name has another DNS record.
const DOMAIN_TAKEN: u32 = 100_117;

/// The error code if the route does not exist.
const ROUTE_MISSING: u32 = 10_009;

/// The error code if a route with this pattern exists.
const ROUTE_DUPLICATE: u32 = 10_020;

/// The error codes if the script of a route or domain is unknown. A new script can be unknown for some seconds.
const SCRIPT_UNKNOWN: [u32; 2] = [10_019, 10_007];

/// The content of the DNS record of a name that has no origin except its worker.
const NO_ORIGIN: &str = "100::";

const DOMAINS: [&str; 2] = ["workers", "domains"];

#[derive(Deserialize)]
struct Domain {
    id: String,
    hostname: String,
    service: String,
}

#[derive(Deserialize)]
struct ScriptRoute {
    id: String,
    pattern: String,
    script: Option<String>,
}

/// A hostname and the id of its zone.
#[derive(Clone, Copy, Debug)]
pub(super) struct ZoneHostname<'a> {
    pub(super) zone: &'a str,
    pub(super) hostname: &'a str,
}

impl ZoneHostname<'_> {
    fn pattern(&self) -> String {
        format!("{}/*", self.hostname)
    }

    fn is_wildcard(&self) -> bool {
        self.hostname.starts_with("*.")
    }
}

fn is_unknown_script(error: &CallError) -> bool {
    SCRIPT_UNKNOWN.iter().any(|code| error.has(*code))
}

/// Returns the worker that has the hostname as its custom domain.
async fn domain(client: &Client, hostname: &str) -> Result<Option<Route>, CallError> {
    let list = client
        .call(Method::GET, "domain.find", &DOMAINS)
        .query("hostname", hostname);
    let domains = client.fetch::<Vec<Domain>>(list).await?.result;
    let found = domains
        .into_iter()
        .find(|domain| domain.hostname == hostname);
    Ok(found.map(|domain| Route {
        id: domain.id,
        target: domain.service,
    }))
}

/// Returns the worker that has a route for the hostname.
pub(super) async fn script_route(
    client: &Client,
    at: ZoneHostname<'_>,
) -> Result<Option<Route>, CallError> {
    let list = Call::new(
        Method::GET,
        "route.find",
        &["zones", at.zone, "workers", "routes"],
    );
    let routes = client.fetch::<Vec<ScriptRoute>>(list).await?.result;
    let found = routes
        .into_iter()
        .find(|route| route.pattern == at.pattern());
    Ok(found.map(|route| Route {
        id: route.id,
        // A route without a script excludes the hostname from workers.
        target: route.script.unwrap_or_default(),
    }))
}

/// Returns the worker that serves the hostname.
pub(super) async fn find(
    client: &Client,
    at: ZoneHostname<'_>,
) -> Result<Option<Route>, CallError> {
    match domain(client, at.hostname).await? {
        Some(found) => Ok(Some(found)),
        None => script_route(client, at).await,
    }
}

/// Adds a hostname without a route to a worker.
pub(super) async fn make(
    client: &Client,
    at: ZoneHostname<'_>,
    target: &ResourceRef,
) -> Result<Route, ProviderError> {
    if at.is_wildcard() {
        return make_route(client, at, target).await;
    }
    let call = client.call(Method::PUT, "domain.create", &DOMAINS);
    let call = call.json(&json!({
        "hostname": at.hostname,
        "service": target.name,
        "zone_id": at.zone,
    }));
    match client
        .fetch_with_retries::<Domain>(&call, is_unknown_script)
        .await
    {
        Ok(domain) => Ok(Route {
            id: domain.id,
            target: domain.service,
        }),
        Err(error) if error.has(DOMAIN_TAKEN) => {
            Err(ProviderError::NameTaken(at.hostname.to_owned()))
        }
        Err(error) if error.is_ambiguous() => {
            resolve_outcome(domain(client, at.hostname).await, target, error)
        }
        Err(error) => Err(error.into()),
    }
}

async fn make_route(
    client: &Client,
    at: ZoneHostname<'_>,
    target: &ResourceRef,
) -> Result<Route, ProviderError> {
    let record = NewRecord {
        hostname: at.hostname,
        kind: "AAAA",
        content: NO_ORIGIN,
        target,
    };
    dns::ensure(client, at.zone, record).await?;
    create_route(client, at, target).await
}

/// Creates the route from a hostname to a worker, or changes its worker.
pub(super) async fn ensure_route(
    client: &Client,
    at: ZoneHostname<'_>,
    target: &ResourceRef,
) -> Result<(), ProviderError> {
    match script_route(client, at).await? {
        Some(route) if route.target == target.name => Ok(()),
        Some(route) => {
            let path = ["zones", at.zone, "workers", "routes", &route.id];
            let call = Call::new(Method::PUT, "route.change", &path);
            let call = call.json(&json!({ "pattern": at.pattern(), "script": target.name }));
            let changed = client.fetch_with_retries::<Value>(&call, is_unknown_script);
            Ok(changed.await.map(drop)?)
        }
        None => create_route(client, at, target).await.map(drop),
    }
}

/// Deletes the route of a hostname if it belongs to this worker.
pub(super) async fn remove_route(
    client: &Client,
    at: ZoneHostname<'_>,
    target: &ResourceRef,
) -> Result<(), CallError> {
    let found = script_route(client, at).await?;
    if let Some(found) = found.filter(|route| route.target == target.name) {
        let path = ["zones", at.zone, "workers", "routes", &found.id];
        let call = Call::new(Method::DELETE, "route.remove", &path);
        client.remove(call, ROUTE_MISSING).await?;
    }
    Ok(())
}

async fn create_route(
    client: &Client,
    at: ZoneHostname<'_>,
    target: &ResourceRef,
) -> Result<Route, ProviderError> {
    let call = Call::new(
        Method::POST,
        "route.create",
        &["zones", at.zone, "workers", "routes"],
    );
    let call = call.json(&json!({ "pattern": at.pattern(), "script": target.name }));
    match client
        .fetch_with_retries::<Value>(&call, is_unknown_script)
        .await
    {
        Ok(_) => {
            let made = script_route(client, at).await?;
            made.ok_or_else(|| ProviderError::Transient("the new route is not visible yet".into()))
        }
        Err(error) if error.has(ROUTE_DUPLICATE) || error.is_ambiguous() => {
            resolve_outcome(script_route(client, at).await, target, error)
        }
        Err(error) => Err(error.into()),
    }
}

/// Resolves a call that failed because the route exists, or whose outcome is unknown.
fn resolve_outcome(
    found: Result<Option<Route>, CallError>,
    target: &ResourceRef,
    error: CallError,
) -> Result<Route, ProviderError> {
    match found {
        Ok(Some(route)) if route.target == target.name => Ok(route),
        Ok(Some(route)) => Err(ProviderError::NameTaken(route.target)),
        Ok(None) | Err(_) if error.is_ambiguous() => Err(error.into()),
        Ok(None) => Err(ProviderError::Transient(
            "the route exists but is not visible yet".into(),
        )),
        // The owner of the route decides the outcome of the job, so the next attempt looks again.
        Err(look) => Err(look.into()),
    }
}

/// Removes a hostname from a worker, with its route and its DNS records.
pub(super) async fn remove(
    client: &Client,
    at: ZoneHostname<'_>,
    target: &ResourceRef,
) -> Result<(), CallError> {
    let is_theirs = |route: &Route| route.target == target.name;
    if let Some(found) = domain(client, at.hostname).await?.filter(is_theirs) {
        let path = [&DOMAINS[..], &[&found.id]].concat();
        let call = client.call(Method::DELETE, "domain.remove", &path);
        client.remove(call, DOMAIN_MISSING).await?;
    }
    remove_route(client, at, target).await?;
    dns::remove_of(client, at.zone, at.hostname, target).await
}
