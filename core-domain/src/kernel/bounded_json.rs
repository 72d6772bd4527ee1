//! JSON of a bounded size.

use std::borrow::Cow;
use std::ops::Deref;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};

use super::{JsonText, TextError};

/// A JSON value of at most `MAX` bytes, written without white space: for free-form values of requests.
///
/// Its schema says so by the keyword `x-maxBytes`: no keyword of JSON Schema bounds a value of any type.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct BoundedJson<const MAX: usize>(JsonText);

impl<const MAX: usize> BoundedJson<MAX> {
    /// Checks the size of a value and takes it.
    ///
    /// # Errors
    /// [`TextError::TooLong`] for a value of more than `MAX` bytes.
    pub fn new(value: JsonText) -> Result<Self, TextError> {
        if value.as_str().len() > MAX {
            return Err(TextError::TooLong);
        }
        Ok(Self(value))
    }

    /// Returns the object without fields.
    #[must_use]
    pub fn empty_object() -> Self {
        Self(JsonText::of(&serde_json::json!({})))
    }
}

impl<const MAX: usize> From<BoundedJson<MAX>> for JsonText {
    fn from(bounded: BoundedJson<MAX>) -> Self {
        bounded.0
    }
}

impl<const MAX: usize> Deref for BoundedJson<MAX> {
    type Target = JsonText;

    fn deref(&self) -> &JsonText {
        &self.0
    }
}

impl<'de, const MAX: usize> Deserialize<'de> for BoundedJson<MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = JsonText::deserialize(deserializer)?;
        Self::new(value).map_err(serde::de::Error::custom)
    }
}

impl<const MAX: usize> JsonSchema for BoundedJson<MAX> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("JsonUpTo{MAX}Bytes").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "x-maxBytes": MAX })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_beyond_its_bound_is_refused_and_one_at_it_is_kept_as_it_came() {
        let text = r#"{"a":1e2}"#;
        let at_bound: BoundedJson<9> = serde_json::from_str(text).unwrap();
        assert_eq!(at_bound.as_str(), text);
        assert!(serde_json::from_str::<BoundedJson<8>>(text).is_err());
        assert_eq!(
            BoundedJson::<1>::new(JsonText::of(&json!("a"))),
            Err(TextError::TooLong)
        );
        assert_eq!(BoundedJson::<2>::empty_object().as_str(), "{}");
        assert_eq!(BoundedJson::<0>::default().as_str(), "null");
    }
}
