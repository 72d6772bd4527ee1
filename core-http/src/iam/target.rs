//! Redirect targets as a request names them.

use std::ops::Deref;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

use super::bounds::MAX_TARGET;

/// A URL or path from a request. The receiver must check that it is a path of IAM or a URL of a trusted origin.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(super) struct Target(String);

impl From<String> for Target {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl Deref for Target {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl JsonSchema for Target {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Target".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string", "maxLength": MAX_TARGET, "pattern": r"^[^\u0000]*$", "examples": ["/account"]
        })
    }
}
