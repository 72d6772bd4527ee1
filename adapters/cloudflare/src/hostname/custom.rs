//! Customers' hostnames: the custom hostnames of one zone ("Cloudflare for SaaS").
//!
//! The metadata of a custom hostname contains its owner. Smaller plans have no metadata: there, a hostname belongs to
//! any owner that requests it. This is safe because the registry gives a hostname to a platform only after the platform
//! proved its control of it.

use std::collections::BTreeMap;

use core_domain::port::{HostnameState, ProviderError, ServeHostname, ServedHostname};
use http::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::status::{certificate_of, state_of};
use super::zone::Zones;
use crate::call::Call;
use crate::client::Client;
use crate::error::{CallError, shorten};
use crate::paging::first_match;

/// The error code if the hostname does not exist.
const MISSING: u32 = 1_436;

/// The error code if the hostname exists.
const DUPLICATE: u32 = 1_406;

/// The error code if the hostname cannot be served.
const REJECTED_CODE: u32 = 1_407;

/// The metadata key of the owner.
const OWNER: &str = "core_owner";

/// The required fields of a custom hostname.
#[derive(Clone, Debug, Deserialize)]
struct CustomHostname {
    id: String,
    hostname: String,
    #[serde(default)]
    status: String,
    ssl: Option<Ssl>,
    custom_metadata: Option<BTreeMap<String, Value>>,
    #[serde(default)]
    verification_errors: Vec<Value>,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct Ssl {
    #[serde(default)]
    status: String,
    #[serde(default)]
    validation_errors: Vec<ValidationError>,
}

#[derive(Clone, Debug, Deserialize)]
struct ValidationError {
    message: Option<String>,
}

impl CustomHostname {
    fn belongs_to(&self, owner: &str) -> bool {
        let mark = self
            .custom_metadata
            .as_ref()
            .and_then(|all| all.get(OWNER)?.as_str());
        mark.is_none_or(|mark| mark == owner)
    }

    /// Returns the provider's explanation for the current state.
    fn detail(&self) -> Option<String> {
        let validation = self.ssl.iter().flat_map(|ssl| &ssl.validation_errors);
        let mut validation = validation.filter_map(|error| error.message.as_deref());
        let verification = self.verification_errors.first().and_then(Value::as_str);
        validation.next().or(verification).map(shorten)
    }

