//! Reading the keys of a definition that are known.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::checks::{issue, issues_of};
use super::shape::{MAX_ITEMS, StackDefinition};
use crate::kernel::{Issue, JsonText};

/// The most issues that are told.
const MAX_ISSUES: usize = 50;

impl StackDefinition {
    /// Reads the keys that are known, and checks them.
    ///
    /// # Errors
    /// The issues, the first 50 of them, each with its path from the root of a request that publishes the definition.
    pub fn parse(definition: &JsonText) -> Result<Self, Vec<Issue>> {
        let value = definition.value();
        let Some(object) = value.as_object() else {
            return Err(vec![issue(&[], "invalid_type", "must be an object")]);
        };
        let mut issues = Vec::new();
        let definition = Self {
            resources: items(object, "resources", &mut issues),
            features: items(object, "features", &mut issues),
            apps: items(object, "apps", &mut issues),
        };
        if issues.is_empty() {
            issues = issues_of(&definition);
        }
        if issues.is_empty() {
            return Ok(definition);
        }
        issues.truncate(MAX_ISSUES);
        Err(issues)
    }
}

/// The items of a list, as far as they can be read.
fn items<T: DeserializeOwned>(
    object: &Map<String, Value>,
    key: &str,
    issues: &mut Vec<Issue>,
) -> Vec<T> {
    let Some(value) = object.get(key) else {
        return Vec::new();
    };
    let Some(values) = value.as_array() else {
        issues.push(issue(&[key], "invalid_type", "must be a list"));
        return Vec::new();
    };
    if values.len() > MAX_ITEMS {
        let message = format!("must have at most {MAX_ITEMS} items");
        issues.push(issue(&[key], "too_long", message));
        return Vec::new();
    }
    let mut items = Vec::new();
    for (at, value) in values.iter().enumerate() {
        match T::deserialize(value) {
            Ok(item) => items.push(item),
            Err(error) => issues.push(issue(&[key, &at.to_string()], "invalid", error.to_string())),
        }
    }
    items
}
