//! Validates a value by a compiled schema.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashSet};

use core_domain::kernel::{JsonText, number_literal_text};
use serde::Deserialize;
use serde_json::{Map, Number, Value};

use super::decimal::{Decimal, are_equal, canonical_text};
use super::schema::{Schema, Subschema, Type, Types};
use super::violation::{Kind, Location, Violation, Violations};

/// Returns the violations of a schema by a value, at most `most`.
pub(super) fn violations<'s>(schema: &'s Schema, value: &Value, most: usize) -> Vec<Violation<'s>> {
    let validator = Validator {
        definitions: &schema.definitions,
    };
    let mut found = Violations::up_to(most);
    validator.validate(schema, value, Location::Root, &mut found);
    found.violations
}

/// Walks through a value together with its schema.
#[derive(Clone, Copy)]
struct Validator<'s> {
    definitions: &'s BTreeMap<String, Subschema>,
}

impl<'s> Validator<'s> {
    fn validate(
        self,
        schema: &'s Schema,
        value: &Value,
        at: Location<'_>,
        found: &mut Violations<'s>,
    ) {
        if found.is_full() {
            return;
        }
        found.unless(!schema.never, at, Kind::Never);
        if let Some(types) = &schema.types {
            found.unless(is_of_types(value, types), at, Kind::Type);
        }
        if let Some(wanted) = &schema.constant {
            found.unless(are_equal(wanted, value), at, Kind::Const(wanted));
        }
        if let Some(words) = &schema.words {
            let is_word = words.iter().any(|word| are_equal(word, value));
            found.unless(is_word, at, Kind::Enum(words));
        }
        if let Some(most) = schema.max_bytes {
            found.unless(json_bytes(value) <= most, at, Kind::MaxBytes(most));
        }
        match value {
            Value::Number(_) => validate_number(schema, value, at, found),
            written if number_literal_text(written).is_some() => {
                validate_number(schema, written, at, found);
            }
            Value::String(text) => validate_text(schema, text, at, found),
            Value::Array(items) => self.validate_items(schema, items, at, found),
            Value::Object(fields) => self.validate_fields(schema, fields, at, found),
            Value::Null | Value::Bool(_) => {}
        }
        for branch in &schema.all_of {
            self.validate_by(branch, value, at, found);
        }
        if let Some(branches) = &schema.any_of
            && !branches.iter().any(|branch| self.fits(branch, value))
        {
            self.add_no_branch(branches, value, at, found);
        }
        if let Some(branches) = &schema.one_of {
            match branches.iter().filter(|b| self.fits(b, value)).count() {
                0 => self.add_no_branch(branches, value, at, found),
                1 => {}
                _ => found.add(at, Kind::SeveralBranches),
            }
        }
        let referred = schema.reference.as_ref();
        if let Some(schema) = referred.and_then(|name| self.definitions.get(name)) {
            self.validate_by(schema, value, at, found);
        }
    }

    fn validate_by(
        self,
        schema: &'s Subschema,
        value: &Value,
        at: Location<'_>,
        found: &mut Violations<'s>,
    ) {
        if let Some(schema) = &schema.0 {
            self.validate(schema, value, at, found);
        }
    }

    /// Returns whether the value matches the schema.
    fn fits(self, schema: &'s Subschema, value: &Value) -> bool {
        let mut found = Violations::up_to(0);
        self.validate_by(schema, value, Location::Root, &mut found);
        !found.any
    }

    /// Adds the violation that no branch matches, with the violations of each branch.
    fn add_no_branch(
        self,
        branches: &'s [Subschema],
        value: &Value,
        at: Location<'_>,
        found: &mut Violations<'s>,
    ) {
        let against = branches.iter().map(|branch| {
            let mut against = Violations::up_to(found.most);
            self.validate_by(branch, value, at, &mut against);
            against.violations
        });
        let against = against.collect();
        found.add(at, Kind::NoBranch(against));
    }

    fn validate_items(
        self,
        schema: &'s Schema,
        items: &[Value],
        at: Location<'_>,
        found: &mut Violations<'s>,
    ) {
        check_length(
            items.len(),
            (schema.min_items, Kind::MinItems),
            (schema.max_items, Kind::MaxItems),
            at,
            found,
        );
        if schema.unique_items {
            let mut known = HashSet::new();
            let unique = items.iter().all(|item| known.insert(canonical_text(item)));
            found.unless(unique, at, Kind::UniqueItems);
        }
        for (position, item) in items.iter().enumerate() {
            if found.is_full() {
                return;
            }
            let schema = schema.prefix_items.get(position).unwrap_or(&schema.items);
            self.validate_by(schema, item, Location::Item(&at, position), found);
        }
    }

