//! The OpenAPI 3.1 document of a service, generated from the rows that also process its requests.
//!
//! - `about`: the texts about the service as a whole.
//! - `operation`, `description`: an endpoint as an operation, and its text.
//! - `parameters`, `responses`: the parameters, statuses and error codes of operations.
//! - `components`: schemas and parameters that operations share.

mod about;
mod components;
mod description;
mod operation;
mod parameters;
mod responses;

use serde_json::{Map, Value, json};

pub(crate) use self::about::{OpenApi, Tag};
use self::components::Components;
use super::service::ServiceError;
use crate::kernel::endpoint::definition::Endpoint;

/// Creates the document. It names no server, because its paths belong to the address from which it was fetched.
///
/// # Errors
/// - [`ServiceError::Component`] if two types have the same schema name.
/// - [`ServiceError::Schema`] if a schema cannot be compiled.
pub(crate) fn document(about: &OpenApi, endpoints: &[Endpoint]) -> Result<Value, ServiceError> {
    let mut components = Components::new();
    let mut paths = Map::new();
    let mut has_pages = false;
    for endpoint in endpoints {
        has_pages |= parameters::takes_query(endpoint, "cursor")?;
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
            "description": about.description(has_pages),
        },
        "tags": tags(endpoints, about),
        "paths": paths,
        "components": {
            "schemas": schemas,
            "parameters": components.parameters,
            "securitySchemes": security_schemes(about),
        },
    }))
}

/// Returns the tags of the endpoints, in their order, with their descriptions.
fn tags(endpoints: &[Endpoint], about: &OpenApi) -> Vec<Value> {
    let mut names: Vec<&str> = Vec::new();
    for endpoint in endpoints {
        let tag = endpoint.row.tag;
        if !tag.is_empty() && !names.contains(&tag) {
            names.push(tag);
        }
    }
    let tag = |name: &str| match about.tag_description(name) {
        Some(description) => json!({ "name": name, "description": description }),
        None => json!({ "name": name }),
    };
    names.into_iter().map(tag).collect()
}

/// Returns the credentials that the service accepts.
fn security_schemes(about: &OpenApi) -> Value {
    let mut schemes = json!({
        "bearer": {
            "type": "http",
            "scheme": "bearer",
            "description": "A session token, or the service key. Services other than IAM accept \
                session tokens only through the gateway.",
        },
        "apiKey": {
            "type": "apiKey",
            "in": "header",
            "name": "x-api-key",
            "description": "The API key of a person or an organization. Services other than IAM \
                accept it only through the gateway.",
        },
    });
    if let Some(name) = about.session_cookie {
        schemes["session"] = json!({
            "type": "apiKey",
            "in": "cookie",
            "name": name,
            "description": "The session cookie, which sign-in sets.",
        });
    }
    schemes
}
