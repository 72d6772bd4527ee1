//! Strict JSON: what two readers could understand differently is refused.

use std::fmt;

use core_domain::kernel::{Code, Error, Result};
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// How deep arrays and objects may be nested.
const MAX_DEPTH: usize = 64;

/// Reads one JSON text. Refuses duplicate keys, trailing bytes, NUL characters and nesting deeper than 64.
///
/// Integers of 64 bits are kept exactly; other numbers become the nearest double.
///
/// # Errors
/// `MALFORMED_JSON` says what is wrong with it.
pub fn parse_strict(bytes: &[u8]) -> Result<Value> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    Strict { depth: 0 }
        .deserialize(&mut deserializer)
        .and_then(|value| deserializer.end().map(|()| value))
        .map_err(|error| {
            Error::refused(
                Code::MalformedJson,
                format!("The body is not acceptable JSON: {error}."),
            )
        })
}

#[derive(Clone, Copy)]
struct Strict {
    depth: usize,
}

impl Strict {
    fn deeper<E: serde::de::Error>(self) -> std::result::Result<Self, E> {
        if self.depth == MAX_DEPTH {
            return Err(E::custom("nested too deep"));
        }
        Ok(Self {
            depth: self.depth + 1,
        })
    }
}

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> std::result::Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> std::result::Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> std::result::Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> std::result::Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> std::result::Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> std::result::Result<Value, E> {
        Number::from_f64(value)
            .map(Value::Number)
            .ok_or_else(|| E::custom("a number out of range"))
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> std::result::Result<Value, E> {
        text(value).map(|text| Value::String(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> std::result::Result<Value, A::Error> {
        let inside = self.deeper()?;
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(inside)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Value, A::Error> {
        let inside = self.deeper()?;
        let mut fields = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            text::<A::Error>(&key)?;
            if fields.contains_key(&key) {
                return Err(A::Error::custom("a key is there twice"));
            }
            let value = map.next_value_seed(inside)?;
            fields.insert(key, value);
        }
        Ok(Value::Object(fields))
    }
}

/// A NUL is valid JSON, but no store keeps it in text.
fn text<E: serde::de::Error>(text: &str) -> std::result::Result<&str, E> {
    if text.contains('\0') {
        Err(E::custom("a NUL character"))
    } else {
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ambiguous_is_refused() {
        let deep = format!("{}{}", "[".repeat(65), "]".repeat(65));
        for bad in [
            "",
            "{",
            "{} x",
            r#"{"a":1,"a":2}"#,
            r#"{"a":{"b":1,"b":1}}"#,
            r#""\u0000""#,
            r#""\ud800""#,
            "NaN",
            "1e999",
            &deep,
        ] {
            let error = parse_strict(bad.as_bytes()).unwrap_err();
            assert_eq!(error.code(), Code::MalformedJson, "{bad}");
        }
        assert!(parse_strict(b"\xff").is_err());
        let as_deep_as_allowed = format!("{}{}", "[".repeat(64), "]".repeat(64));
        assert!(parse_strict(as_deep_as_allowed.as_bytes()).is_ok());
    }

    #[test]
    fn integers_of_64_bits_are_kept_exactly() {
        let text = r#"[9007199254740993,18446744073709551615,-9223372036854775808,0.1]"#;
        assert_eq!(parse_strict(text.as_bytes()).unwrap().to_string(), text);
    }
}
