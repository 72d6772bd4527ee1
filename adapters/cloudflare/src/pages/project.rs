//! Pages projects: creation, lookup, settings and deletion.

use std::collections::BTreeMap;

use core_domain::port::{OwnedObject, ProviderObject};
use core_domain::registry::PRODUCTION;
use http::Method;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::client::Client;
use crate::error::CallError;
use crate::ownership::owner_from_mark;
use crate::paging::numbered_page;

/// The error code if a project with this name exists.
pub(crate) const DUPLICATE: u32 = 8_000_002;

/// The error code if the project does not exist.
pub(crate) const MISSING: u32 = 8_000_007;

/// The variable of a project that contains its owner.
pub(crate) const OWNER: &str = "CORE_OWNER";

pub(crate) const PATH: [&str; 2] = ["pages", "projects"];

/// The required fields of a project.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Project {
    id: String,
    name: String,
    subdomain: Option<String>,
    #[serde(default)]
    deployment_configs: Configs,
    /// The live production deployment.
    canonical_deployment: Option<LiveDeployment>,
}

#[derive(Clone, Debug, Deserialize)]
struct LiveDeployment {
    id: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct Configs {
    #[serde(default)]
    production: Config,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct Config {
    env_vars: Option<BTreeMap<String, Option<Variable>>>,
}

#[derive(Clone, Debug, Deserialize)]
struct Variable {
    #[serde(rename = "type")]
    kind: String,
    value: Option<String>,
}

impl Project {
    fn variables(&self) -> impl Iterator<Item = (&String, &Variable)> {
        let variables = self.deployment_configs.production.env_vars.iter().flatten();
        variables.filter_map(|(name, variable)| Some((name, variable.as_ref()?)))
    }

    fn owner(&self) -> Option<&str> {
        let mark = self
            .variables()
            .find(|(name, variable)| *name == OWNER && variable.kind == "plain_text");
        mark.and_then(|(_, variable)| variable.value.as_deref())
    }

    /// Returns the names of the secrets in alphabetical order.
    pub(crate) fn secret_names(&self) -> Vec<String> {
        let secrets = self
            .variables()
            .filter(|(_, variable)| variable.kind == "secret_text");
        secrets.map(|(name, _)| name.clone()).collect()
    }

    /// Returns the host name at which the provider serves the project.
    pub(crate) fn subdomain(&self) -> Option<&str> {
        self.subdomain.as_deref()
    }
}

impl From<Project> for ProviderObject {
    /// Converts a project. The API can choose a subdomain that differs from the name, so only the returned subdomain is
    /// used.
    fn from(project: Project) -> Self {
        Self {
            owner: owner_from_mark(project.owner()),
            url: project
                .subdomain
                .map(|subdomain| format!("https://{subdomain}")),
            id: project.id,
        }
    }
}

pub(crate) async fn read(client: &Client, name: &str) -> Result<Option<Project>, CallError> {
    let call = client.call(Method::GET, "pages.find", &[&PATH[..], &[name]].concat());
    client.find::<Project>(call, MISSING).await
}

/// Returns the id of the live production deployment; `None` if the project or the deployment does not exist.
pub(crate) async fn live_deployment(
    client: &Client,
    name: &str,
) -> Result<Option<String>, CallError> {
    let project = read(client, name).await?;
    let deployment = project.and_then(|project| project.canonical_deployment);
    Ok(deployment.map(|deployment| deployment.id))
}

pub(crate) async fn find(client: &Client, name: &str) -> Result<Option<ProviderObject>, CallError> {
    Ok(read(client, name).await?.map(ProviderObject::from))
}

/// Returns the same settings for both environments.
pub(crate) fn in_both(settings: &Map<String, Value>) -> Value {
    json!({ "production": settings, "preview": settings })
}

pub(crate) async fn create(
    client: &Client,
    name: &str,
    owner: &str,
    mut settings: Map<String, Value>,
) -> Result<ProviderObject, CallError> {
    let mark = json!({ "type": "plain_text", "value": owner });
    settings.entry("env_vars").or_insert_with(|| json!({}))[OWNER] = mark;
    let body = json!({
        "name": name,
        "production_branch": PRODUCTION,
        "deployment_configs": in_both(&settings),
    });
    let call = client.call(Method::POST, "pages.create", &PATH);
    Ok(client
        .fetch::<Project>(call.json(&body))
        .await?
        .result
        .into())
}

/// Changes these settings of a project and keeps all others. They take effect with the next deployment.
pub(crate) async fn configure(
    client: &Client,
    name: &str,
    settings: &Map<String, Value>,
) -> Result<(), CallError> {
    let call = client.call(
        Method::PATCH,
        "pages.configure",
        &[&PATH[..], &[name]].concat(),
    );
    let body = json!({ "deployment_configs": in_both(settings) });
    client.run(call.json(&body)).await
}

/// Deletes a project and its deployments. Its hostnames must be removed first.
pub(crate) async fn remove(client: &Client, name: &str) -> Result<(), CallError> {
    let call = client.call(
        Method::DELETE,
        "pages.remove",
        &[&PATH[..], &[name]].concat(),
    );
    client.remove(call, MISSING).await
}

pub(crate) async fn list(
    client: &Client,
    cursor: Option<&str>,
) -> Result<(Vec<OwnedObject>, Option<String>), CallError> {
    let list = client.call(Method::GET, "pages.list", &PATH);
    let (page, next) = numbered_page::<Project>(client, list, cursor).await?;
    let objects = page.into_iter().map(|project| OwnedObject {
        name: project.name.clone(),
        provisioned: project.into(),
    });
    Ok((objects.collect(), next))
}
