//! What the keys of a definition must be together.

use std::collections::BTreeSet;

use super::plan::in_order;
use super::shape::{BindingDefinition, MAX_ITEMS, ResourceDefinition, StackDefinition};
use crate::kernel::{Environment, Issue};
use crate::registry::ResourceType;
use crate::stacks::{PartName, parts_of_app};

/// The field of a request that holds a definition; the paths of all issues begin with it.
const FIELD: &str = "stackDefinition";

/// The longest name of a binding.
const MAX_IDENTIFIER: usize = 64;

/// The longest path of a module, the most texts, and the most bytes of one: what every provider takes.
const MAX_MODULE_PATH: usize = 200;
const MAX_VARS: usize = 128;
const MAX_VAR_BYTES: usize = 5 * 1024;

/// Every issue of a definition whose items could be read.
pub(super) fn issues_of(definition: &StackDefinition) -> Vec<Issue> {
    let mut issues = Vec::new();
    check_names(definition, &mut issues);
    for (at, resource) in definition.resources.iter().enumerate() {
        let place = at.to_string();
        let mut refuse = |path: &[&str], code, message: &str| {
            let path = [&["resources", place.as_str()], path].concat();
            issues.push(issue(&path, code, message));
        };
        check_script(resource, &mut refuse);
        check_paths(resource, &mut refuse);
        check_sizes(resource, &mut refuse);
        check_identifiers(resource, &mut refuse);
        for (at, binding) in resource.bindings.iter().enumerate() {
            let place = at.to_string();
            if let Err((code, message)) = check_target(definition, resource, binding) {
                refuse(&["bindings", &place, "resource"], code, message);
            }
        }
    }
    if issues.is_empty() {
        check_circles(definition, &mut issues);
    }
    issues
}

/// An issue at a path below the definition.
pub(super) fn issue(path: &[&str], code: &'static str, message: impl Into<String>) -> Issue {
    let path = std::iter::once(&FIELD).chain(path);
    Issue {
        path: path.map(|&segment| segment.to_owned()).collect(),
        code,
        message: message.into(),
    }
}

fn check_names(definition: &StackDefinition, issues: &mut Vec<Issue>) {
    let mut names = BTreeSet::new();
    let mut check = |place: [&str; 3], name: &str, names: &mut BTreeSet<String>| {
        if !names.insert(name.to_owned()) {
            let message = format!("the name {name} is used twice");
            issues.push(issue(&place, "duplicate", message));
        }
    };
    for (at, resource) in definition.resources.iter().enumerate() {
        let place = ["resources", &at.to_string(), "name"];
        check(place, resource.name.as_str(), &mut names);
    }
    for (at, app) in definition.apps.iter().enumerate() {
        for part in parts_of_app(&app.name, app.app_type, app.with_database) {
            let place = ["apps", &at.to_string(), "name"];
            check(place, part.id.name.as_str(), &mut names);
        }
    }
    let mut features = BTreeSet::new();
    for (at, feature) in definition.features.iter().enumerate() {
        let place = ["features", &at.to_string(), "id"];
        check(place, feature.id.as_str(), &mut features);
    }
}

