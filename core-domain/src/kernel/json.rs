//! JSON values that are stored as text.

use std::borrow::Cow;
use std::ops::Deref;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::TextError;

/// The only field of the object that stands for a number in a [`Value`]; see [`number_literal`]. JSON from outside
/// cannot contain this name, because text with a NUL character is rejected.
const NUMBER_FIELD: &str = "\0number";

/// The JSON text before such a number.
const NUMBER_PREFIX: &str = r#"{"\u0000number":""#;
/// The JSON text after such a number.
const NUMBER_SUFFIX: &str = r#""}"#;

/// Returns an object that stands for a number which a [`Value`] would print differently, because it has more digits
/// than a double or an exponent. A [`JsonText`] that is deserialized from the value contains the number exactly as
/// written.
#[must_use]
pub fn number_literal(number: &str) -> Value {
    json!({ NUMBER_FIELD: number })
}

/// Returns the text of a number that [`number_literal`] created; `None` for every other value.
#[must_use]
pub fn number_literal_text(value: &Value) -> Option<&str> {
    let fields = value.as_object().filter(|fields| fields.len() == 1)?;
    fields.get(NUMBER_FIELD)?.as_str()
}

/// A JSON value as text. It is stored and returned exactly as written, without being parsed in between. Two values are
/// equal if their texts are equal. If it is deserialized from a [`Value`], the fields of objects are sorted by name.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct JsonText(Box<RawValue>);

impl<'de> Deserialize<'de> for JsonText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <Box<RawValue>>::deserialize(deserializer)?;
        if !text.get().contains(NUMBER_PREFIX) {
            return Ok(Self(text));
        }
        let plain = RawValue::from_string(with_numbers(text.get()));
        plain.map(Self).map_err(serde::de::Error::custom)
    }
}

/// Returns the text with the objects of [`number_literal`] replaced by their numbers.
fn with_numbers(text: &str) -> String {
    let mut parts = text.split(NUMBER_PREFIX);
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (number, rest) = part.split_once(NUMBER_SUFFIX).unwrap_or((part, ""));
        plain.push_str(number);
        plain.push_str(rest);
    }
    plain
}

impl Default for JsonText {
    fn default() -> Self {
        Self(RawValue::NULL.to_owned())
    }
}

impl JsonText {
    /// Serializes a value to compact JSON text; fields keep their order. Returns `null` if the value cannot be JSON,
    /// such as a map whose keys are not strings.
    #[must_use]
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Self {
        to_raw_value(value).map_or_else(|_| Self::default(), Self)
    }

    /// Returns the JSON text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// Parses the text. Numbers of more than 64 bits become the nearest double.
    #[must_use]
    pub fn value(&self) -> Value {
        // The constructors check that the text is JSON.
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

/// A JSON value of at most `MAX` bytes, for free-form values of requests.
///
/// The schema states the limit with the keyword `x-maxBytes`, because JSON Schema has no keyword that limits values of
/// any type.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct BoundedJson<const MAX: usize>(JsonText);

impl<const MAX: usize> BoundedJson<MAX> {
    /// Creates the value after checking its size.
    ///
    /// # Errors
    /// [`TextError::TooLong`] if the value has more than `MAX` bytes.
    pub fn new(value: JsonText) -> Result<Self, TextError> {
        if value.as_str().len() > MAX {
            return Err(TextError::TooLong);
        }
        Ok(Self(value))
    }

    /// Returns an object without fields.
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

/// Returns the value as JSON text without white space. The fields of every object are sorted by name.
#[must_use]
pub fn canonical_json(value: &Value) -> String {
    let mut text = String::new();
    write(value, &mut text);
    text
}

fn write(value: &Value, text: &mut String) {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_unstable_by_key(|(name, _)| *name);
            text.push('{');
            for (position, (name, field)) in fields.into_iter().enumerate() {
                if position > 0 {
                    text.push(',');
                }
                text.push_str(&Value::from(name.as_str()).to_string());
                text.push(':');
                write(field, text);
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for (position, item) in items.iter().enumerate() {
                if position > 0 {
                    text.push(',');
                }
                write(item, text);
            }
            text.push(']');
        }
        scalar => text.push_str(&scalar.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_text_is_kept_exactly_as_written() {
        let text = r#"{"b":[1,{"d":null,"c":"x\"y"}],"a":12345678901234567890}"#;
        let read: JsonText = serde_json::from_str(text).unwrap();
        assert_eq!(read.as_str(), text);
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
        assert_eq!(read, JsonText::of(&read));
        assert_eq!(read.value()["b"][1]["c"], json!("x\"y"));
        assert_eq!(serde_json::to_value(&read).unwrap(), read.value());
    }

    #[test]
    fn numbers_that_a_value_cannot_represent_are_kept_as_written() {
        let number = number_literal;
        let value = json!({ "b": [number("1e2"), 1, "x"], "a": { "c": number("-0"), "d": number("0.10") } });
        let read: JsonText = serde_json::from_value(value.clone()).unwrap();
        let text = r#"{"a":{"c":-0,"d":0.10},"b":[1e2,1,"x"]}"#;
        assert_eq!(read.as_str(), text);
        assert_eq!(
            serde_json::from_value::<JsonText>(number("1.50"))
                .unwrap()
                .as_str(),
            "1.50"
        );
        // This also works for borrowed values. A string that contains such an object remains a string.
        assert_eq!(JsonText::deserialize(&value).unwrap(), read);
        let lookalike = json!({ "a": "{\"\\u0000number\":\"1\"}" });
        let read: JsonText = serde_json::from_value(lookalike.clone()).unwrap();
        assert_eq!(read.value(), lookalike);
        assert!(serde_json::from_value::<JsonText>(number("one")).is_err());
    }

    #[test]
    fn values_that_are_not_json_become_null_or_are_refused() {
        let no_json = std::collections::BTreeMap::from([((1, 2), 3)]);
        assert_eq!(JsonText::of(&no_json).as_str(), "null");
        assert!(serde_json::from_str::<JsonText>("{").is_err());
    }

    #[test]
    fn a_value_above_its_limit_is_refused_and_one_at_the_limit_is_kept_as_written() {
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

    #[test]
    fn canonical_json_does_not_depend_on_the_order_of_fields() {
        let text = r#"{"b":[1,{"d":null,"c":"x\"y"}],"a":true}"#;
        let value: Value = serde_json::from_str(text).unwrap();
        assert_eq!(
            canonical_json(&value),
            r#"{"a":true,"b":[1,{"c":"x\"y","d":null}]}"#
        );
        assert_eq!(canonical_json(&json!({})), "{}");
    }
}
