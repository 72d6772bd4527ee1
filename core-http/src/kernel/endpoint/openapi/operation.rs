//! Operations: the description of an endpoint in OpenAPI, and the examples of all operations.

use core_domain::access::Requirement;
use core_domain::kernel::{Fields, sample_of};
use serde_json::{Map, Value, json};

use super::components::Components;
use super::{OpenApi, description, parameters, responses};
use crate::kernel::endpoint::definition::Endpoint;
use crate::kernel::endpoint::service_error::ServiceError;
use crate::kernel::request::media_types::JSON;

const FORM: &str = "application/x-www-form-urlencoded";
const MULTIPART: &str = "multipart/form-data";

/// Returns the operation of an endpoint, and adds its schemas to the components.
///
/// # Errors
/// [`ServiceError::Schema`] if a schema of the endpoint cannot be compiled.
pub(super) fn describe(
    endpoint: &Endpoint,
    about: &OpenApi,
    components: &mut Components,
) -> Result<Value, ServiceError> {
    let row = &endpoint.row;
    let mut operation = json!({
        "operationId": row.operation,
        "summary": row.summary,
        "description": description::of_operation(endpoint)?,
        "parameters": parameters::of(endpoint, components)?,
        "responses": responses::of(endpoint, components)?,
        "security": security(endpoint.requirement(), about),
    });
    if !row.tag.is_empty() {
        operation["tags"] = json!([row.tag]);
    }
    if !row.aliases.is_empty() {
        operation["x-aliases"] = json!(row.aliases);
    }
    if let Some(permission) = endpoint.requirement().permission() {
        operation["x-permission"] = json!(permission.as_str());
    }
    if let Some(body) = request_body(endpoint, components)? {
        operation["requestBody"] = body;
    }
    Ok(operation)
}

/// Returns the request body of an endpoint; `None` if it takes none.
fn request_body(
    endpoint: &Endpoint,
    components: &mut Components,
) -> Result<Option<Value>, ServiceError> {
    if endpoint.takes_uploads() {
        let content = upload_content(&endpoint.row.takes);
        return Ok(Some(json!({ "required": true, "content": content })));
    }
    let shapes = endpoint.shapes()?;
    let Some(describe) = shapes.describe_body else {
        return Ok(None);
    };
    let schema = components.input(describe);
    let mut content = json!({ JSON: { "schema": schema } });
    if endpoint.row.takes_forms {
        content[FORM] = json!({ "schema": schema });
    }
    let required = shapes.requires_body();
    Ok(Some(json!({ "required": required, "content": content })))
}

/// Returns the content of an upload: the bytes themselves, or a form with the field `file`.
fn upload_content(content_types: &[&'static str]) -> Value {
    let content = content_types.iter().map(|content_type| {
        let schema = if *content_type == MULTIPART {
            json!({ "schema": { "type": "object", "required": ["file"],
                "properties": { "file": { "type": "string", "format": "binary",
                    "description": "The bytes of the uploaded file." } } } })
        } else {
            json!({ "schema": { "type": "string", "format": "binary" } })
        };
        ((*content_type).to_owned(), schema)
    });
    Value::Object(content.collect())
}

/// Returns the credentials that meet a requirement. Each of them is sufficient alone.
fn security(requirement: Requirement, about: &OpenApi) -> Value {
    let ways: &[&str] = match requirement {
        Requirement::Public => &[],
        Requirement::Session | Requirement::SessionPermission(_) => &["session"],
        Requirement::Operator | Requirement::Person | Requirement::NewOrganization => {
            &["bearer", "session"]
        }
        Requirement::Service => &["bearer"],
        _ => &["bearer", "apiKey", "session"],
    };
    let known = |way: &&&str| **way != "session" || about.session_cookie.is_some();
    let ways = ways.iter().filter(known).map(|way| json!({ *way: [] }));
    ways.collect()
}

/// Adds an example to every JSON body of requests and successes. Examples match their schemas.
pub(super) fn add_examples(paths: &mut Map<String, Value>, schemas: &Map<String, Value>) {
    let operations = paths.values_mut().filter_map(Value::as_object_mut);
    for operation in operations.flat_map(Map::values_mut) {
        if let Some(body) = operation.get_mut("requestBody") {
            add_example(body, schemas);
        }
        let responses = operation
            .get_mut("responses")
            .and_then(Value::as_object_mut);
        for (status, response) in responses.into_iter().flatten() {
            if status.starts_with('2') {
                add_example(response, schemas);
            }
        }
    }
}

fn add_example(described: &mut Value, schemas: &Map<String, Value>) {
    let Some(content) = described.pointer_mut("/content/application~1json") else {
        return;
    };
    let example = sample_of(&content["schema"], schemas, Fields::All);
    content["example"] = example;
}