fn check_script(
    resource: &ResourceDefinition,
    refuse: &mut impl FnMut(&[&str], &'static str, &str),
) {
    let has_modules = !resource.modules.is_empty();
    match &resource.main_module {
        Some(main) if !resource.modules.contains_key(main) => {
            refuse(&["mainModule"], "invalid", "must be one of the modules");
        }
        None if has_modules => refuse(&["mainModule"], "required", "is required with modules"),
        _ => {}
    }
    if has_modules && resource.resource_type != ResourceType::Worker {
        refuse(&["modules"], "invalid", "are for workers alone");
    }
    let binds = matches!(
        resource.resource_type,
        ResourceType::Worker | ResourceType::Pages
    );
    for (field, is_empty) in [
        ("bindings", resource.bindings.is_empty()),
        ("vars", resource.vars.is_empty()),
    ] {
        if !binds && !is_empty {
            refuse(&[field], "invalid", "are for workers and pages alone");
        }
    }
}

/// Modules are files that can lie together in a folder, and parts of a form of which one is `metadata`.
fn check_paths(
    resource: &ResourceDefinition,
    refuse: &mut impl FnMut(&[&str], &'static str, &str),
) {
    for path in resource.modules.keys() {
        let mut folders = path.match_indices('/').map(|(end, _)| &path[..end]);
        let clashes = folders.any(|folder| resource.modules.contains_key(folder));
        if !is_module_path(path) {
            refuse(&["modules", path], "invalid", "is no path of a module");
        } else if clashes {
            refuse(
                &["modules", path],
                "invalid",
                "has a folder that is a module",
            );
        }
    }
}

fn is_module_path(path: &str) -> bool {
    let good = |c: char| c.is_ascii_alphanumeric() || "._-+@$()[]".contains(c);
    let is_part = |part: &str| {
        !part.is_empty() && !part.starts_with("..") && part != "." && part.chars().all(good)
    };
    path.len() <= MAX_MODULE_PATH
        && !path.eq_ignore_ascii_case("metadata")
        && path.split('/').all(is_part)
}

fn check_sizes(
    resource: &ResourceDefinition,
    refuse: &mut impl FnMut(&[&str], &'static str, &str),
) {
    if resource.bindings.len() > MAX_ITEMS {
        refuse(&["bindings"], "too_long", "are at most 50");
    }
    if resource.vars.len() > MAX_VARS {
        refuse(&["vars"], "too_long", "are at most 128");
    }
    for (name, text) in &resource.vars {
        if text.len() > MAX_VAR_BYTES {
            refuse(&["vars", name], "too_long", "has at most 5 KiB");
        }
    }
}

fn check_identifiers(
    resource: &ResourceDefinition,
    refuse: &mut impl FnMut(&[&str], &'static str, &str),
) {
    let mut names = BTreeSet::new();
    for (at, binding) in resource.bindings.iter().enumerate() {
        let place = at.to_string();
        let path = ["bindings", place.as_str(), "name"];
        if !is_identifier(&binding.name) {
            refuse(&path, "invalid", "must be an identifier");
        }
        if !names.insert(&binding.name) {
            refuse(&path, "duplicate", "is used twice");
        }
    }
    for name in resource.vars.keys() {
        if !is_identifier(name) {
            refuse(&["vars", name], "invalid", "must be an identifier");
        }
        if !names.insert(name) {
            refuse(&["vars", name], "duplicate", "is used twice");
        }
    }
}

fn is_identifier(name: &str) -> bool {
    let good = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.len() <= MAX_IDENTIFIER
        && name.bytes().all(good)
}

fn check_target(
    definition: &StackDefinition,
    resource: &ResourceDefinition,
    binding: &BindingDefinition,
) -> Result<(), (&'static str, &'static str)> {
    let Some((resource_type, environment)) = target(definition, &binding.resource) else {
        return Err(("unknown_resource", "is no resource of the stack"));
    };
    if resource_type == ResourceType::Pages {
        return Err(("invalid", "leads to a pages project"));
    }
    if environment.is_some() && environment != resource.environment {
        return Err(("invalid", "is not there in the same environments"));
    }
    Ok(())
}

/// What a binding may lead to, with the environment it is there in.
fn target(
    definition: &StackDefinition,
    name: &PartName,
) -> Option<(ResourceType, Option<Environment>)> {
    let mut resources = definition.resources.iter();
    if let Some(resource) = resources.find(|resource| resource.name == *name) {
        return Some((resource.resource_type, resource.environment));
    }
    let apps = definition.apps.iter();
    let parts = apps.flat_map(|app| parts_of_app(&app.name, app.app_type, app.with_database));
    let mut databases = parts.filter(|part| part.id.resource_type == ResourceType::D1);
    let database = databases.find(|part| part.id.name == *name)?;
    Some((database.id.resource_type, None))
}

fn check_circles(definition: &StackDefinition, issues: &mut Vec<Issue>) {
    let workers = definition.workers();
    let (_, in_circles) = in_order(&workers);
    for (at, resource) in definition.resources.iter().enumerate() {
        if in_circles.iter().any(|worker| worker.name == resource.name) {
            let path = ["resources", &at.to_string(), "bindings"];
            let message = "lead back to the worker itself, or to workers that do";
            issues.push(issue(&path, "cycle", message));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::kernel::{JsonText, strategy};

    fn issues(definition: &Value) -> Vec<String> {
        let issues = StackDefinition::parse(&JsonText::of(definition)).err();
        let told = |issue: Issue| format!("{} {}", issue.path[1..].join("."), issue.code);
        issues.into_iter().flatten().map(told).collect()
    }

    #[test]
    fn every_issue_is_told_with_its_path() {
        let worker = |name: &str, to: &str| json!({ "name": name, "type": "worker", "bindings": [{ "name": "A", "resource": to }] });
        let both = json!([{ "name": "A", "resource": "db" }, { "name": "A", "resource": "db" }]);
        let db = json!({ "name": "db", "type": "d1" });
        for (definition, wanted) in [
            (json!([]), vec![" invalid_type"]),
            (
                json!({ "resources": {}, "apps": null }),
                vec!["resources invalid_type", "apps invalid_type"],
            ),
            (
                json!({ "resources": [db, { "name": "Db", "type": "d1" }, { "name": "x" }] }),
                vec!["resources.1 invalid", "resources.2 invalid"],
            ),
            (
                json!({ "resources": [db, db, { "name": "shop", "type": "kv" }], "apps": [{ "name": "shop", "type": "app" }] }),
                vec!["resources.1.name duplicate", "apps.0.name duplicate"],
            ),
            (
                json!({ "features": [{ "id": "a", "version": "1" }, { "id": "a", "version": "2" }] }),
                vec!["features.1.id duplicate"],
            ),
            (
                json!({ "resources": [{ "name": "kv", "type": "kv", "modules": { "a.js": "" }, "vars": { "A": "" } }] }),
                vec![
                    "resources.0.mainModule required",
                    "resources.0.modules invalid",
                    "resources.0.vars invalid",
                ],
            ),
            (
                json!({ "resources": [{ "name": "w", "type": "worker", "mainModule": "a.js", "vars": { "1": "" } }] }),
                vec![
                    "resources.0.mainModule invalid",
                    "resources.0.vars.1 invalid",
                ],
            ),
            (
                json!({ "resources": [db, { "name": "w", "type": "worker", "bindings": both, "vars": { "A": "" } }] }),
                vec![
                    "resources.1.bindings.1.name duplicate",
                    "resources.1.vars.A duplicate",
                ],
            ),
            (
                json!({ "resources": [worker("w", "nothing"), worker("v", "p"), { "name": "p", "type": "pages" }] }),
                vec![
                    "resources.0.bindings.0.resource unknown_resource",
                    "resources.1.bindings.0.resource invalid",
                ],
            ),
            (
                json!({ "resources": [worker("w", "dev"), { "name": "dev", "type": "kv", "environment": "dev" }] }),
                vec!["resources.0.bindings.0.resource invalid"],
            ),
            (
                json!({ "resources": [worker("a", "b"), worker("b", "a"), worker("c", "db"), db] }),
                vec!["resources.0.bindings cycle", "resources.1.bindings cycle"],
            ),
            (
                json!({ "resources": [{ "name": "w", "type": "worker", "mainModule": "a.js", "vars": { "A": "x".repeat(5_121) }, "modules": {
                    "a.js": "", "b": "", "b/c.js": "", "../d.js": "", "Metadata": "", "x\\y": "", "[slug]/e.v2.mjs": "" } }] }),
                vec![
                    "resources.0.modules.../d.js invalid",
                    "resources.0.modules.Metadata invalid",
                    "resources.0.modules.b/c.js invalid",
                    "resources.0.modules.x\\y invalid",
                    "resources.0.vars.A too_long",
                ],
            ),
            (
                json!({ "apps": vec![json!({ "name": "shop", "type": "app" }); 51] }),
                vec!["apps too_long"],
            ),
        ] {
            assert_eq!(issues(&definition), wanted, "{definition}");
        }
    }

    #[test]
    fn what_is_not_known_is_not_checked_and_the_example_is_good() {
        let unknown =
            json!({ "resources": [{ "name": "db", "type": "d1", "size": 9 }], "dns": { "a": 1 } });
        assert!(issues(&unknown).is_empty());
        let schema = schemars::schema_for!(StackDefinition).to_value();
        let example = &schema["examples"][0];
        assert!(issues(example).is_empty(), "{:?}", issues(example));
    }

    proptest! {
        #[test]
        fn any_json_is_read_or_refused_with_issues(value in strategy::json()) {
            if let Err(issues) = StackDefinition::parse(&JsonText::of(&value)) {
                prop_assert!(!issues.is_empty());
                prop_assert!(issues.iter().all(|issue| issue.path[0] == FIELD));
            }
        }
    }
}