    fn validate_fields(
        self,
        schema: &'s Schema,
        fields: &Map<String, Value>,
        at: Location<'_>,
        found: &mut Violations<'s>,
    ) {
        check_length(
            fields.len(),
            (schema.min_properties, Kind::MinProperties),
            (schema.max_properties, Kind::MaxProperties),
            at,
            found,
        );
        for name in &schema.required {
            found.unless(fields.contains_key(name), at, Kind::Required(name));
        }
        let others = &schema.additional_properties;
        let closed = others.0.as_ref().is_some_and(|schema| schema.never);
        let mut unknown = false;
        for (name, field) in fields {
            match schema.properties.get(name) {
                Some(schema) => self.validate_by(schema, field, Location::Field(&at, name), found),
                None if closed => unknown = true,
                None => self.validate_by(others, field, Location::Field(&at, name), found),
            }
        }
        found.unless(!unknown, at, Kind::AdditionalProperties);
    }
}

fn validate_number<'s>(
    schema: &'s Schema,
    number: &Value,
    at: Location<'_>,
    found: &mut Violations<'s>,
) {
    if let Some(least) = &schema.minimum {
        found.unless(compare(number, least).is_ge(), at, Kind::Minimum(least));
    }
    if let Some(most) = &schema.maximum {
        found.unless(compare(number, most).is_le(), at, Kind::Maximum(most));
    }
}

fn validate_text<'s>(schema: &'s Schema, text: &str, at: Location<'_>, found: &mut Violations<'s>) {
    if schema.min_length.is_some() || schema.max_length.is_some() {
        check_length(
            text.chars().count(),
            (schema.min_length, Kind::MinLength),
            (schema.max_length, Kind::MaxLength),
            at,
            found,
        );
    }
    if let Some(pattern) = &schema.pattern {
        let fits = pattern.compiled.is_match(text);
        found.unless(fits, at, Kind::Pattern(&pattern.text));
    }
    if let Some(format) = &schema.format {
        found.unless((format.fits)(text), at, Kind::Format(&format.name));
    }
}

/// A limit on a length, and the violation if a value exceeds it.
type LengthLimit<'s> = (Option<u64>, fn(u64) -> Kind<'s>);

/// Adds a violation if a length is below the first limit or above the second.
fn check_length<'s>(
    length: usize,
    (least, too_short): LengthLimit<'s>,
    (most, too_long): LengthLimit<'s>,
    at: Location<'_>,
    found: &mut Violations<'s>,
) {
    let length = u64::try_from(length).unwrap_or(u64::MAX);
    if let Some(least) = least {
        found.unless(length >= least, at, too_short(least));
    }
    if let Some(most) = most {
        found.unless(length <= most, at, too_long(most));
    }
}

fn is_of_types(value: &Value, types: &Types) -> bool {
    match types {
        Types::One(one) => is_of(value, *one),
        Types::Several(several) => several.iter().any(|one| is_of(value, *one)),
    }
}

fn is_of(value: &Value, wanted: Type) -> bool {
    match value {
        Value::Null => wanted == Type::Null,
        Value::Bool(_) => wanted == Type::Boolean,
        Value::Number(number) => match wanted {
            Type::Number => true,
            // In JSON Schema, 7.0 is an integer.
            Type::Integer => !number.is_f64() || Decimal::of_number(number).is_integer(),
            _ => false,
        },
        Value::String(_) => wanted == Type::String,
        Value::Array(_) => wanted == Type::Array,
        Value::Object(_) => match Decimal::of(value) {
            Some(number) => {
                wanted == Type::Number || (wanted == Type::Integer && number.is_integer())
            }
            None => wanted == Type::Object,
        },
    }
}

/// Returns the size of a value as JSON text without white space, with its numbers as written, in bytes.
fn json_bytes(value: &Value) -> u64 {
    let text = JsonText::deserialize(value);
    text.map_or(u64::MAX, |text| text.as_str().len() as u64)
}

/// Compares a number of a request with a limit of a schema, by their exact values.
fn compare(number: &Value, bound: &Number) -> Ordering {
    let integers = (
        number.as_number().and_then(Number::as_i128),
        bound.as_i128(),
    );
    if let (Some(number), Some(bound)) = integers {
        return number.cmp(&bound);
    }
    Decimal::of(number).cmp(&Some(Decimal::of_number(bound)))
}