    fn into_served_hostname(self) -> ServedHostname {
        let ssl = self.ssl.as_ref().map_or("initializing", |ssl| &ssl.status);
        ServedHostname {
            target: None,
            state: state_of(&self.status, ssl, self.detail().as_deref()),
            certificate: certificate_of(ssl),
            id: self.id,
        }
    }
}

fn path(zone: &str) -> [&str; 3] {
    ["zones", zone, "custom_hostnames"]
}

/// Returns the zone of customers' hostnames; `None` if no zone is configured. Returns an error if the configured zone
/// is not active, because then the state of its hostnames is unknown.
pub(super) async fn zone(client: &Client, zones: &Zones) -> Result<Option<String>, ProviderError> {
    let Some(name) = &client.options().saas_zone else {
        return Ok(None);
    };
    match zones.by_name_or_id(client, name).await? {
        Some(zone) => Ok(Some(zone)),
        None => {
            let cause = format!("the zone {name} of customers' hostnames is not active");
            Err(ProviderError::Transient(cause.into()))
        }
    }
}

async fn read(
    client: &Client,
    zone: &str,
    hostname: &str,
) -> Result<Option<CustomHostname>, CallError> {
    let list = Call::new(Method::GET, "hostname.find", &path(zone));
    let list = list.query("hostname", hostname).query("per_page", 50);
    first_match(client, &list, |found: &CustomHostname| {
        found.hostname == hostname
    })
    .await
}

/// Returns the state of an owner's hostname; `None` if it does not exist.
pub(super) async fn find(
    client: &Client,
    zones: &Zones,
    hostname: &str,
    owner: &str,
) -> Result<Option<ServedHostname>, ProviderError> {
    let Some(zone) = zone(client, zones).await? else {
        return Ok(None);
    };
    let found = read(client, &zone, hostname).await?;
    let Some(own) = found.filter(|found| found.belongs_to(owner)) else {
        return Ok(None);
    };
    // The list can be outdated.
    let path = [&path(&zone)[..], &[&own.id]].concat();
    let call = Call::new(Method::GET, "hostname.read", &path);
    let latest = client.find::<CustomHostname>(call, MISSING).await?;
    Ok(latest.map(CustomHostname::into_served_hostname))
}

/// Requests a hostname. If it has failed, restarts its validation.
pub(super) async fn serve(
    client: &Client,
    zones: &Zones,
    request: &ServeHostname,
) -> Result<ServedHostname, ProviderError> {
    let (hostname, owner) = (request.hostname.as_str(), request.owner.as_str());
    if hostname.starts_with("*.") {
        let message = "wildcard hostnames of customers are not supported".to_owned();
        return Err(ProviderError::Permanent(message));
    }
    let Some(zone) = zone(client, zones).await? else {
        let message = "the operator has not configured a zone for customers' hostnames".to_owned();
        return Err(ProviderError::Permanent(message));
    };
    let known = read(client, &zone, hostname).await?;
    let found = match known {
        Some(known) => known,
        None => create(client, &zone, hostname, owner).await?,
    };
    if !found.belongs_to(owner) {
        return Err(ProviderError::NameTaken(hostname.to_owned()));
    }
    let id = found.id.clone();
    let ours = found.into_served_hostname();
    if !matches!(ours.state, HostnameState::Failed(_)) {
        return Ok(ours);
    }
    let call = Call::new(
        Method::PATCH,
        "hostname.restart",
        &[&path(&zone)[..], &[&id]].concat(),
    );
    let call = call.json(&json!({ "ssl": certificate() }));
    Ok(client
        .fetch::<CustomHostname>(call)
        .await?
        .result
        .into_served_hostname())
}

/// Returns the settings of the certificate. It is validated by HTTP at the hostname, which points to Cloudflare.
fn certificate() -> Value {
    json!({ "method": "http", "type": "dv" })
}

async fn create(
    client: &Client,
    zone: &str,
    hostname: &str,
    owner: &str,
) -> Result<CustomHostname, ProviderError> {
    let plain = json!({ "hostname": hostname, "ssl": certificate() });
    let mut marked = plain.clone();
    marked["custom_metadata"] = json!({ OWNER: owner });
    let mut outcome = post(client, zone, &marked).await;
    // The plan may not support metadata, and there is no error code for that.
    let is_refused = |error: &CallError| {
        let known = error.has(DUPLICATE) || error.has(REJECTED_CODE) || error.is_ambiguous();
        matches!(error, CallError::Refused(_)) && !known
    };
    if outcome.as_ref().is_err_and(is_refused) {
        outcome = post(client, zone, &plain).await;
    }
    match outcome {
        Err(error) if error.has(DUPLICATE) || error.is_ambiguous() => {
            let found = read(client, zone, hostname).await?;
            found.ok_or_else(|| error.into())
        }
        outcome => Ok(outcome?),
    }
}

async fn post(client: &Client, zone: &str, body: &Value) -> Result<CustomHostname, CallError> {
    let call = Call::new(Method::POST, "hostname.create", &path(zone));
    Ok(client.fetch(call.json(body)).await?.result)
}

/// Returns an error if the hostname belongs to another owner.
pub(super) async fn ensure_not_foreign(
    client: &Client,
    zones: &Zones,
    hostname: &str,
    owner: &str,
) -> Result<(), ProviderError> {
    let Some(zone) = zone(client, zones).await? else {
        return Ok(());
    };
    match read(client, &zone, hostname).await? {
        Some(found) if !found.belongs_to(owner) => {
            Err(ProviderError::NameTaken(hostname.to_owned()))
        }
        _ => Ok(()),
    }
}

/// Stops serving an owner's hostname and deletes its certificates.
pub(super) async fn stop(
    client: &Client,
    zones: &Zones,
    hostname: &str,
    owner: &str,
) -> Result<(), ProviderError> {
    let Some(zone) = zone(client, zones).await? else {
        return Ok(());
    };
    let Some(found) = read(client, &zone, hostname).await? else {
        return Ok(());
    };
    if !found.belongs_to(owner) {
        return Err(ProviderError::NameTaken(hostname.to_owned()));
    }
    let path = [&path(&zone)[..], &[&found.id]].concat();
    let call = Call::new(Method::DELETE, "hostname.remove", &path);
    Ok(client.remove(call, MISSING).await?)
}
