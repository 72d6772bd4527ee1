//! What several operations share: schemas and parameters, by name.

use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::kernel::answer::reply::Describe;
use crate::kernel::endpoint::service::ServiceError;

/// The name of the schema of an error.
pub(super) const ERROR: &str = "Error";

/// The name of the schema of an error with `code` and `message` beside the envelope.
pub(super) const ERROR_WITH_CODE: &str = "ErrorWithCode";

/// The name of the schema of an error without details.
pub(super) const ERROR_WITHOUT_DETAILS: &str = "ErrorWithoutDetails";

/// The name of the schema of an error for OAuth clients, which send forms.
pub(super) const ERROR_OF_OAUTH: &str = "ErrorOfOAuth";

/// The components of a description while it is being written.
pub(super) struct Components {
    inputs: SchemaGenerator,
    outputs: SchemaGenerator,
    pub(super) parameters: Map<String, Value>,
}

fn settings() -> SchemaSettings {
    SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    })
}

impl Components {
    pub(super) fn new() -> Self {
        Self {
            inputs: settings().for_deserialize().into_generator(),
            outputs: settings().for_serialize().into_generator(),
            parameters: Map::new(),
        }
    }

    /// The schema of what a request brings.
    pub(super) fn input(&mut self, describe: Describe) -> Value {
        describe(&mut self.inputs).to_value()
    }

    /// The schemas of path parameters.
    pub(super) fn params(
        &mut self,
        describe: fn(&mut SchemaGenerator) -> Vec<Schema>,
    ) -> Vec<Value> {
        let schemas = describe(&mut self.inputs);
        schemas.into_iter().map(Schema::to_value).collect()
    }

    /// The schema of what is answered.
    pub(super) fn output(&mut self, describe: Describe) -> Value {
        describe(&mut self.outputs).to_value()
    }

    /// Every schema, by name.
    ///
    /// # Errors
    /// [`ServiceError::Component`] when two types share a name, or one looks different coming in and going out.
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
        // The generator tells types of one name apart by a number behind it.
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

fn error() -> Value {
    json!({
        "type": "object",
        "required": ["error"],
        "properties": { "error": {
            "type": "object",
            "required": ["code", "message", "requestId", "details"],
            "properties": {
                "code": { "type": "string", "description": "What went wrong, for programs." },
                "message": { "type": "string", "description": "What went wrong, for people." },
                "requestId": { "type": "string", "description": "The request, as logs and audit name it." },
                "details": { "type": "object", "description": "What else is known, by code." },
            },
        } },
    })
}

fn error_with_code() -> Value {
    let mut schema = error();
    schema["required"] = json!(["error", "code", "message"]);
    schema["properties"]["code"] = json!({ "type": "string" });
    schema["properties"]["message"] = json!({ "type": "string" });
    schema
}

fn error_without_details() -> Value {
    let mut schema = error();
    let envelope = &mut schema["properties"]["error"];
    envelope["required"] = json!(["code", "message", "requestId"]);
    if let Some(properties) = envelope["properties"].as_object_mut() {
        properties.remove("details");
    }
    schema
}

fn error_of_oauth() -> Value {
    json!({
        "type": "object",
        "description": "Of a request that was a form (RFC 6749, section 5.2).",
        "required": ["error"],
        "properties": {
            "error": { "type": "string", "description": "What went wrong, for programs." },
            "error_description": { "type": "string", "description": "What went wrong, for people." },
        },
    })
}
