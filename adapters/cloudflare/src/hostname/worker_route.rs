//! Hostnames that lead to workers: a custom domain of the worker, which brings its DNS record and its certificate; for a
//! wildcard, which can be none, a route with a DNS record of its own.

use core_domain::port::{ProviderError, ResourceRef, Route};
use http::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::dns::{self, NewRecord};
use crate::call::Call;
use crate::client::Client;
use crate::error::CallError;

/// There is no such custom domain of a worker.
const DOMAIN_MISSING: u32 = 100_114;

/// Somebody else's DNS record has the name.
const DOMAIN_TAKEN: u32 = 100_117;

/// There is no such route.
const ROUTE_MISSING: u32 = 10_009;

/// A route of this pattern exists.
const ROUTE_DUPLICATE: u32 = 10_020;

/// The script of a route, or of a domain, is not known: it may take seconds until a new one is.
const SCRIPT_UNKNOWN: [u32; 2] = [10_019, 10_007];

/// Where a name leads that has no origin besides its worker.
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

/// Where a worker serves, or is to serve.
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

/// Which worker has the hostname as its custom domain.
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

/// Which worker has a route of the hostname.
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
        // A route without a script keeps workers away.
        target: route.script.unwrap_or_default(),
    }))
}

/// Which worker the hostname leads to.
pub(super) async fn find(
    client: &Client,
    at: ZoneHostname<'_>,
) -> Result<Option<Route>, CallError> {
    match domain(client, at.hostname).await? {
        Some(found) => Ok(Some(found)),
        None => script_route(client, at).await,
    }
}

/// Lets a hostname that leads nowhere lead to a worker.
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
            made_or_found(domain(client, at.hostname).await, target, error)
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

/// Has the route of a hostname lead to a worker, and to no other one.
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

/// Takes the route of a hostname away from a worker it leads to.
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
            made.ok_or_else(|| ProviderError::Transient("the new route is not shown yet".into()))
        }
        Err(error) if error.has(ROUTE_DUPLICATE) || error.is_ambiguous() => {
            made_or_found(script_route(client, at).await, target, error)
        }
        Err(error) => Err(error.into()),
    }
}

/// What came of a call that failed because the route exists, or whose outcome is unknown.
fn made_or_found(
    found: Result<Option<Route>, CallError>,
    target: &ResourceRef,
    error: CallError,
) -> Result<Route, ProviderError> {
    match found {
        Ok(Some(route)) if route.target == target.name => Ok(route),
        Ok(Some(route)) => Err(ProviderError::NameTaken(route.target)),
        Ok(None) | Err(_) if error.is_ambiguous() => Err(error.into()),
        Ok(None) => Err(ProviderError::Transient(
            "the route exists and is not shown yet".into(),
        )),
        // Whose it is decides what becomes of the job: the next attempt looks again.
        Err(look) => Err(look.into()),
    }
}

/// Takes the hostname away from a worker it leads to.
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
