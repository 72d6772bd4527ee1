//! Sample values generated from schemas: the examples of OpenAPI, and valid values for tests.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// The fields of an object that a sample contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fields {
    /// All fields of the object.
    All,
    /// Only the required fields.
    Required,
}

/// Returns a valid value for a schema: its first example if it has one, otherwise a value that fits its type, format
/// and lengths. `definitions` contains the targets of `$ref` by name.
#[must_use]
pub fn sample_of(schema: &Value, definitions: &Map<String, Value>, fields: Fields) -> Value {
    let sampler = Sampler {
        definitions,
        fields,
    };
    sampler.sample(schema)
}

/// Returns valid values of a command: one with all fields, and one with only the required fields.
#[must_use]
pub fn samples<T: JsonSchema + DeserializeOwned>() -> Vec<T> {
    let settings = SchemaSettings::draft2020_12()
        .for_deserialize()
        .with(|settings| settings.inline_subschemas = true);
    let schema = SchemaGenerator::from(settings).into_root_schema_for::<T>();
    let schema = schema.to_value();
    let definitions = Map::new();
    let both = [Fields::All, Fields::Required];
    let values = both.map(|fields| sample_of(&schema, &definitions, fields));
    let read = values.into_iter().map(serde_json::from_value);
    read.filter_map(Result::ok).collect()
}

struct Sampler<'a> {
    definitions: &'a Map<String, Value>,
    fields: Fields,
}

impl Sampler<'_> {
    fn sample(&self, schema: &Value) -> Value {
        if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
            let name = target.rsplit('/').next().unwrap_or(target);
            let definition = self.definitions.get(name);
            return definition.map_or(Value::Null, |definition| self.sample(definition));
        }
        if let Some(value) = declared_value(schema) {
            return value;
        }
        for choice in ["anyOf", "oneOf"] {
            let branches = schema.get(choice).and_then(Value::as_array);
            let is_value = |branch: &&Value| branch.get("type") != Some(&json!("null"));
            if let Some(branch) = branches.and_then(|all| all.iter().find(is_value)) {
                return self.sample(branch);
            }
        }
        match kind(schema) {
            "string" => string(schema),
            "integer" | "number" => least_or_one(schema),
            "boolean" => json!(true),
            "array" => {
                let items = schema.get("items");
                json!([items.map_or(Value::Null, |items| self.sample(items))])
            }
            "null" => Value::Null,
            _ => self.object(schema),
        }
    }

    fn object(&self, schema: &Value) -> Value {
        let mut object = Map::new();
        let parts = schema.get("allOf").and_then(Value::as_array);
        for part in parts.into_iter().flatten() {
            if let Value::Object(fields) = self.sample(part) {
                object.extend(fields);
            }
        }
        let required = schema.get("required").and_then(Value::as_array);
        let is_required = |name: &str| required.is_some_and(|all| all.iter().any(|n| n == name));
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, property) in properties.into_iter().flatten() {
            if self.fields == Fields::All || is_required(name) {
                object.insert(name.clone(), self.sample(property));
            }
        }
        Value::Object(object)
    }
}

/// Returns a value that the schema itself contains: an example, a constant, a default or the first word of an enum.
fn declared_value(schema: &Value) -> Option<Value> {
    let first = |key: &str| schema.get(key)?.as_array()?.first().cloned();
    let default = || schema.get("default").filter(|value| !value.is_null());
    first("examples")
        .or_else(|| schema.get("const").cloned())
        .or_else(|| default().cloned())
        .or_else(|| first("enum"))
}

/// Returns the smallest number of a schema, or 1 if that is negative or not set.
fn least_or_one(schema: &Value) -> Value {
    let least = schema.get("minimum");
    let least = least.filter(|least| least.as_f64().is_some_and(|least| least >= 0.0));
    least.cloned().unwrap_or_else(|| json!(1))
}

/// Returns the type of the values; the first one that is not `null` if there are several.
fn kind(schema: &Value) -> &str {
    match schema.get("type") {
        Some(Value::String(kind)) => kind,
        Some(Value::Array(kinds)) => {
            let kinds = kinds.iter().filter_map(Value::as_str);
            kinds
                .into_iter()
                .find(|kind| *kind != "null")
                .unwrap_or("null")
        }
        _ => "object",
    }
}

fn string(schema: &Value) -> Value {
    let canned = match schema.get("format").and_then(Value::as_str) {
        Some("uri") => "https://example.org/",
        Some("email") => "ada@example.org",
        Some("date-time") => "2026-01-15T09:30:00.000Z",
        Some("uuid") => "019a5b1e-7c20-7d3e-9b4a-5f6c7d8e9f01",
        _ => "text",
    };
    let length = |key: &str| schema.get(key).and_then(Value::as_u64);
    let at_least = length("minLength").unwrap_or(0).min(1024);
    let at_least = usize::try_from(at_least).unwrap_or(0);
    let mut text = canned.to_owned();
    while text.len() < at_least {
        text.push_str("-text");
    }
    json!(text)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;
    use crate::kernel::{Email, Environment, Slug, Timestamp};

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    struct Command {
        slug: Slug,
        email: Option<Email>,
        #[serde(default = "Environment::prod")]
        environment: Environment,
        at: Vec<Timestamp>,
        #[schemars(length(min = 12))]
        secret: String,
    }

    #[test]
    fn a_command_has_a_sample_with_all_and_one_with_the_required_fields() {
        let [all, required] = samples::<Command>().try_into().unwrap();
        let Command {
            slug,
            email,
            environment,
            at,
            secret,
        } = all;
        assert_eq!((slug.as_str(), environment), ("acme", Environment::Prod));
        assert!(email.is_some() && at.len() == 1 && secret.len() >= 12);
        assert_eq!(required.email, None);
        assert_eq!(required.slug, slug);
    }
}
