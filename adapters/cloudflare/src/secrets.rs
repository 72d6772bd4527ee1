//! Secrets of workers and projects.

use core_domain::kernel::Secret;
use core_domain::port::{ProviderError, ResourceRef, SetSecrets};
use core_domain::registry::ResourceType;
use http::Method;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::client::Client;
use crate::error::CallError;
use crate::ownership::ensure_owned;
use crate::pages::project::{self, OWNER, in_both};
use crate::worker::script;

/// The error code if the latest version of the worker is not the deployed one.
const NOT_DEPLOYED: u32 = 10_215;

#[derive(Deserialize)]
struct SecretName {
    name: String,
}

#[derive(Deserialize)]
struct Versions {
    items: Vec<Version>,
}

#[derive(Deserialize)]
struct Version {
    id: String,
}

/// Returns the new value of each secret by name; `null` deletes a secret.
fn changes(request: &SetSecrets, encode: impl Fn(&str, &Secret) -> Value) -> Map<String, Value> {
    let set = request.secrets.iter();
    let set = set.map(|(name, value)| (name.clone(), encode(name, value)));
    let deleted = request
        .deleted
        .iter()
        .map(|name| (name.clone(), Value::Null));
    set.chain(deleted).collect()
}

/// Changes all secrets with one call, so either all or none are changed.
pub(crate) async fn set(client: &Client, request: &SetSecrets) -> Result<(), ProviderError> {
    let (name, owner) = (&request.resource.name, &request.owner);
    let found = match request.resource.resource_type {
        ResourceType::Worker => script::find(client, name).await?,
        ResourceType::Pages => project::find(client, name).await?,
        _ => return Err(without_secrets(&request.resource)),
    };
    let missing = || ProviderError::Permanent(format!("{name} does not exist"));
    ensure_owned(found.ok_or_else(missing)?, name, owner)?;
    if request.secrets.is_empty() && request.deleted.is_empty() {
        return Ok(());
    }
    match request.resource.resource_type {
        ResourceType::Pages => set_of_project(client, request).await,
        _ => Ok(set_of_worker(client, request).await?),
    }
}

fn without_secrets(resource: &ResourceRef) -> ProviderError {
    ProviderError::Permanent(format!("{} has no secrets", resource.resource_type))
}

fn path<'a>(name: &'a str, rest: &'a str) -> [&'a str; 4] {
    ["workers", "scripts", name, rest]
}

/// Sets the secrets of a worker as one new version.
async fn set_of_worker(client: &Client, request: &SetSecrets) -> Result<(), CallError> {
    let name = request.resource.name.as_str();
    let secrets = changes(
        request,
        |name, value| json!({ "name": name, "text": value.expose(), "type": "secret_text" }),
    );
    let call = client.call(
        Method::PATCH,
        "worker.set_secrets",
        &path(name, "secrets-bulk"),
    );
    let body = json!({ "secrets": secrets }).to_string();
    let call = call
        .body("application/merge-patch+json", body)
        .confidential();
    match client.run(call.clone()).await {
        Err(error) if error.has(NOT_DEPLOYED) => {
            deploy_latest(client, name).await?;
            client.run(call).await
        }
        outcome => outcome,
    }
}

/// Deploys the newest version of a worker, which was uploaded without a deployment.
async fn deploy_latest(client: &Client, name: &str) -> Result<(), CallError> {
    let list = client.call(Method::GET, "worker.versions", &path(name, "versions"));
    let versions = client.fetch::<Versions>(list).await?.result;
    let Some(latest) = versions.items.first() else {
        return Ok(());
    };
    let call = client.call(Method::POST, "worker.deploy", &path(name, "deployments"));
    let whole = json!([{ "version_id": latest.id, "percentage": 100 }]);
    let body = json!({ "strategy": "percentage", "versions": whole });
    client.run(call.json(&body)).await
}

/// Sets the secrets of both environments of a project. They take effect with the next deployment.
async fn set_of_project(client: &Client, request: &SetSecrets) -> Result<(), ProviderError> {
    let set = request.secrets.iter().map(|(name, _)| name);
    if set.chain(&request.deleted).any(|name| name == OWNER) {
        let message = format!("the secret name {OWNER} is reserved for the owner of the project");
        return Err(ProviderError::Permanent(message));
    }
    let secrets = changes(
        request,
        |_, value| json!({ "type": "secret_text", "value": value.expose() }),
    );
    let settings = Map::from_iter([("env_vars".to_owned(), secrets.into())]);
    let body = json!({ "deployment_configs": in_both(&settings) });
    let path = [&project::PATH[..], &[&request.resource.name]].concat();
    let call = client.call(Method::PATCH, "pages.set_secrets", &path);
    Ok(client.run(call.json(&body).confidential()).await?)
}

/// Returns the names of the secrets in alphabetical order. Returns an empty list if the object does not exist.
pub(crate) async fn names(
    client: &Client,
    resource: &ResourceRef,
) -> Result<Vec<String>, ProviderError> {
    let name = resource.name.as_str();
    match resource.resource_type {
        ResourceType::Worker => {
            let list = client.call(Method::GET, "worker.secrets", &path(name, "secrets"));
            let secrets = client
                .find::<Vec<SecretName>>(list, script::MISSING)
                .await?;
            let names = secrets.unwrap_or_default().into_iter();
            let mut names: Vec<_> = names.map(|secret| secret.name).collect();
            names.sort_unstable();
            Ok(names)
        }
        ResourceType::Pages => {
            let project = project::read(client, name).await?;
            Ok(project.map_or_else(Vec::new, |project| project.secret_names()))
        }
        _ => Err(without_secrets(resource)),
    }
}
