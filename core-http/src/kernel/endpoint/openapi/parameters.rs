//! The parameters of operations, in paths, queries and headers.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::components::Components;
use crate::kernel::endpoint::definition::Endpoint;
use crate::kernel::endpoint::service_error::ServiceError;
use crate::kernel::request::idempotency_key::KEY_PATTERN;

/// Returns the parameters of an endpoint.
///
/// # Errors
/// [`ServiceError::Schema`] if a schema of the endpoint cannot be compiled.
pub(super) fn of(
    endpoint: &Endpoint,
    components: &mut Components,
) -> Result<Vec<Value>, ServiceError> {
    let mut parameters = in_path(endpoint, components)?;
    parameters.extend(in_query(endpoint)?);
    let headers = endpoint.row.headers.iter();
    parameters.extend(headers.map(|known| {
        parameter(
            known.name,
            "header",
            known.is_required,
            known.schema.clone(),
        )
    }));
    if endpoint.takes_idempotency_keys() {
        parameters.push(header(
            "Idempotency-Key",
            json!({
                "type": "string", "minLength": 1, "maxLength": 255, "pattern": KEY_PATTERN,
                "description": "A key that the client chooses for this request: 1 to 255 visible ASCII characters. A \
                    repeated request with the same key gets the stored response and is not executed again.",
            }),
        ));
    }
    if endpoint.honours_if_match() {
        parameters.push(header(
            "If-Match",
            json!({
                "type": "string",
                "description": "Entity tags, separated by commas. The request is refused if the record has none of \
                    them.",
            }),
        ));
    }
    if endpoint.row.if_none_match {
        parameters.push(header(
            "If-None-Match",
            json!({
                "type": "string",
                "description": "`*` refuses the request if the record already exists.",
            }),
        ));
    }
    Ok(parameters)
}

/// Creates a parameter. The description of its schema becomes that of the parameter.
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

/// Creates an optional header parameter.
fn header(name: &str, schema: Value) -> Value {
    parameter(name, "header", false, schema)
}

/// Returns the path parameters of an endpoint.
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

/// Returns whether an endpoint has a query parameter of this name.
///
/// # Errors
/// [`ServiceError::Schema`] if a schema of the endpoint cannot be compiled.
pub(super) fn takes_query(endpoint: &Endpoint, name: &str) -> Result<bool, ServiceError> {
    let Some(checker) = &endpoint.shapes()?.query else {
        return Ok(false);
    };
    let parameter = checker.schema().pointer(&format!("/properties/{name}"));
    Ok(parameter.is_some())
}

/// Returns the query parameters of an endpoint.
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

/// Moves parameters that are equal in several operations to the components, and replaces them by references.
pub(super) fn share(paths: &mut Map<String, Value>, components: &mut Components) {
    let mut uses: BTreeMap<String, (Value, usize)> = BTreeMap::new();
    for parameter in all_of(paths) {
        let known = uses.entry(parameter.to_string());
        known.or_insert_with(|| (parameter.clone(), 0)).1 += 1;
    }
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    for (text, (parameter, count)) in uses {
        let name = parameter["name"].as_str().unwrap_or_default().to_owned();
        // If the name is already used by another parameter, this one stays in its operations.
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

/// Returns the parameters of all operations.
fn all_of(paths: &mut Map<String, Value>) -> impl Iterator<Item = &mut Value> {
    let operations = paths.values_mut().filter_map(Value::as_object_mut);
    let operations = operations.flat_map(Map::values_mut);
    let parameters = operations.filter_map(|operation| operation.get_mut("parameters"));
    parameters.filter_map(Value::as_array_mut).flatten()
}
