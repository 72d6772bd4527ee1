//! The bindings and variables of a project.

use core_domain::port::{ObjectRequest, ProviderError};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::project::OWNER;
use crate::binding::{Binding, BindingTarget, Vars};
use crate::bound::resolve;
use crate::client::Client;

/// The settings of a project in [`core_domain::port::ObjectRequest::config`].
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PagesConfig {
    #[serde(default)]
    bindings: Vec<Binding>,
    #[serde(default)]
    vars: Vars,
}

/// Returns the settings of an environment in the form of the API, without the owner mark. Returns an empty map if
/// nothing is requested.
pub(crate) async fn environment(
    client: &Client,
    request: &ObjectRequest,
) -> Result<Map<String, Value>, ProviderError> {
    let refused = |problem| ProviderError::Permanent(format!("the project's settings: {problem}"));
    let config: PagesConfig = serde_json::from_value(request.config.clone())
        .map_err(|error| refused(error.to_string()))?;
    if config.vars.contains_key(OWNER) {
        let message = format!("the variable name {OWNER} is reserved for the owner of the project");
        return Err(refused(message));
    }
    let mut settings = Map::new();
    for (name, bound_to) in resolve(client, &config.bindings, &request.owner).await? {
        let (field, value) = setting(&bound_to);
        settings.entry(field).or_insert_with(|| json!({}))[name] = value;
    }
    for (name, text) in config.vars {
        let variable = json!({ "type": "plain_text", "value": text });
        settings.entry("env_vars").or_insert_with(|| json!({}))[name] = variable;
    }
    Ok(settings)
}

/// Returns the field of the binding type, and the reference to the object in it.
fn setting(bound_to: &BindingTarget) -> (&'static str, Value) {
    match bound_to {
        BindingTarget::Kv { id } => ("kv_namespaces", json!({ "namespace_id": id })),
        BindingTarget::D1 { id } => ("d1_databases", json!({ "id": id })),
        BindingTarget::R2 { bucket } => ("r2_buckets", json!({ "name": bucket })),
        BindingTarget::Queue { queue } => ("queue_producers", json!({ "name": queue })),
        BindingTarget::Worker { service } => ("services", json!({ "service": service })),
    }
}
