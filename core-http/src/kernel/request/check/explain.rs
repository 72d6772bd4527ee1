//! Turns violations into the issues of a validation error: path, code and message.

use core_domain::kernel::{Issue, PLAIN_NAME, TextError};

use serde_json::Value;

use super::violation::{Kind, Violation};

/// Adds the issues of a violation. Messages never contain the value, because it can be a secret.
pub(super) fn explain(violation: Violation<'_>, issues: &mut Vec<Issue>) {
    let mut path = violation.path;
    let (code, message) = match violation.kind {
        Kind::Required(name) => {
            path.push(name.to_owned());
            ("required", "is required".to_owned())
        }
        Kind::Type => ("invalid_type", "has the wrong type".to_owned()),
        Kind::Enum(words) => {
            let words: Vec<String> = words.iter().map(Value::to_string).collect();
            let words = words.join(",");
            ("invalid_enum", format!("must be one of [{words}]"))
        }
        Kind::Const(wanted) => ("invalid_enum", format!("must be {wanted}")),
        Kind::MinLength(limit) => (
            "too_short",
            format!("must have at least {limit} characters"),
        ),
        Kind::MaxLength(limit) => ("too_long", format!("must have at most {limit} characters")),
        Kind::MinItems(limit) => ("too_short", format!("must have at least {limit} items")),
        Kind::MaxItems(limit) => ("too_long", format!("must have at most {limit} items")),
        Kind::MinProperties(limit) => ("too_short", format!("must have at least {limit} fields")),
        Kind::MaxProperties(limit) => ("too_long", format!("must have at most {limit} fields")),
        Kind::MaxBytes(limit) => ("too_long", format!("must have at most {limit} bytes")),
        Kind::Minimum(limit) => ("too_small", format!("must be at least {limit}")),
        Kind::Maximum(limit) => ("too_big", format!("must be at most {limit}")),
        Kind::Pattern(pattern) => ("pattern", format!("must match {pattern}")),
        Kind::Format(PLAIN_NAME) => ("invalid_format", TextError::NotPlain.to_string()),
        Kind::Format(format) => ("invalid_format", format!("must be of the format {format}")),
        Kind::UniqueItems => ("not_unique", "must not contain an item twice".to_owned()),
        Kind::AdditionalProperties => ("unknown_field", "has unknown fields".to_owned()),
        Kind::NoBranch(branches) => return explain_choice(path, branches, issues),
        Kind::SeveralBranches | Kind::Never => ("invalid", "is not valid".to_owned()),
    };
    issues.push(Issue {
        path,
        code,
        message,
    });
}

/// Adds the issues of a value that matches no branch of `anyOf` or `oneOf`. If its type matches only one branch, for
/// example because the other one is `null`, the issues are those of that branch.
fn explain_choice(
    here: Vec<String>,
    mut branches: Vec<Vec<Violation<'_>>>,
    issues: &mut Vec<Issue>,
) {
    branches.retain(|branch| {
        let mut wrong = branch.iter().filter(|v| matches!(v.kind, Kind::Type));
        !wrong.any(|violation| violation.path == here)
    });
    if let [_] = branches.as_slice() {
        let only = branches.into_iter().flatten();
        only.for_each(|inner| explain(inner, issues));
        return;
    }
    let is_word = |v: &Violation<'_>| matches!(v.kind, Kind::Const(_) | Kind::Enum(_));
    let (code, message) = if branches.is_empty() {
        ("invalid_type", "has the wrong type")
    } else if branches.iter().flatten().all(is_word) {
        ("invalid_enum", "is not one of the allowed values")
    } else {
        ("invalid", "matches none of the allowed forms")
    };
    issues.push(Issue {
        path: here,
        code,
        message: message.to_owned(),
    });
}
