//! Tests that the checker gives the same verdicts as a complete JSON Schema validator.

use core_domain::testing::cases;
use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, ValidationError};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{Checker, formats};
use crate::kernel::parse_strict;

/// The path and the code of a violation.
type Verdict = (String, &'static str);

/// Returns the verdicts of the complete validator.
fn reference_verdicts(schema: &Value, value: &Value) -> Vec<Verdict> {
    let validator = jsonschema::options()
        .with_draft(Draft::Draft202012)
        .should_validate_formats(true)
        .should_ignore_unknown_formats(true)
        .with_format("email", formats::email)
        .with_format("uuid", formats::uuid)
        .build(schema)
        .unwrap();
    let mut verdicts = Vec::new();
    for error in validator.iter_errors(value) {
        judge(&error, &mut verdicts);
    }
    verdicts
}

/// Adds the verdicts for an error of the complete validator.
fn judge(error: &ValidationError<'_>, verdicts: &mut Vec<Verdict>) {
    use ValidationErrorKind as Their;
    let path = error.instance_path().to_string();
    let code = match error.kind() {
        Their::Required { property } => {
            let path = format!("{path}/{}", property.as_str().unwrap());
            return verdicts.push((path, "required"));
        }
        Their::Type { .. } => "invalid_type",
        Their::Enum { .. } | Their::Constant { .. } => "invalid_enum",
        Their::MinLength { .. } | Their::MinItems { .. } | Their::MinProperties { .. } => {
            "too_short"
        }
        Their::MaxLength { .. } | Their::MaxItems { .. } | Their::MaxProperties { .. } => {
            "too_long"
        }
        Their::Minimum { .. } => "too_small",
        Their::Maximum { .. } => "too_big",
        Their::Pattern { .. } => "pattern",
        Their::Format { .. } => "invalid_format",
        Their::UniqueItems => "not_unique",
        // The validator reports `FalseSchema` if the schema has no properties at all.
        Their::AdditionalProperties { .. } | Their::FalseSchema => "unknown_field",
        Their::AnyOf { context } | Their::OneOfNotValid { context } => {
            return judge_choice(&path, context, verdicts);
        }
        _ => "invalid",
    };
    verdicts.push((path, code));
}

/// Adds the verdicts for a value that matches no branch, by the same rule as the checker.
fn judge_choice(
    path: &str,
    branches: &[Vec<ValidationError<'static>>],
    verdicts: &mut Vec<Verdict>,
) {
    use ValidationErrorKind as Their;
    let wrong_type = |error: &ValidationError<'_>| {
        matches!(error.kind(), Their::Type { .. }) && error.instance_path().to_string() == path
    };
    let fitting: Vec<_> = branches
        .iter()
        .filter(|branch| !branch.iter().any(wrong_type))
        .collect();
    if let [only] = fitting.as_slice() {
        return only.iter().for_each(|error| judge(error, verdicts));
    }
    let is_word = |error: &ValidationError<'_>| {
        matches!(error.kind(), Their::Constant { .. } | Their::Enum { .. })
    };
    let code = if fitting.is_empty() {
        "invalid_type"
    } else if fitting.iter().all(|branch| branch.iter().all(is_word)) {
        "invalid_enum"
    } else {
        "invalid"
    };
    verdicts.push((path.to_owned(), code));
}

/// Returns the verdicts of the checker on a value, parsed as in a request, with its numbers as written.
fn ours(schema: &Value, value: &str) -> Vec<Verdict> {
    let value = parse_strict(value.as_bytes()).unwrap();
    let issues = Checker::of_schema(schema.clone()).unwrap().issues(&value);
    let verdict = |path: Vec<String>| path.iter().map(|segment| format!("/{segment}")).collect();
    let verdicts = issues.into_iter().map(|i| (verdict(i.path), i.code));
    verdicts.collect()
}

fn one_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3..4).prop_map(Value::from),
        prop_oneof![Just(0.5), Just(2.0), Just(-1.5), Just(-0.0)].prop_map(Value::from),
        "[ab1 ]{0,4}".prop_map(Value::from),
        Just(json!("a@b.example")),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-d]", inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// Returns the JSON text of a value whose integers have different notations. With `spelling` 0 they have the usual one.
fn render_json(value: &Value, spelling: usize) -> String {
    let list = |items: Vec<String>| items.join(",");
    match value {
        Value::Number(number) if number.is_i64() => match spelling % 4 {
            0 => number.to_string(),
            1 => format!("{number}.0"),
            2 => format!("{number}.00e0"),
            _ if number.as_i64() == Some(0) => "-0".to_owned(),
            _ => format!("{number}E+0"),
        },
        Value::Array(items) => {
            let items = items.iter().enumerate();
            let items = items.map(|(at, item)| render_json(item, spelling * (at + 1)));
            format!("[{}]", list(items.collect()))
        }
        Value::Object(fields) => {
            let fields = fields.iter();
            let fields = fields.map(|(name, f)| format!("\"{name}\":{}", render_json(f, spelling)));
            format!("{{{}}}", list(fields.collect()))
        }
        other => other.to_string(),
    }
}

