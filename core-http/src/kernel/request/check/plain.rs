//! Rewrites numbers in the notation that Rust types can be deserialized from.

use std::collections::BTreeMap;

use core_domain::kernel::number_literal_text;
use serde_json::{Number, Value};

use super::decimal::Decimal;
use super::schema::{Schema, Subschema, Type, Types};

/// Rewrites the numbers of a value wherever the schema expects a number: whole numbers as integers, others as the
/// nearest double.
pub(super) fn normalize_numbers(schema: &Schema, value: &mut Value) {
    let speller = Speller {
        definitions: &schema.definitions,
    };
    speller.visit(schema, value);
}

/// Walks through a value together with its schema.
#[derive(Clone, Copy)]
struct Speller<'s> {
    definitions: &'s BTreeMap<String, Subschema>,
}

impl Speller<'_> {
    fn visit(self, schema: &Schema, value: &mut Value) {
        let number = schema.types.as_ref().and_then(|types| spell(value, types));
        if let Some(number) = number {
            *value = Value::Number(number);
            return;
        }
        match value {
            Value::Array(items) => {
                for (position, item) in items.iter_mut().enumerate() {
                    let schema = schema.prefix_items.get(position).unwrap_or(&schema.items);
                    self.visit_by(schema, item);
                }
            }
            Value::Object(fields) => {
                for (name, field) in fields {
                    let known = schema.properties.get(name);
                    self.visit_by(known.unwrap_or(&schema.additional_properties), field);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        let alternatives = [&schema.any_of, &schema.one_of];
        let alternatives = alternatives.into_iter().flatten().flatten();
        for branch in schema.all_of.iter().chain(alternatives) {
            self.visit_by(branch, value);
        }
        let referred = schema.reference.as_ref();
        if let Some(schema) = referred.and_then(|name| self.definitions.get(name)) {
            self.visit_by(schema, value);
        }
    }

    fn visit_by(self, schema: &Subschema, value: &mut Value) {
        if let Some(schema) = &schema.0 {
            self.visit(schema, value);
        }
    }
}

/// Returns a number in the notation of its types; `None` if it already has it, or if the value is not a number.
fn spell(value: &Value, types: &Types) -> Option<Number> {
    let written = match value {
        Value::Number(number) if number.is_f64() => None,
        other => Some(number_literal_text(other)?),
    };
    if types.include(Type::Integer)
        && let Some(integer) = Decimal::of(value)?.to_integer()
    {
        return Some(integer);
    }
    let double = written?.parse().ok().and_then(Number::from_f64);
    double.filter(|_| types.include(Type::Number))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Checker;
    use crate::kernel::parse_strict;

    #[test]
    fn typed_numbers_are_rewritten_and_free_form_values_are_unchanged() {
        let integer = json!({ "type": "integer" });
        let schema = json!({
            "type": "object",
            "properties": {
                "n": { "type": ["integer", "null"] }, "d": { "type": "number" },
                "list": { "type": "array", "prefixItems": [{ "type": "string" }], "items": integer },
                "choice": { "anyOf": [{ "type": "null" }, integer] },
                "named": { "$ref": "#/$defs/N" }, "all": { "allOf": [{ "type": "object", "additionalProperties": integer }] },
                "free": true,
            },
            "$defs": { "N": integer },
        });
        let text = r#"{"n":1e2,"d":1.50,"list":["1e2",2.0,-0],"choice":30e-1,"named":7.0,"all":{"a":1E1},"free":{"n":1e2}}"#;
        let checker = Checker::of_schema(schema).unwrap();
        let mut value = parse_strict(text.as_bytes()).unwrap();
        assert_eq!(checker.issues(&value).len(), 0);
        checker.respell_numbers(&mut value);
        let free = value["free"].take();
        assert_eq!(
            value.to_string(),
            r#"{"all":{"a":10},"choice":3,"d":1.5,"free":null,"list":["1e2",2,0],"n":100,"named":7}"#
        );
        assert_eq!(free, parse_strict(br#"{"n":1e2}"#).unwrap());
    }
}
