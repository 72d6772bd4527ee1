//! KV namespaces.

use core_domain::port::{OwnedObject, ProviderObject};
use http::Method;
use serde::Deserialize;
use serde_json::json;

use crate::client::Client;
use crate::error::CallError;
use crate::paging::{first_match, numbered_page};

/// The error code if a namespace with this title exists.
pub(crate) const DUPLICATE: u32 = 10_014;

/// The error code if the namespace does not exist.
const MISSING: u32 = 10_013;

const PATH: [&str; 3] = ["storage", "kv", "namespaces"];

#[derive(Deserialize)]
struct Namespace {
    id: String,
    title: String,
}

impl From<Namespace> for ProviderObject {
    fn from(namespace: Namespace) -> Self {
        Self {
            id: namespace.id,
            url: None,
            owner: None,
        }
    }
}

/// Finds a namespace by its title. The API has no filter for titles, so this reads the pages of the list until the
/// title appears.
pub(crate) async fn find(client: &Client, name: &str) -> Result<Option<ProviderObject>, CallError> {
    let list = client
        .call(Method::GET, "kv.find", &PATH)
        .query("per_page", 100);
    let found = first_match::<Namespace>(client, &list, |namespace| namespace.title == name);
    Ok(found.await?.map(ProviderObject::from))
}

pub(crate) async fn create(client: &Client, name: &str) -> Result<ProviderObject, CallError> {
    let call = client.call(Method::POST, "kv.create", &PATH);
    let made = client
        .fetch::<Namespace>(call.json(&json!({ "title": name })))
        .await?;
    Ok(made.result.into())
}

pub(crate) async fn remove(client: &Client, id: &str) -> Result<(), CallError> {
    let path = [&PATH[..], &[id]].concat();
    let call = client.call(Method::DELETE, "kv.remove", &path);
    client.remove(call, MISSING).await
}

pub(crate) async fn list(
    client: &Client,
    cursor: Option<&str>,
) -> Result<(Vec<OwnedObject>, Option<String>), CallError> {
    let list = client
        .call(Method::GET, "kv.list", &PATH)
        .query("per_page", 100);
    let (page, next) = numbered_page::<Namespace>(client, list, cursor).await?;
    let objects = page.into_iter().map(|namespace| OwnedObject {
        name: namespace.title.clone(),
        provisioned: namespace.into(),
    });
    Ok((objects.collect(), next))
}
