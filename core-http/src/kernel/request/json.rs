//! Strict JSON: text that two parsers could read differently is refused.

use std::cell::Cell;
use std::fmt;

use core_domain::kernel::{Code, Error, Result, number_literal};
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// The maximum nesting depth of arrays and objects.
const MAX_DEPTH: usize = 64;

/// The prefix of field names that have a special meaning in `serde_json`. It would later read an object with such a
/// field as another value.
const RESERVED: &str = "$serde_json::private::";

/// Parses a JSON text strictly. Refuses duplicate keys, trailing bytes, NUL characters, nesting deeper than 64, numbers
/// outside the range of a double, and field names that `serde_json` reserves.
///
/// A number that a [`Value`] cannot represent as it was written becomes a [`number_literal`].
///
/// # Errors
/// `MALFORMED_JSON` with the reason and its position.
pub fn parse_strict(bytes: &[u8]) -> Result<Value> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let numbers = WrittenNumbers::of(bytes);
    let strict = Strict {
        depth: 0,
        numbers: &numbers,
    };
    strict
        .deserialize(&mut deserializer)
        .and_then(|value| deserializer.end().map(|()| value))
        .map_err(|error| {
            Error::refused(
                Code::MalformedJson,
                format!("The body is not acceptable JSON: {error}."),
            )
        })
}

/// Visits a JSON text and builds its value.
#[derive(Clone, Copy)]
struct Strict<'t> {
    /// The number of arrays and objects around the current value.
    depth: usize,
    /// The numbers of the text, in the order in which they are visited.
    numbers: &'t WrittenNumbers<'t>,
}

impl Strict<'_> {
    /// Returns the visitor for the content of an array or object.
    fn deeper<E: serde::de::Error>(self) -> std::result::Result<Self, E> {
        if self.depth == MAX_DEPTH {
            return Err(E::custom("nested too deeply"));
        }
        Ok(Self {
            depth: self.depth + 1,
            ..self
        })
    }
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> std::result::Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
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
        self.numbers.next();
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> std::result::Result<Value, E> {
        self.numbers.next();
        Ok(Value::from(value))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> std::result::Result<Value, E> {
        let written = self.numbers.next().unwrap_or_default();
        let number = Number::from_f64(value).ok_or_else(|| E::custom("a number out of range"))?;
        if number.to_string() == written {
            return Ok(Value::Number(number));
        }
        Ok(number_literal(written))
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
            if key.starts_with(RESERVED) {
                return Err(A::Error::custom("a reserved field name"));
            }
            if fields.contains_key(&key) {
                return Err(A::Error::custom("a duplicate field name"));
            }
            let value = map.next_value_seed(inside)?;
            fields.insert(key, value);
        }
        Ok(Value::Object(fields))
    }
}

/// Refuses text with NUL. It is valid JSON, but Postgres cannot store it, and [`number_literal`] uses it as a marker.
fn text<E: serde::de::Error>(text: &str) -> std::result::Result<&str, E> {
    if text.contains('\0') {
        Err(E::custom("a NUL character"))
    } else {
        Ok(text)
    }
}

/// Iterates over the numbers of a JSON text, as written and in the order of the text. For malformed JSON, the numbers
/// before the first error are correct.
struct WrittenNumbers<'t> {
    text: &'t [u8],
    at: Cell<usize>,
}

impl<'t> WrittenNumbers<'t> {
    const fn of(text: &'t [u8]) -> Self {
        Self {
            text,
            at: Cell::new(0),
        }
    }

    /// Returns the next number; `None` after the last one.
    fn next(&self) -> Option<&'t str> {
        let mut at = self.at.get();
        loop {
            match self.text.get(at)? {
                b'"' => at = self.end_of_string(at),
                b'-' | b'0'..=b'9' => break,
                _ => at += 1,
            }
        }
        let rest = self.text.get(at..)?;
        let end = rest.iter().position(|byte| !is_of_number(*byte));
        let number = rest.get(..end.unwrap_or(rest.len()))?;
        self.at.set(at + number.len());
        std::str::from_utf8(number).ok()
    }

    /// Returns the position after the string that starts here.
    fn end_of_string(&self, start: usize) -> usize {
        let mut at = start + 1;
        loop {
            match self.text.get(at) {
                Some(b'\\') => at += 2,
                Some(b'"') | None => return at + 1,
                Some(_) => at += 1,
            }
        }
    }
}

const fn is_of_number(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E')
}

#[cfg(test)]
mod tests {
    use core_domain::kernel::JsonText;

    use super::*;

    #[test]
    fn ambiguous_json_is_refused() {
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
            r#"[{"$serde_json::private::RawValue":"1"}]"#,
            r#"{"a":1,"$serde_json::private::Number":"1"}"#,
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
    fn numbers_keep_their_written_form() {
        let exact = r#"[9007199254740993,18446744073709551615,-9223372036854775808,0.1,7.0]"#;
        let parsed = parse_strict(exact.as_bytes()).unwrap();
        assert_eq!(parsed.to_string(), exact);
        let text = concat!(
            r#"{"-1\"2\\":["3e4",-0,-0.0,1.50,1E2],"a":18446744073709551616,"#,
            r#""b":{"4":0.1234567890123456789012,"c":-9223372036854775809},"d":5}"#,
        );
        for spaced in [text.to_owned(), text.replace(',', " ,\n\t")] {
            let parsed = parse_strict(spaced.as_bytes()).unwrap();
            let kept: JsonText = serde_json::from_value(parsed).unwrap();
            assert_eq!(kept.as_str(), text);
        }
    }
}
