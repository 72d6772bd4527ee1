//! The schema is the validator: what `OpenAPI` shows is what a request is checked against.

use core_domain::kernel::Issue;
use jsonschema::error::ValidationErrorKind as Kind;
use jsonschema::{Draft, ValidationError, Validator};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

use super::format;

/// How many issues one answer lists.
const MAX_ISSUES: usize = 50;

/// A compiled schema.
#[derive(Debug)]
pub(super) struct Checker {
    schema: Value,
    validator: Validator,
}

impl Checker {
    /// Compiles the schema of a type; with everything in line, so that query strings can be read by it.
    pub(super) fn of<T: JsonSchema>() -> Result<Self, String> {
        let settings = SchemaSettings::draft2020_12()
            .for_deserialize()
            .with(|s| s.inline_subschemas = true);
        let schema = settings
            .into_generator()
            .into_root_schema_for::<T>()
            .to_value();
        let validator = jsonschema::options()
            .with_draft(Draft::Draft202012)
            .should_validate_formats(true)
            .should_ignore_unknown_formats(true)
            .with_format("email", format::email)
            .with_format("date-time", format::date_time)
            .with_format("uri", format::uri)
            .with_format("uuid", format::uuid)
            .build(&schema)
            .map_err(|error| error.to_string())?;
        Ok(Self { schema, validator })
    }

    pub(super) fn schema(&self) -> &Value {
        &self.schema
    }

    /// Everything that is wrong with the value; at most 50 issues, none when it is valid.
    pub(super) fn issues(&self, value: &Value) -> Vec<Issue> {
        if self.validator.is_valid(value) {
            return Vec::new();
        }
        let mut issues = Vec::new();
        for error in self.validator.iter_errors(value) {
            explain(&error, &mut issues);
            if issues.len() >= MAX_ISSUES {
                break;
            }
        }
        issues.truncate(MAX_ISSUES);
        issues
    }
}

/// Our words for a violation. They never repeat the value, which may be a secret.
fn explain(error: &ValidationError<'_>, issues: &mut Vec<Issue>) {
    let mut path = path_of(error);
    let (code, message) = match error.kind() {
        Kind::Required { property } => {
            path.push(property.as_str().unwrap_or_default().to_owned());
            ("required", "is required".to_owned())
        }
        Kind::Type { .. } => ("invalid_type", "has the wrong type".to_owned()),
        Kind::Enum { options } => ("invalid_enum", format!("must be one of {options}")),
        Kind::Constant { expected_value } => ("invalid_enum", format!("must be {expected_value}")),
        Kind::MinLength { limit } => (
            "too_short",
            format!("must have at least {limit} characters"),
        ),
        Kind::MaxLength { limit } => ("too_long", format!("must have at most {limit} characters")),
        Kind::MinItems { limit } => ("too_short", format!("must have at least {limit} items")),
        Kind::MaxItems { limit } => ("too_long", format!("must have at most {limit} items")),
        Kind::MinProperties { limit } => {
            ("too_short", format!("must have at least {limit} fields"))
        }
        Kind::MaxProperties { limit } => ("too_long", format!("must have at most {limit} fields")),
        Kind::Minimum { limit } => ("too_small", format!("must be at least {limit}")),
        Kind::ExclusiveMinimum { limit } => ("too_small", format!("must be more than {limit}")),
        Kind::Maximum { limit } => ("too_big", format!("must be at most {limit}")),
        Kind::ExclusiveMaximum { limit } => ("too_big", format!("must be less than {limit}")),
        Kind::Pattern { pattern } => ("pattern", format!("must match {pattern}")),
        Kind::Format { format } => ("invalid_format", format!("must be of the format {format}")),
        Kind::UniqueItems => ("not_unique", "must not hold an item twice".to_owned()),
        Kind::AdditionalProperties { .. } => {
            ("unknown_field", "has fields that are not known".to_owned())
        }
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
            return explain_choice(error, context, issues);
        }
        _ => ("invalid", "is not valid".to_owned()),
    };
    issues.push(Issue {
        path,
        code,
        message,
    });
}

/// A value that fits no branch of a choice: if its type fits one branch alone (the others being `null`, say), what is
/// wrong is what that branch says.
fn explain_choice(
    error: &ValidationError<'_>,
    context: &[Vec<ValidationError<'static>>],
    issues: &mut Vec<Issue>,
) {
    let here = path_of(error);
    let wrong_type = |branch: &&Vec<ValidationError<'static>>| {
        branch
            .iter()
            .any(|e| matches!(e.kind(), Kind::Type { .. }) && path_of(e) == here)
    };
    let fitting: Vec<_> = context.iter().filter(|b| !wrong_type(b)).collect();
    if let [only] = fitting.as_slice() {
        only.iter().for_each(|inner| explain(inner, issues));
        return;
    }
    let is_word = |e: &ValidationError<'static>| {
        matches!(e.kind(), Kind::Constant { .. } | Kind::Enum { .. })
    };
    let (code, message) = if fitting.is_empty() {
        ("invalid_type", "has the wrong type")
    } else if fitting.iter().all(|branch| branch.iter().all(is_word)) {
        ("invalid_enum", "is not one of the known words")
    } else {
        ("invalid", "fits none of the forms it may have")
    };
    issues.push(Issue {
        path: here,
        code,
        message: message.to_owned(),
    });
}

fn path_of(error: &ValidationError<'_>) -> Vec<String> {
    error
        .instance_path()
        .as_str()
        .split('/')
        .skip(1)
        .map(|segment| segment.replace("~1", "/").replace("~0", "~"))
        .collect()
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
}
