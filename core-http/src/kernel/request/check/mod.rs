//! Validation of requests by the schema of their type, which is also the schema in OpenAPI.
//!
//! - `schema`, `pattern`: compiles a JSON Schema.
//! - `walk`, `violation`, `decimal`: compares a value with a compiled schema.
//! - `explain`: turns violations into the issues of a validation error.
//! - `range`: adds the limits of integers to a schema.
//! - `plain`: rewrites numbers so that Rust types can be deserialized.
//! - `oracle`: tests that compare the results with those of a complete validator.

mod decimal;
mod explain;
mod formats;
#[cfg(test)]
mod oracle;
mod pattern;
mod plain;
mod range;
mod schema;
mod violation;
mod walk;

use core_domain::kernel::Issue;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Deserialize;
use serde_json::Value;

use self::explain::explain;
pub(crate) use self::range::IntegerRanges;
use self::schema::Schema;

/// The maximum number of issues in one validation error.
const MAX_ISSUES: usize = 50;

/// A compiled schema that validates JSON values.
#[derive(Debug)]
pub(crate) struct Checker {
    schema: Value,
    compiled: Schema,
}

impl Checker {
    /// Compiles the schema of a type. Subschemas are inlined, so that the types of query parameters can be looked up.
    ///
    /// # Errors
    /// The reason why the schema cannot be compiled, such as an unknown keyword.
    pub(crate) fn of<T: JsonSchema>() -> Result<Self, String> {
        let settings = SchemaSettings::draft2020_12()
            .for_deserialize()
            .with_transform(IntegerRanges)
            .with(|s| s.inline_subschemas = true);
        let schema = settings.into_generator().into_root_schema_for::<T>();
        Self::of_schema(schema.to_value())
    }

    fn of_schema(schema: Value) -> Result<Self, String> {
        let compiled = Schema::deserialize(&schema).map_err(|error| error.to_string())?;
        Ok(Self { schema, compiled })
    }

    /// Returns the schema as JSON.
    pub(crate) fn schema(&self) -> &Value {
        &self.schema
    }

    /// Returns all issues of the value, at most 50. Empty if the value is valid.
    pub(crate) fn issues(&self, value: &Value) -> Vec<Issue> {
        let mut issues = Vec::new();
        for violation in walk::violations(&self.compiled, value, MAX_ISSUES) {
            explain(violation, &mut issues);
        }
        issues.truncate(MAX_ISSUES);
        issues
    }

    /// Rewrites the numbers of a valid value so that its types can be deserialized: `1e2` becomes 100 if the schema
    /// expects an integer. Free-form values keep their notation.
    pub(crate) fn respell_numbers(&self, value: &mut Value) {
        plain::normalize_numbers(&self.compiled, value);
    }
}

#[cfg(test)]
mod tests {
    use core_domain::kernel::{Email, Environment, Slug};
    use serde_json::json;

    use super::*;

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Shape {
        slug: Slug,
        email: Option<Email>,
        env: Option<Environment>,
        tags: Option<Vec<Slug>>,
        inner: Option<Inner>,
    }

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Inner {
        size: u32,
    }

    fn find_issues(value: &Value) -> Vec<(String, &'static str)> {
        let issues = Checker::of::<Shape>().unwrap().issues(value);
        issues
            .into_iter()
            .map(|i| (i.path.join("."), i.code))
            .collect()
    }

    #[test]
    fn every_violation_is_reported_with_its_path() {
        let found = find_issues(&json!({
            "slug": "Not A Slug", "email": "nobody", "env": "moon", "tags": ["a", "B", 3], "inner": {"size": -1},
        }));
        for expected in [
            ("slug", "pattern"),
            ("email", "invalid_format"),
            ("env", "invalid_enum"),
            ("tags.1", "pattern"),
            ("tags.2", "invalid_type"),
            ("inner.size", "too_small"),
        ] {
            let expected = (expected.0.to_owned(), expected.1);
            assert!(found.contains(&expected), "{expected:?} in {found:?}");
        }
        assert_eq!(found.len(), 6, "{found:?}");
    }

    #[test]
    fn integers_outside_the_range_of_their_type_are_reported_with_their_path() {
        #[derive(JsonSchema)]
        #[expect(dead_code, reason = "only its schema is used")]
        struct Numbers {
            signed: i64,
            small: Option<i32>,
            unsigned: u64,
        }
        let checker = Checker::of::<Numbers>().unwrap();
        let issues_of = |body: &str| {
            let body = crate::kernel::parse_strict(body.as_bytes()).unwrap();
            let issues = checker.issues(&body).into_iter();
            let issues = issues.map(|issue| format!("{}: {}", issue.path.join("."), issue.code));
            issues.collect::<Vec<_>>()
        };
        let most =
            r#"{"signed": 9223372036854775807, "small": null, "unsigned": 18446744073709551615}"#;
        assert_eq!(issues_of(most), [] as [&str; 0]);
        let above = r#"{"signed": 9223372036854775808, "small": 2147483648, "unsigned": 1e20}"#;
        let expected = ["signed: too_big", "small: too_big", "unsigned: too_big"];
        assert_eq!(issues_of(above), expected);
        let below = r#"{"signed": -9223372036854775809, "small": -1e30, "unsigned": -1}"#;
        let expected = [
            "signed: too_small",
            "small: too_small",
            "unsigned: too_small",
        ];
        assert_eq!(issues_of(below), expected);
    }

    #[test]
    fn optional_fields_can_be_absent_or_null() {
        assert_eq!(
            find_issues(&json!({"slug": "a", "email": null, "more": 1})),
            []
        );
        assert_eq!(find_issues(&json!({})), [("slug".to_owned(), "required")]);
        assert_eq!(find_issues(&json!([])), [(String::new(), "invalid_type")]);
    }

    #[test]
    fn at_most_fifty_issues_are_reported() {
        let tags: Vec<String> = (0..80).map(|n| format!("BAD {n}")).collect();
        assert_eq!(find_issues(&json!({"slug": "a", "tags": tags})).len(), 50);
    }

    #[test]
    fn schemas_with_unknown_keywords_are_refused() {
        for schema in [
            json!({ "not": {} }),
            json!({ "properties": { "a": { "multipleOf": 3 } } }),
            json!({ "type": "text" }),
            json!({ "pattern": "(" }),
            json!({ "$ref": "https://example.org" }),
            json!({ "anyOf": [7] }),
        ] {
            assert!(Checker::of_schema(schema.clone()).is_err(), "{schema}");
        }
    }
}
