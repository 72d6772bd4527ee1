//! Conversion of OpenAPI 3.0 schemas to JSON schemas.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use jsonschema::{Draft, Validator};
use serde_json::{Map, Value, json};

const REFERENCE: &str = "#/components/schemas/";

/// The treatment of `format` in schemas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Formats {
    /// Texts must have the format of their schema. `binary` is not a format of JSON schemas and is ignored.
    Checked,
    /// All formats are ignored, because the document uses them for more than the formats of JSON schemas.
    Ignored,
}

/// The named schemas of the document, and the validators created so far.
pub struct Schemas {
    /// The unchanged schemas of the document.
    named: Map<String, Value>,
    formats: Formats,
    validators: Mutex<BTreeMap<String, Arc<Validator>>>,
}

impl std::fmt::Debug for Schemas {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = formatter.debug_struct("Schemas");
        shown
            .field("formats", &self.formats)
            .finish_non_exhaustive()
    }
}

impl Schemas {
    pub(super) fn new(named: &Value, formats: Formats) -> Self {
        Self {
            named: named.as_object().cloned().unwrap_or_default(),
            formats,
            validators: Mutex::default(),
        }
    }

    /// Returns the schema that a reference points to, or the schema itself.
    #[must_use]
    pub fn resolve<'a>(&'a self, schema: &'a Value) -> &'a Value {
        match schema["$ref"]
            .as_str()
            .and_then(|reference| self.named.get(reference.strip_prefix(REFERENCE)?))
        {
            Some(named) => self.resolve(named),
            None => schema,
        }
    }

    /// Returns the violations of a schema by a value.
    #[must_use]
    pub fn check(&self, schema: &Value, value: &Value, place: &str) -> Vec<String> {
        match self.validator(schema) {
            Ok(validator) => {
                let errors = validator.iter_errors(value);
                errors
                    .map(|error| format!("{place}{}: {}", error.instance_path(), error.masked()))
                    .collect()
            }
            Err(error) => vec![format!(
                "{place}: the document's schema is invalid: {error}"
            )],
        }
    }

    /// Returns the violations of a schema by a body of JSON.
    #[must_use]
    pub fn check_json(&self, schema: &Value, body: &Bytes, place: &str) -> Vec<String> {
        match serde_json::from_slice(body) {
            Ok(body) => self.check(schema, &body, place),
            Err(error) => vec![format!("{place}: it is no JSON: {error}")],
        }
    }

    /// Returns the violations of a documented response by the body of a response. Only bodies of JSON are checked.
    #[must_use]
    pub fn check_response(&self, response: &Value, kind: &str, body: &Bytes) -> Vec<String> {
        let kind = kind.split(';').next().unwrap_or_default();
        match response["content"].get(kind) {
            None => vec![format!("response: content type {kind:?} is not documented")],
            Some(content) if kind == "application/json" => {
                self.check_json(&content["schema"], body, "response")
            }
            Some(_) => Vec::new(),
        }
    }

    fn validator(&self, schema: &Value) -> Result<Arc<Validator>, String> {
        let mut validators = self
            .validators
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let key = schema.to_string();
        if let Some(validator) = validators.get(&key) {
            return Ok(Arc::clone(validator));
        }
        let options = jsonschema::options()
            .with_draft(Draft::Draft202012)
            .should_validate_formats(true);
        let validator = options
            .build(&self.with_references(schema))
            .map_err(|error| error.to_string())?;
        let validator = Arc::new(validator);
        validators.insert(key, Arc::clone(&validator));
        Ok(validator)
    }

    /// Returns a schema together with all referenced schemas.
    fn with_references(&self, schema: &Value) -> Value {
        let mut open = vec![schema];
        let mut names = BTreeSet::new();
        while let Some(schema) = open.pop() {
            for name in references(schema) {
                if let Some(named) = self.named.get(name)
                    && names.insert(name)
                {
                    open.push(named);
                }
            }
        }
        let named = names
            .into_iter()
            .map(|name| (name.to_owned(), self.translate(&self.named[name])));
        let named: Map<_, _> = named.collect();
        json!({"allOf": [self.translate(schema)], "components": {"schemas": named}})
    }

    /// Translates a schema. `nullable` and the other skipped members exist only in OpenAPI.
    fn translate(&self, schema: &Value) -> Value {
        let Value::Object(members) = schema else {
            return schema.clone();
        };
        let mut translated = Map::new();
        for (name, value) in members {
            let value = match name.as_str() {
                "nullable" | "example" | "discriminator" | "x-content-schema" => continue,
                "format" if self.formats == Formats::Ignored || value == "binary" => continue,
                "properties" => value
                    .as_object()
                    .into_iter()
                    .flatten()
                    .map(|(name, schema)| (name.clone(), self.translate(schema)))
                    .collect(),
                "allOf" | "anyOf" | "oneOf" => value
                    .as_array()
                    .into_iter()
                    .flatten()
                    .map(|schema| self.translate(schema))
                    .collect(),
                "items" | "additionalProperties" | "not" => self.translate(value),
                _ => value.clone(),
            };
            translated.insert(name.clone(), value);
        }
        if members.get("nullable") == Some(&Value::Bool(true)) {
            return json!({"anyOf": [translated, {"type": "null"}]});
        }
        Value::Object(translated)
    }
}

/// Returns the names of all referenced schemas, at any depth.
fn references(schema: &Value) -> Vec<&str> {
    match schema {
        Value::Object(members) => {
            let own = members.get("$ref").and_then(Value::as_str);
            let own = own.and_then(|reference| reference.strip_prefix(REFERENCE));
            own.into_iter()
                .chain(members.values().flat_map(references))
                .collect()
        }
        Value::Array(items) => items.iter().flat_map(references).collect(),
        _ => Vec::new(),
    }
}
