//! Existing scripts. The name of a script is its id.

use core_domain::port::{OwnedObject, ProviderObject};
use http::Method;
use serde::Deserialize;

use super::metadata::owner_of;
use crate::client::Client;
use crate::error::CallError;
use crate::ownership::owner_from_mark;

/// The error code if the script does not exist.
pub(crate) const MISSING: u32 = 10_007;

/// The error code if the custom domain of a worker does not exist.
const DOMAIN_MISSING: u32 = 100_114;

pub(super) const PATH: [&str; 2] = ["workers", "scripts"];

#[derive(Deserialize)]
struct Settings {
    tags: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct Script {
    id: String,
    tags: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct Domain {
    id: String,
    service: String,
}

fn of_tags(name: &str, tags: Option<Vec<String>>) -> ProviderObject {
    ProviderObject {
        id: name.to_owned(),
        url: None,
        owner: owner_from_mark(owner_of(&tags.unwrap_or_default())),
    }
}

/// Finds a script by name, without its URL.
pub(crate) async fn find(client: &Client, name: &str) -> Result<Option<ProviderObject>, CallError> {
    let path = [&PATH[..], &[name, "settings"]].concat();
    let call = client.call(Method::GET, "worker.find", &path);
    let found = client.find::<Settings>(call, MISSING).await?;
    Ok(found.map(|settings| of_tags(name, settings.tags)))
}

/// Deletes a script after its custom domains. Other references to the script do not prevent the deletion.
pub(crate) async fn remove(client: &Client, name: &str) -> Result<(), CallError> {
    let domains = ["workers", "domains"];
    let list = client
        .call(Method::GET, "worker.domains", &domains)
        .query("service", name);
    let mut own = client.fetch::<Vec<Domain>>(list).await?.result;
    own.retain(|domain| domain.service == name);
    for domain in own {
        let path = [&domains[..], &[&domain.id]].concat();
        let call = client.call(Method::DELETE, "worker.remove_domain", &path);
        client.remove(call, DOMAIN_MISSING).await?;
    }
    let call = client.call(
        Method::DELETE,
        "worker.remove",
        &[&PATH[..], &[name]].concat(),
    );
    client.remove(call.query("force", true), MISSING).await
}

/// Lists all scripts. The API returns them in one page.
pub(crate) async fn list(client: &Client) -> Result<Vec<OwnedObject>, CallError> {
    let list = client.call(Method::GET, "worker.list", &PATH);
    let scripts = client.fetch::<Vec<Script>>(list).await?.result;
    let objects = scripts.into_iter().map(|script| OwnedObject {
        provisioned: of_tags(&script.id, script.tags),
        name: script.id,
    });
    Ok(objects.collect())
}