/// Generates a keyword without subschemas.
fn assertion() -> impl Strategy<Value = (String, Value)> {
    const TYPES: [&str; 7] = [
        "null", "boolean", "integer", "number", "string", "array", "object",
    ];
    let one_type = prop::sample::select(TYPES.to_vec()).prop_map(Value::from);
    let several = prop::sample::subsequence(TYPES.to_vec(), 1..4).prop_map(Value::from);
    let bound = |keyword: &'static str| (Just(keyword), (0_u64..4).prop_map(Value::from));
    let texts = |keyword: &'static str, all: &'static [&'static str]| {
        (
            Just(keyword),
            prop::sample::select(all).prop_map(Value::from),
        )
    };
    let names = prop::sample::subsequence(vec!["a", "b", "c"], 0..3).prop_map(Value::from);
    let pair = prop_oneof![
        4 => (Just("type"), prop_oneof![one_type, several]),
        1 => (Just("const"), one_value()),
        1 => (Just("enum"), prop::collection::vec(one_value(), 1..4).prop_map(Value::from)),
        1 => (Just("minimum"), (-2..3).prop_map(Value::from)),
        1 => (Just("maximum"), prop_oneof![Just(json!(1)), Just(json!(1.5))]),
        1 => bound("minLength"),
        1 => bound("maxLength"),
        1 => texts("pattern", &["^[ab]*$", "a", r"^\S+$", r"^[^\s1]*$", "^a{1,2}b?$", r"\d$"]),
        1 => texts("format", &["email", "uuid", "unheard-of"]),
        1 => bound("minItems"),
        1 => bound("maxItems"),
        1 => (Just("uniqueItems"), any::<bool>().prop_map(Value::from)),
        1 => bound("minProperties"),
        1 => bound("maxProperties"),
        1 => (Just("required"), names),
        1 => texts("description", &["a keyword without effect"]),
    ];
    pair.prop_map(|(keyword, value)| (keyword.to_owned(), value))
}

fn one_schema() -> impl Strategy<Value = Value> {
    let object = |keywords: Vec<(String, Value)>| Value::Object(keywords.into_iter().collect());
    let leaf = prop::collection::vec(assertion(), 0..4).prop_map(object);
    leaf.prop_recursive(3, 24, 3, move |inner| {
        let list = prop::collection::vec(inner.clone(), 1..4).prop_map(Value::from);
        let by_name = prop::collection::btree_map("[a-c]", inner.clone(), 0..3);
        let by_name = by_name.prop_map(|fields| json!(fields));
        let applicator = prop_oneof![
            2 => (Just("properties".to_owned()), by_name),
            1 => (Just("additionalProperties".to_owned()), prop_oneof![Just(json!(false)), inner.clone()]),
            1 => (Just("items".to_owned()), inner),
            1 => (prop::sample::select(vec!["prefixItems", "allOf", "anyOf", "oneOf"]).prop_map(str::to_owned), list),
        ];
        let keyword = prop_oneof![assertion(), applicator];
        prop::collection::vec(keyword, 0..4).prop_map(object)
    })
}

fn assert_same_verdicts(schema: &Value, value: &Value, spelling: usize) {
    let text = render_json(value, spelling);
    let (mut theirs, mut ours) = (reference_verdicts(schema, value), ours(schema, &text));
    theirs.sort();
    ours.sort();
    assert_eq!(ours, theirs, "{text} by {schema}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(2_000)))]

    #[test]
    fn verdicts_are_those_of_a_complete_validator(
        schema in one_schema(),
        value in one_value(),
        spelling in 0_usize..4,
    ) {
        assert_same_verdicts(&schema, &value, spelling);
    }
}

#[test]
fn items_that_differ_only_in_the_notation_of_a_number_are_not_unique() {
    let schema = json!({ "allOf": [{ "uniqueItems": true }] });
    for items in [
        json!([2, 2.0]),
        json!([0, -0.0]),
        json!([[1], [1.0]]),
        json!([{ "a": 3 }, { "a": 3.0 }]),
        json!([1, true]),
        json!(["1", 1]),
    ] {
        for spelling in 0..4 {
            assert_same_verdicts(&schema, &items, spelling);
        }
    }
    assert_eq!(ours(&schema, "[100,1e2]").len(), 1);
    assert_eq!(ours(&schema, "[1e-400,1e-401,0]"), []);
}

#[test]
fn const_and_enum_match_every_notation_of_a_number() {
    for schema in [
        json!({ "const": [{ "n": 2 }] }),
        json!({ "enum": [7, [{ "n": 2.0 }]] }),
    ] {
        for spelling in 0..4 {
            assert_same_verdicts(&schema, &json!([{ "n": 2 }]), spelling);
            assert_same_verdicts(&schema, &json!([{ "n": 3 }]), spelling);
        }
        assert_eq!(ours(&schema, r#"[{"n":0.2e1}]"#), []);
    }
}

#[test]
fn recursive_types_are_validated_at_every_depth() {
    let schema = json!({
        "type": "object", "properties": { "next": { "$ref": "#/$defs/Node" } },
        "$defs": { "Node": { "type": "object", "required": ["n"],
            "properties": { "n": { "type": "integer" }, "next": { "$ref": "#/$defs/Node" } } } },
    });
    let value = json!({ "next": { "n": 1, "next": { "n": "1", "next": {} } } });
    let wanted = [
        ("/next/next/n", "invalid_type"),
        ("/next/next/next/n", "required"),
    ];
    let wanted = wanted.map(|(path, code)| (path.to_owned(), code));
    let (mut theirs, mut ours) = (
        reference_verdicts(&schema, &value),
        ours(&schema, &value.to_string()),
    );
    theirs.sort();
    ours.sort();
    assert_eq!(ours, wanted);
    assert_eq!(theirs, wanted);
}
