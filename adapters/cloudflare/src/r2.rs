//! R2 buckets. The name of a bucket is its id.

use core_domain::port::{OwnedObject, ProviderError, ProviderObject};
use futures_util::{StreamExt, TryStreamExt, stream};
use http::Method;
use serde::Deserialize;
use serde_json::json;
use tokio::time::Instant;

use crate::client::{ApiResponse, Client};
use crate::error::CallError;

/// The error code if a bucket with this name exists.
pub(crate) const DUPLICATE: u32 = 10_004;

/// The error code if the bucket does not exist.
const MISSING: u32 = 10_006;

/// The error code if the object does not exist.
const OBJECT_MISSING: u32 = 10_007;

/// The error code if the bucket contains objects.
const NOT_EMPTY: u32 = 10_008;

/// Maximum number of objects that are deleted at the same time.
const AT_A_TIME: usize = 8;

const PATH: [&str; 2] = ["r2", "buckets"];

#[derive(Deserialize)]
struct Bucket {
    name: String,
}

#[derive(Deserialize)]
struct Buckets {
    buckets: Vec<Bucket>,
}

#[derive(Deserialize)]
struct Object {
    key: String,
}

impl From<Bucket> for ProviderObject {
    fn from(bucket: Bucket) -> Self {
        Self {
            id: bucket.name,
            url: None,
            owner: None,
        }
    }
}

pub(crate) async fn find(client: &Client, name: &str) -> Result<Option<ProviderObject>, CallError> {
    let call = client.call(Method::GET, "r2.find", &[&PATH[..], &[name]].concat());
    let found = client.find::<Bucket>(call, MISSING).await?;
    Ok(found.map(ProviderObject::from))
}

pub(crate) async fn create(client: &Client, name: &str) -> Result<ProviderObject, CallError> {
    let call = client.call(Method::POST, "r2.create", &PATH);
    client.run(call.json(&json!({ "name": name }))).await?;
    Ok(provider_object(name))
}

fn provider_object(name: &str) -> ProviderObject {
    Bucket {
        name: name.to_owned(),
    }
    .into()
}

/// Time to wait in seconds if a bucket is not empty but its list is. The list can be outdated, or parts of unfinished
/// uploads are left.
const LIST_DELAY: u64 = 30;

/// Deletes a bucket and all its objects. A large bucket takes longer than one call may take. Then the call returns
/// [`ProviderError::Unfinished`], and the next call continues.
pub(crate) async fn remove(client: &Client, name: &str) -> Result<(), ProviderError> {
    let until = Instant::now() + client.options().emptying_time;
    loop {
        let call = client.call(Method::DELETE, "r2.remove", &[&PATH[..], &[name]].concat());
        match client.remove(call, MISSING).await {
            Err(error) if error.has(NOT_EMPTY) => {}
            outcome => return Ok(outcome?),
        }
        match empty(client, name, until).await? {
            EmptyOutcome::Page => {}
            EmptyOutcome::OutOfTime => return Err(ProviderError::Unfinished),
            EmptyOutcome::NothingListed => {
                return Err(ProviderError::Throttled {
                    retry_after_seconds: LIST_DELAY,
                });
            }
        }
    }
}

/// The result of deleting the first page of objects.
enum EmptyOutcome {
    /// All objects of the page were deleted.
    Page,
    OutOfTime,
    NothingListed,
}

/// Deletes the objects of the first page.
async fn empty(client: &Client, name: &str, until: Instant) -> Result<EmptyOutcome, CallError> {
    let path = [&PATH[..], &[name, "objects"]].concat();
    let list = client
        .call(Method::GET, "r2.objects", &path)
        .query("per_page", 100);
    let objects = client.fetch::<Vec<Object>>(list).await?.result;
    if objects.is_empty() {
        return Ok(EmptyOutcome::NothingListed);
    }
    let deletions =
        stream::iter(objects).map(|object| async move { delete(client, name, &object.key).await });
    let mut deletions = deletions.buffer_unordered(AT_A_TIME);
    while deletions.try_next().await?.is_some() {
        if Instant::now() >= until {
            return Ok(EmptyOutcome::OutOfTime);
        }
    }
    Ok(EmptyOutcome::Page)
}

async fn delete(client: &Client, name: &str, key: &str) -> Result<(), CallError> {
    let path = [&PATH[..], &[name, "objects", key]].concat();
    let call = client.call(Method::DELETE, "r2.delete", &path);
    client.remove(call, OBJECT_MISSING).await
}

pub(crate) async fn list(
    client: &Client,
    cursor: Option<&str>,
) -> Result<(Vec<OwnedObject>, Option<String>), CallError> {
    let mut list = client
        .call(Method::GET, "r2.list", &PATH)
        .query("per_page", 1_000);
    if let Some(cursor) = cursor {
        list = list.query("cursor", cursor);
    }
    let ApiResponse { result, info } = client.fetch::<Buckets>(list).await?;
    let objects = result.buckets.into_iter().map(|bucket| OwnedObject {
        name: bucket.name.clone(),
        provisioned: bucket.into(),
    });
    Ok((
        objects.collect(),
        info.cursor.filter(|cursor| !cursor.is_empty()),
    ))
}
