//! Forms some of whose parts are JSON.

use bytes::Bytes;
use core_fake_kit::contract::Schemas;
use serde_json::Value;

use crate::multipart;

/// Checks the parts of a form. For a part that contains JSON, the document gives either an object schema or the schema
/// of its content.
pub(super) fn check_form(
    schemas: &Schemas,
    schema: &Value,
    kind: &str,
    body: &Bytes,
) -> Vec<String> {
    let parts = match multipart::parse(Some(kind), body) {
        Ok(parts) => parts,
        Err(why) => return vec![format!("request: {why}")],
    };
    let schema = schemas.resolve(schema);
    let mut violations = Vec::new();
    for required in schema["required"].as_array().into_iter().flatten() {
        if !parts.iter().any(|part| *required == *part.name) {
            violations.push(format!("request: the part {required} is missing"));
        }
    }
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        let content = schema.get("x-content-schema").unwrap_or(schema);
        let is_json = !matches!(
            schemas.resolve(content)["type"].as_str(),
            Some("string") | None
        ) || schema.get("x-content-schema").is_some();
        for part in parts.iter().filter(|part| part.name == *name && is_json) {
            violations.extend(schemas.check_json(content, &part.body, name));
        }
    }
    violations
}
