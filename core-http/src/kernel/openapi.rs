//! The OpenAPI 3.1 description of a service, from the same rows that answer.

use core_domain::kernel::Code;
use http::StatusCode;
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::endpoint::Describe;
use super::{Access, Endpoint, status_of};

const FORM: &str = "multipart/form-data";

/// The whole description. It names no server: its paths are those of the address it was fetched from.
pub(super) fn document(service: &str, endpoints: &[Endpoint]) -> Value {
    let settings = || {
        SchemaSettings::draft2020_12().with(|s| {
            s.definitions_path = "/components/schemas".into();
            s.meta_schema = None;
        })
    };
    let mut inputs = settings().for_deserialize().into_generator();
    let mut outputs = settings().for_serialize().into_generator();
    let mut paths = Map::new();
    for endpoint in endpoints {
        for (number, path) in endpoint.paths().enumerate() {
            let operation = operation(endpoint, path, number, &mut inputs, &mut outputs);
            let methods = paths
                .entry(path.replace("{*", "{"))
                .or_insert_with(|| json!({}));
            methods[endpoint.method().as_str().to_ascii_lowercase()] = operation;
        }
    }
    let mut schemas = outputs.take_definitions(true);
    schemas.extend(inputs.take_definitions(true));
    schemas.insert("Error".into(), error_schema());
    json!({
        "openapi": "3.1.0",
        "info": { "title": format!("Platform Control API: {service}"), "version": env!("CARGO_PKG_VERSION") },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "bearer": { "type": "http", "scheme": "bearer" },
                "session": { "type": "apiKey", "in": "cookie", "name": "better-auth.session_token" },
            },
        },
    })
}

fn operation(
    endpoint: &Endpoint,
    path: &str,
    number: usize,
    inputs: &mut SchemaGenerator,
    outputs: &mut SchemaGenerator,
) -> Value {
    let row = &endpoint.row;
    let id = if number == 0 {
        row.operation.to_owned()
    } else {
        format!("{}Alias{number}", row.operation)
    };
    let mut operation = json!({
        "operationId": id,
        "summary": row.summary,
        "parameters": parameters(endpoint, path),
        "responses": responses(endpoint, outputs),
        "security": security(row.access),
    });
    if let Some(describe) = endpoint.shapes.describe_body {
        let schema = described(describe, inputs);
        operation["requestBody"] =
            json!({ "content": { "application/json": { "schema": schema } } });
    } else if endpoint.takes_uploads() {
        operation["requestBody"] = json!({ "required": true, "content": upload(&row.takes) });
    }
    operation
}

/// Bytes as they are; in a form they are its field `file`.
fn upload(content_types: &[&'static str]) -> Value {
    let content = content_types.iter().map(|content_type| {
        let schema = if *content_type == FORM {
            json!({ "schema": { "type": "object", "required": ["file"],
                "properties": { "file": { "type": "string", "format": "binary" } } } })
        } else {
            json!({ "schema": { "type": "string", "format": "binary" } })
        };
        ((*content_type).to_owned(), schema)
    });
    Value::Object(content.collect())
}

fn described(describe: Describe, generator: &mut SchemaGenerator) -> Value {
    describe(generator).to_value()
}

fn security(access: Access) -> Value {
    match access {
        Access::Public => json!([]),
        Access::Session => json!([{ "session": [] }]),
        Access::Signed => json!([{ "bearer": [] }, { "session": [] }]),
        Access::Operator | Access::Service => json!([{ "bearer": [] }]),
    }
}

fn parameters(endpoint: &Endpoint, path: &str) -> Vec<Value> {
    let in_path = path.split('/').filter_map(|segment| {
        let name = segment
            .strip_prefix('{')?
            .trim_start_matches('*')
            .strip_suffix('}')?;
        Some(
            json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }),
        )
    });
    let mut parameters: Vec<Value> = in_path.collect();
    if let Some(checker) = &endpoint.shapes.query {
        let schema = checker.schema();
        let required = schema.get("required").and_then(Value::as_array);
        for (name, property) in schema
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            let needed = required.is_some_and(|all| all.iter().any(|n| n == name));
            parameters.push(
                json!({ "name": name, "in": "query", "required": needed, "schema": property }),
            );
        }
    }
    for (name, schema) in &endpoint.row.headers {
        parameters
            .push(json!({ "name": name, "in": "header", "required": false, "schema": schema }));
    }
    if endpoint.method() != http::Method::GET {
        parameters.push(
            json!({ "name": "Idempotency-Key", "in": "header", "required": false,
            "schema": { "type": "string", "minLength": 1, "maxLength": 255 } }),
        );
    }
    parameters
}

fn responses(endpoint: &Endpoint, outputs: &mut SchemaGenerator) -> Value {
    let mut responses = Map::new();
    for status in &endpoint.row.success {
        responses.insert(
            status.as_str().to_owned(),
            success(endpoint, *status, outputs),
        );
    }
    for code in codes(endpoint) {
        let entry = responses.entry(status_of(code).as_str()).or_insert_with(|| {
            json!({ "description": "", "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Error" } } } })
        });
        let known = entry["description"].as_str().unwrap_or_default().to_owned();
        let text = if known.is_empty() {
            code.to_string()
        } else {
            format!("{known}, {code}")
        };
        entry["description"] = text.into();
    }
    Value::Object(responses)
}

fn success(endpoint: &Endpoint, status: StatusCode, outputs: &mut SchemaGenerator) -> Value {
    let description = status.canonical_reason().unwrap_or("Success");
    match endpoint.shapes.describe_reply {
        Some(describe) if status != StatusCode::NO_CONTENT => {
            let schema = described(describe, outputs);
            json!({ "description": description, "content": { "application/json": { "schema": schema } } })
        }
        _ => json!({ "description": description }),
    }
}

/// What the row can refuse with: its own codes and those that follow from its shape.
fn codes(endpoint: &Endpoint) -> Vec<Code> {
    let row = &endpoint.row;
    let mut codes = row.refuses.clone();
    let checks_query = endpoint.shapes.query.is_some();
    if endpoint.shapes.body.is_some() {
        codes.extend([
            Code::MalformedJson,
            Code::PayloadTooLarge,
            Code::UnsupportedMediaType,
        ]);
    }
    if checks_query || endpoint.shapes.body.is_some() {
        codes.push(Code::ValidationError);
    }
    if endpoint.shapes.params > 0 {
        codes.push(Code::NotFound);
    }
    if row.access != Access::Public {
        codes.push(Code::Unauthorized);
    }
    if matches!(row.access, Access::Operator | Access::Service) {
        codes.push(Code::Forbidden);
    }
    if row.method != http::Method::GET {
        codes.push(Code::IdempotencyKeyReused);
        if !endpoint.takes_uploads() {
            codes.push(Code::IdempotencyInProgress);
        }
    }
    codes.push(Code::InternalError);
    codes.sort_unstable();
    codes.dedup();
    codes
}

fn error_schema() -> Value {
    json!({
        "type": "object",
        "required": ["error"],
        "properties": { "error": {
            "type": "object",
            "required": ["code", "message", "requestId"],
            "properties": {
                "code": { "type": "string" },
                "message": { "type": "string" },
                "requestId": { "type": "string" },
                "details": { "type": "object" },
            },
        } },
    })
}
