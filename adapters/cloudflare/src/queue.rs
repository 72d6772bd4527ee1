//! Queues and their consumers.

use core_domain::port::{OwnedObject, ProviderObject};
use http::Method;
use serde::Deserialize;
use serde_json::json;

use crate::client::Client;
use crate::error::CallError;
use crate::paging::{first_match, numbered_page};

/// The error code if a queue with this name exists.
pub(crate) const DUPLICATE: u32 = 11_009;

/// The error code if the queue or the consumer does not exist.
const MISSING: u32 = 11_000;

const PATH: [&str; 1] = ["queues"];

#[derive(Deserialize)]
struct Queue {
    queue_id: String,
    queue_name: String,
}

#[derive(Deserialize)]
struct Consumer {
    consumer_id: String,
}

impl From<Queue> for ProviderObject {
    fn from(queue: Queue) -> Self {
        Self {
            id: queue.queue_id,
            url: None,
            owner: None,
        }
    }
}

pub(crate) async fn find(client: &Client, name: &str) -> Result<Option<ProviderObject>, CallError> {
    let list = client
        .call(Method::GET, "queue.find", &PATH)
        .query("name", name);
    let found = first_match::<Queue>(client, &list, |queue| queue.queue_name == name).await?;
    Ok(found.map(ProviderObject::from))
}

pub(crate) async fn create(client: &Client, name: &str) -> Result<ProviderObject, CallError> {
    let call = client.call(Method::POST, "queue.create", &PATH);
    let made = client
        .fetch::<Queue>(call.json(&json!({ "queue_name": name })))
        .await?;
    Ok(made.result.into())
}

/// Deletes a queue after detaching its consumers.
pub(crate) async fn remove(client: &Client, id: &str) -> Result<(), CallError> {
    let path = [&PATH[..], &[id, "consumers"]].concat();
    let list = client.call(Method::GET, "queue.consumers", &path);
    let consumers = client.find::<Vec<Consumer>>(list, MISSING).await?;
    for consumer in consumers.unwrap_or_default() {
        let path = [&path[..], &[&consumer.consumer_id]].concat();
        let call = client.call(Method::DELETE, "queue.detach", &path);
        client.remove(call, MISSING).await?;
    }
    let call = client.call(Method::DELETE, "queue.remove", &[&PATH[..], &[id]].concat());
    client.remove(call, MISSING).await
}

pub(crate) async fn list(
    client: &Client,
    cursor: Option<&str>,
) -> Result<(Vec<OwnedObject>, Option<String>), CallError> {
    let list = client.call(Method::GET, "queue.list", &PATH);
    let (page, next) = numbered_page::<Queue>(client, list, cursor).await?;
    let objects = page.into_iter().map(|queue| OwnedObject {
        name: queue.queue_name.clone(),
        provisioned: queue.into(),
    });
    Ok((objects.collect(), next))
}
