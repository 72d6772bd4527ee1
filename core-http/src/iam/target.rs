//! Where a browser is to go on to, as a request says it.

use std::ops::Deref;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

use super::bounds::MAX_TARGET;

/// An address or a path as it was sent: whoever uses it asks first whether it is ours.
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
