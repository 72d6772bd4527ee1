//! Forms: texts whose types only the schema tells.

use core_fake_kit::contract::Schemas;
use serde_json::{Map, Value};

use crate::params::{Param, Params};

/// Returns the violations of a schema by the parameters of a request.
pub(super) fn check(schemas: &Schemas, schema: &Value, params: &Params) -> Vec<String> {
    let decoded = object(schemas, schema, params.members());
    let mut violations = unknown(schemas, schema, &decoded, "request");
    violations.extend(schemas.check(schema, &decoded, "request"));
    violations
}

fn object(
    schemas: &Schemas,
    schema: &Value,
    members: &std::collections::BTreeMap<String, Param>,
) -> Value {
    let schema = schemas.resolve(schema);
    let member = |name: &String| match schema["properties"].get(name) {
        Some(schema) => schema.clone(),
        None => schema["additionalProperties"].clone(),
    };
    let decoded = members
        .iter()
        .map(|(name, param)| (name.clone(), value(schemas, &member(name), param)));
    Value::Object(decoded.collect::<Map<_, _>>())
}

/// Returns a parameter as JSON of the type in the schema. A value of another type remains a text.
fn value(schemas: &Schemas, schema: &Value, param: &Param) -> Value {
    let schema = schemas.resolve(schema);
    if let Some(choices) = schema["anyOf"].as_array() {
        let candidates = choices.iter().map(|choice| value(schemas, choice, param));
        let fitting = choices
            .iter()
            .zip(candidates)
            .find(|(choice, candidate)| schemas.check(choice, candidate, "").is_empty());
        return fitting.map_or_else(|| plain(param), |(_, candidate)| candidate);
    }
    match (schema["type"].as_str(), param) {
        (Some("integer" | "number" | "boolean"), Param::Text(text)) => {
            serde_json::from_str(text).unwrap_or_else(|_| plain(param))
        }
        (Some("array"), Param::Members(members)) => members
            .values()
            .map(|element| value(schemas, &schema["items"], element))
            .collect(),
        (Some("object"), Param::Members(members)) => object(schemas, schema, members),
        _ => plain(param),
    }
}

fn plain(param: &Param) -> Value {
    match param {
        Param::Text(text) => Value::from(text.as_str()),
        Param::Members(members) => {
            let members = members.iter().map(|(name, own)| (name.clone(), plain(own)));
            Value::Object(members.collect())
        }
    }
}

/// Returns the members that the schema does not have, at any depth. Stripe refuses them.
fn unknown(schemas: &Schemas, schema: &Value, value: &Value, place: &str) -> Vec<String> {
    let schema = schemas.resolve(schema);
    if let Some(choices) = schema["anyOf"].as_array() {
        let mut found = choices
            .iter()
            .map(|choice| unknown(schemas, choice, value, place));
        let best = found.next();
        return found.fold(best.unwrap_or_default(), |best, next| {
            if next.len() < best.len() { next } else { best }
        });
    }
    match value {
        Value::Array(elements) => elements
            .iter()
            .flat_map(|element| unknown(schemas, &schema["items"], element, place))
            .collect(),
        Value::Object(members) => members
            .iter()
            .flat_map(|(name, member)| {
                let place = format!("{place}/{name}");
                match schema["properties"].get(name) {
                    Some(schema) => unknown(schemas, schema, member, &place),
                    None if schema.get("additionalProperties").is_some() => Vec::new(),
                    None => vec![format!("{place}: there is no such parameter")],
                }
            })
            .collect(),
        _ => Vec::new(),
    }
}
