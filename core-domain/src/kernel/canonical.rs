//! Canonical JSON: one text for one value, whatever order its fields came in.

use serde_json::Value;

/// The value as JSON text with the fields of every object sorted by name and no white space.
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
    fn the_order_of_fields_makes_no_difference() {
        let text = r#"{"b":[1,{"d":null,"c":"x\"y"}],"a":true}"#;
        let value: Value = serde_json::from_str(text).unwrap();
        assert_eq!(
            canonical_json(&value),
            r#"{"a":true,"b":[1,{"c":"x\"y","d":null}]}"#
        );
        assert_eq!(canonical_json(&json!({})), "{}");
    }
}
