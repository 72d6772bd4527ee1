//! JSON that is kept as text.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

/// A JSON value as text: written and shown as it is, and never taken apart on the way. Two are equal when their texts are.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JsonText(Box<RawValue>);

impl JsonText {
    /// The value as text, compact, fields in the order in which it has them; `null` for what is no JSON, such as a map
    /// whose keys are no text.
    #[must_use]
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Self {
        Self(to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned()))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// The value, taken apart.
    #[must_use]
    pub fn value(&self) -> Value {
        // It was checked to be JSON when it was made.
        serde_json::from_str(self.as_str()).unwrap_or_default()
    }
}

impl PartialEq for JsonText {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for JsonText {}

impl JsonSchema for JsonText {
    fn inline_schema() -> bool {
        Value::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        Value::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Value::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_read_is_what_was_written() {
        let text = r#"{"b":[1,{"d":null,"c":"x\"y"}],"a":12345678901234567890}"#;
        let read: JsonText = serde_json::from_str(text).unwrap();
        assert_eq!(read.as_str(), text);
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
        assert_eq!(read, JsonText::of(&read));
        assert_eq!(read.value()["b"][1]["c"], json!("x\"y"));
        assert_eq!(serde_json::to_value(&read).unwrap(), read.value());
    }

    #[test]
    fn what_is_no_json_is_null_or_refused() {
        let no_json = std::collections::BTreeMap::from([((1, 2), 3)]);
        assert_eq!(JsonText::of(&no_json).as_str(), "null");
        assert!(serde_json::from_str::<JsonText>("{").is_err());
    }
}
