//! The schema is the validator: what `OpenAPI` shows is what a request is checked against.

mod decimal;
mod explain;
#[cfg(test)]
mod oracle;
mod pattern;
mod plain;
mod schema;
mod violation;
mod walk;

use core_domain::kernel::Issue;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Deserialize;
use serde_json::Value;

use self::explain::explain;
use self::schema::Schema;

/// How many issues one answer lists.
const MAX_ISSUES: usize = 50;

/// A compiled schema.
#[derive(Debug)]
pub(crate) struct Checker {
    schema: Value,
    compiled: Schema,
}

impl Checker {
    /// Compiles the schema of a type; with everything in line, so that query strings can be read by it.
    pub(crate) fn of<T: JsonSchema>() -> Result<Self, String> {
        let settings = SchemaSettings::draft2020_12()
            .for_deserialize()
            .with(|s| s.inline_subschemas = true);
        let schema = settings.into_generator().into_root_schema_for::<T>();
        Self::of_schema(schema.to_value())
    }

    fn of_schema(schema: Value) -> Result<Self, String> {
        let compiled = Schema::deserialize(&schema).map_err(|error| error.to_string())?;
        Ok(Self { schema, compiled })
    }

    pub(crate) fn schema(&self) -> &Value {
        &self.schema
    }

    /// Everything that is wrong with the value; at most 50 issues, none when it is valid.
    pub(crate) fn issues(&self, value: &Value) -> Vec<Issue> {
        let mut issues = Vec::new();
        for violation in walk::violations(&self.compiled, value, MAX_ISSUES) {
            explain(violation, &mut issues);
        }
        issues.truncate(MAX_ISSUES);
        issues
    }

    /// Rewrites the numbers of a valid value in the spelling that its types read: `1e2` becomes 100 where the schema wants
    /// an integer. Free-form values are left as they were written.
    pub(crate) fn respell_numbers(&self, value: &mut Value) {
        plain::respell(&self.compiled, value);
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

    fn found(value: &Value) -> Vec<(String, &'static str)> {
        let issues = Checker::of::<Shape>().unwrap().issues(value);
        issues
            .into_iter()
            .map(|i| (i.path.join("."), i.code))
            .collect()
    }

    #[test]
    fn every_violation_is_listed_with_its_place() {
        let found = found(&json!({
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
    fn absent_and_null_are_fine_where_optional() {
        assert_eq!(found(&json!({"slug": "a", "email": null, "more": 1})), []);
        assert_eq!(found(&json!({})), [("slug".to_owned(), "required")]);
        assert_eq!(found(&json!([])), [(String::new(), "invalid_type")]);
    }

    #[test]
    fn at_most_fifty_issues_are_listed() {
        let tags: Vec<String> = (0..80).map(|n| format!("BAD {n}")).collect();
        assert_eq!(found(&json!({"slug": "a", "tags": tags})).len(), 50);
    }

    #[test]
    fn a_schema_with_a_keyword_that_is_not_known_is_refused() {
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
