//! D1 databases.

use core_domain::port::{OwnedObject, ProviderObject};
use http::Method;
use serde::Deserialize;
use serde_json::json;

use crate::client::Client;
use crate::error::CallError;
use crate::paging::{first_match, numbered_page};

/// The error code if a database with this name exists.
pub(crate) const DUPLICATE: u32 = 7_502;

/// The error code if the database does not exist.
const MISSING: u32 = 7_404;

const PATH: [&str; 2] = ["d1", "database"];

#[derive(Deserialize)]
struct Database {
    uuid: String,
    name: String,
}

impl From<Database> for ProviderObject {
    fn from(database: Database) -> Self {
        Self {
            id: database.uuid,
            url: None,
            owner: None,
        }
    }
}

/// Finds a database by its exact name. The API also returns longer names that contain the text.
pub(crate) async fn find(client: &Client, name: &str) -> Result<Option<ProviderObject>, CallError> {
    let list = client.call(Method::GET, "d1.find", &PATH);
    let list = list.query("name", name).query("per_page", 100);
    let found = first_match::<Database>(client, &list, |database| database.name == name).await?;
    Ok(found.map(ProviderObject::from))
}

pub(crate) async fn create(client: &Client, name: &str) -> Result<ProviderObject, CallError> {
    let call = client.call(Method::POST, "d1.create", &PATH);
    let made = client
        .fetch::<Database>(call.json(&json!({ "name": name })))
        .await?;
    Ok(made.result.into())
}

pub(crate) async fn remove(client: &Client, id: &str) -> Result<(), CallError> {
    let path = [&PATH[..], &[id]].concat();
    let call = client.call(Method::DELETE, "d1.remove", &path);
    client.remove(call, MISSING).await
}

pub(crate) async fn list(
    client: &Client,
    cursor: Option<&str>,
) -> Result<(Vec<OwnedObject>, Option<String>), CallError> {
    let list = client
        .call(Method::GET, "d1.list", &PATH)
        .query("per_page", 100);
    let (page, next) = numbered_page::<Database>(client, list, cursor).await?;
    let objects = page.into_iter().map(|database| OwnedObject {
        name: database.name.clone(),
        provisioned: database.into(),
    });
    Ok((objects.collect(), next))
}
