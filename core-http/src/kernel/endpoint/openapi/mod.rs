//! The OpenAPI 3.1 description of a service, from the same rows that answer.

mod about;
mod components;
mod operation;
mod parameters;
mod responses;

use serde_json::{Map, Value, json};

pub(crate) use self::about::OpenApi;
use self::components::Components;
use super::service::ServiceError;
use crate::kernel::endpoint::definition::Endpoint;

/// The whole description. It names no server: its paths are those of the address it was fetched from.
///
/// # Errors
/// [`ServiceError::Component`] when two types share a name.
pub(crate) fn document(about: &OpenApi, endpoints: &[Endpoint]) -> Result<Value, ServiceError> {
    let mut components = Components::new();
    let mut paths = Map::new();
    for endpoint in endpoints {
        let operation = operation::describe(endpoint, about, &mut components)?;
        let path = endpoint.path().replace("{*", "{");
        let methods = paths.entry(path).or_insert_with(|| json!({}));
        methods[endpoint.method().as_str().to_ascii_lowercase()] = operation;
    }
    parameters::share(&mut paths, &mut components);
    let schemas = components.schemas()?;
    operation::add_examples(&mut paths, &schemas);
    Ok(json!({
        "openapi": "3.1.0",
        "info": {
            "title": format!("Platform Control API: {}", about.service),
            "version": env!("CARGO_PKG_VERSION"),
        },
        "tags": tags(endpoints),
        "paths": paths,
        "components": {
            "schemas": schemas,
            "parameters": components.parameters,
            "securitySchemes": security_schemes(about),
        },
    }))
}

fn tags(endpoints: &[Endpoint]) -> Vec<Value> {
    let mut names: Vec<&str> = Vec::new();
    for endpoint in endpoints {
        let tag = endpoint.row.tag;
        if !tag.is_empty() && !names.contains(&tag) {
            names.push(tag);
        }
    }
    names
        .into_iter()
        .map(|name| json!({ "name": name }))
        .collect()
}

fn security_schemes(about: &OpenApi) -> Value {
    let mut schemes = json!({
        "bearer": {
            "type": "http",
            "scheme": "bearer",
            "description": "The token of a session, or the service key.",
        },
        "apiKey": {
            "type": "apiKey",
            "in": "header",
            "name": "x-api-key",
            "description": "A programmatic key, through the gateway.",
        },
    });
    if let Some(name) = about.session_cookie {
        schemes["session"] = json!({
            "type": "apiKey",
            "in": "cookie",
            "name": name,
            "description": "The cookie that sign-in sets.",
        });
    }
    schemes
}
