//! Parameters of operations: in paths, queries and headers.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::components::Components;
use crate::kernel::admission::idempotency::KEY_PATTERN;
use crate::kernel::endpoint::definition::Endpoint;
use crate::kernel::endpoint::service::ServiceError;

pub(super) fn of(
    endpoint: &Endpoint,
    components: &mut Components,
) -> Result<Vec<Value>, ServiceError> {
    let mut parameters = in_path(endpoint, components)?;
    parameters.extend(in_query(endpoint)?);
    let headers = endpoint.row.headers.iter();
    parameters.extend(headers.map(|(name, schema)| header(name, schema.clone())));
    if endpoint.takes_idempotency_keys() {
        parameters.push(header(
            "Idempotency-Key",
            json!({
                "type": "string", "minLength": 1, "maxLength": 255, "pattern": KEY_PATTERN,
                "description": "The same key with the same request is the same change, and gets the same answer.",
            }),
        ));
    }
    if endpoint.obeys_if_match() {
        parameters.push(header(
            "If-Match",
            json!({ "type": "string", "description": "Only while the record has this entity tag." }),
        ));
    }
    if endpoint.row.if_none_match {
        parameters.push(header(
            "If-None-Match",
            json!({ "type": "string", "description": "`*`: only when there is no such record yet." }),
        ));
    }
    Ok(parameters)
}

/// The description of a schema is its parameter's.
fn parameter(name: &str, place: &str, required: bool, mut schema: Value) -> Value {
    let fields = schema.as_object_mut();
    let description = fields.and_then(|fields| fields.remove("description"));
    let mut parameter =
        json!({ "name": name, "in": place, "required": required, "schema": schema });
    if let Some(description) = description {
        parameter["description"] = description;
    }
    parameter
}

fn header(name: &str, schema: Value) -> Value {
    parameter(name, "header", false, schema)
}

fn in_path(endpoint: &Endpoint, components: &mut Components) -> Result<Vec<Value>, ServiceError> {
    let schemas = components.params(endpoint.shapes()?.describe_params);
    let name = |segment: &'static str| {
        let inner = segment.strip_prefix('{')?.strip_suffix('}')?;
        Some(inner.trim_start_matches('*'))
    };
    let names = endpoint.path().split('/').filter_map(name);
    let parameters = names.zip(schemas);
    Ok(parameters
        .map(|(name, schema)| parameter(name, "path", true, schema))
        .collect())
}

fn in_query(endpoint: &Endpoint) -> Result<Vec<Value>, ServiceError> {
    let Some(checker) = &endpoint.shapes()?.query else {
        return Ok(Vec::new());
    };
    let schema = checker.schema();
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &String| required.is_some_and(|all| all.iter().any(|n| n == name));
    let properties = schema.get("properties").and_then(Value::as_object);
    let properties = properties.into_iter().flatten();
    Ok(properties
        .map(|(name, schema)| parameter(name, "query", is_required(name), schema.clone()))
        .collect())
}

/// Puts parameters that several operations have alike among the components.
pub(super) fn share(paths: &mut Map<String, Value>, components: &mut Components) {
    let mut uses: BTreeMap<String, (Value, usize)> = BTreeMap::new();
    for parameter in all_of(paths) {
        let known = uses.entry(parameter.to_string());
        known.or_insert_with(|| (parameter.clone(), 0)).1 += 1;
    }
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    for (text, (parameter, count)) in uses {
        let name = parameter["name"].as_str().unwrap_or_default().to_owned();
        // What goes by a name that is taken stays where it is used.
        if count > 1 && !components.parameters.contains_key(&name) {
            components.parameters.insert(name.clone(), parameter);
            names.insert(text, name);
        }
    }
    for parameter in all_of(paths) {
        if let Some(name) = names.get(&parameter.to_string()) {
            *parameter = json!({ "$ref": format!("#/components/parameters/{name}") });
        }
    }
}

fn all_of(paths: &mut Map<String, Value>) -> impl Iterator<Item = &mut Value> {
    let operations = paths.values_mut().filter_map(Value::as_object_mut);
    let operations = operations.flat_map(Map::values_mut);
    let parameters = operations.filter_map(|operation| operation.get_mut("parameters"));
    parameters.filter_map(Value::as_array_mut).flatten()
}
