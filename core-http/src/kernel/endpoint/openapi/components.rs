//! The components of a document: schemas and parameters that several operations share, by name.

use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::kernel::answer::reply::SchemaFn;
use crate::kernel::endpoint::service_error::ServiceError;
use crate::kernel::request::check::IntegerRanges;

/// The name of the schema of the error envelope.
pub(super) const ERROR: &str = "Error";

/// The name of the schema of an error with `code` and `message` also at the top level.
pub(super) const ERROR_WITH_CODE: &str = "ErrorWithCode";

/// The name of the schema of an error without details.
pub(super) const ERROR_WITHOUT_DETAILS: &str = "ErrorWithoutDetails";

/// The name of the schema of an OAuth error, for clients that send forms.
pub(super) const ERROR_OF_OAUTH: &str = "ErrorOfOAuth";

/// The components of a document that is being generated.
pub(super) struct Components {
    inputs: SchemaGenerator,
    outputs: SchemaGenerator,
    pub(super) parameters: Map<String, Value>,
}

/// Returns the generator settings for both directions.
fn settings() -> SchemaSettings {
    let settings = SchemaSettings::draft2020_12().with_transform(IntegerRanges);
    settings.with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    })
}

impl Components {
    /// Creates empty components.
    pub(super) fn new() -> Self {
        Self {
            inputs: settings().for_deserialize().into_generator(),
            outputs: settings().for_serialize().into_generator(),
            parameters: Map::new(),
        }
    }

    /// Adds the schema of a type in requests, and returns it.
    pub(super) fn input(&mut self, describe: SchemaFn) -> Value {
        describe(&mut self.inputs).to_value()
    }

    /// Adds the schemas of path parameters, and returns them.
    pub(super) fn params(
        &mut self,
        describe: fn(&mut SchemaGenerator) -> Vec<Schema>,
    ) -> Vec<Value> {
        let schemas = describe(&mut self.inputs);
        schemas.into_iter().map(Schema::to_value).collect()
    }

    /// Adds the schema of a type in responses, and returns it.
    pub(super) fn output(&mut self, describe: SchemaFn) -> Value {
        describe(&mut self.outputs).to_value()
    }

    /// Returns all schemas by name.
    ///
    /// # Errors
    /// [`ServiceError::Component`] if two types have the same name, or if a type has different schemas in requests and
    /// in responses.
    pub(super) fn schemas(&mut self) -> Result<Map<String, Value>, ServiceError> {
        let mut schemas = Map::new();
        let inputs = self.inputs.take_definitions(true);
        let outputs = self.outputs.take_definitions(true);
        for (name, schema) in inputs.into_iter().chain(outputs) {
            let known = schemas.insert(name.clone(), schema.clone());
            if known.is_some_and(|known| known != schema) {
                return Err(ServiceError::Component(name));
            }
        }
        // The generator appends a number to the name of a second type with the same name.
        let is_second = |name: &&String| {
            let bare = name.trim_end_matches(|c: char| c.is_ascii_digit());
            bare.len() < name.len() && schemas.contains_key(bare)
        };
        if let Some(second) = schemas.keys().find(is_second) {
            return Err(ServiceError::Component(second.clone()));
        }
        schemas.insert(ERROR.into(), error());
        schemas.insert(ERROR_WITH_CODE.into(), error_with_code());
        schemas.insert(ERROR_WITHOUT_DETAILS.into(), error_without_details());
        schemas.insert(ERROR_OF_OAUTH.into(), error_of_oauth());
        Ok(schemas)
    }
}

/// Returns the schema of the error envelope.
fn error() -> Value {
    json!({
        "type": "object",
        "required": ["error"],
        "properties": { "error": {
            "type": "object",
            "description": "The error, with its code and message.",
            "required": ["code", "message", "requestId", "details"],
            "properties": {
                "code": {
                    "type": "string",
                    "description": "The error code, for programs. Its meaning never changes.",
                },
                "message": {
                    "type": "string",
                    "description": "The error message, for people. It can change at any time.",
                },
                "requestId": {
                    "type": "string",
                    "description": "The id of the request, which logs and audit entries also contain.",
                },
                "details": {
                    "type": "object",
                    "description": "Further data about the error; its fields depend on the code.",
                },
            },
        } },
    })
}

/// Returns the schema of an error for clients of better-auth.
fn error_with_code() -> Value {
    let mut schema = error();
    schema["required"] = json!(["error", "code", "message"]);
    let code = "The error code, as in `error.code`.";
    let message = "The error message, as in `error.message`.";
    schema["properties"]["code"] = json!({ "type": "string", "description": code });
    schema["properties"]["message"] = json!({ "type": "string", "description": message });
    schema
}

/// Returns the schema of the error envelope without `details`.
fn error_without_details() -> Value {
    let mut schema = error();
    let envelope = &mut schema["properties"]["error"];
    envelope["required"] = json!(["code", "message", "requestId"]);
    if let Some(properties) = envelope["properties"].as_object_mut() {
        properties.remove("details");
    }
    schema
}

/// Returns the schema of an OAuth error.
fn error_of_oauth() -> Value {
    json!({
        "type": "object",
        "description": "The error response to a request with a form (RFC 6749, section 5.2).",
        "required": ["error"],
        "properties": {
            "error": { "type": "string", "description": "The error code of OAuth, for programs." },
            "error_description": { "type": "string", "description": "The error message, for people." },
        },
    })
}
