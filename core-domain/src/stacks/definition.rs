//! Stack definitions: the known keys of a `stackDefinition`, their rules, and the order in which the parts of a stack
//! are created.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{AppName, AppType, PartBinding, PartId, PartName, Script, StackPart, parts_of_app};
use crate::kernel::{Environment, Issue, JsonText};
use crate::registry::{FeatureVersion, NewFeatureId, ResourceType};

/// The request field that contains a definition. The paths of all issues start with it.
const FIELD: &str = "stackDefinition";

/// Maximum number of resources, features or apps in a definition, and of bindings of a resource.
const MAX_ITEMS: usize = 50;

/// Maximum number of issues that are reported.
const MAX_ISSUES: usize = 50;

/// Maximum length of the name of a binding or variable, in characters.
const MAX_IDENTIFIER_CHARS: usize = 64;

/// Maximum length of a module path, maximum number of variables, and maximum size of a variable in bytes. Every
/// provider accepts these values.
const MAX_MODULE_PATH: usize = 200;
const MAX_VARS: usize = 128;
const MAX_VAR_BYTES: usize = 5 * 1024;

/// The content of a stack. A definition is an object of at most 256 KiB. Unknown keys are allowed and stored, but have
/// no effect. The known keys are checked when a version is published:
///
/// - The names of resources and of the parts of apps (`{app}`, `{app}-svc`, `{app}-db`) are unique.
/// - `modules`, one of which is `mainModule`, are allowed only on workers. A module path has letters, digits and
///   `._-+@$()[]` between slashes, at most 200 characters in total, and is not `metadata`.
/// - `bindings` and `vars` are allowed only on workers and pages. Their names are unique. A resource has at most 128
///   `vars` of at most 5 KiB each.
/// - A binding names another resource of the stack, or the database of one of its apps. The target exists in the same
///   environments and is not a pages project. Bindings of workers do not form a cycle.
///
/// Stores are created first, then workers, each after the workers that it is bound to, then pages, features and apps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("examples" = [{
    "resources": [
        { "name": "db", "type": "d1" },
        { "name": "api", "type": "worker", "bindings": [{ "name": "DB", "resource": "db" }] },
        { "name": "site", "type": "pages", "bindings": [{ "name": "API", "resource": "api" }] },
    ],
    "features": [{ "id": "search", "version": "1.0.0" }],
    "apps": [{ "name": "admin", "type": "fullstack", "withDatabase": true }],
}]))]
pub struct StackDefinition {
    /// The resources of the stack. Default: none.
    #[serde(default)]
    #[schemars(length(max = MAX_ITEMS))]
    pub resources: Vec<ResourceDefinition>,
    /// The features that the entity of the stack receives. Default: none.
    #[serde(default)]
    #[schemars(length(max = MAX_ITEMS))]
    pub features: Vec<FeatureDefinition>,
    /// The apps that the stack starts with. Default: none.
    #[serde(default)]
    #[schemars(length(max = MAX_ITEMS))]
    pub apps: Vec<AppDefinition>,
}

/// A resource of a stack.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceDefinition {
    /// The name of the resource in the stack. It is also the `serviceName` of the recorded resource.
    pub name: PartName,
    /// The type of the object.
    #[serde(rename = "type")]
    pub resource_type: ResourceType,
    /// The environment in which the resource exists. Default: all environments.
    pub environment: Option<Environment>,
    /// The source text of each module of a worker, by path. A worker without modules starts with a default script.
    #[serde(default)]
    pub modules: BTreeMap<String, String>,
    /// The path of the module that is run. Required for a worker with modules.
    pub main_module: Option<String>,
    /// The resources that a worker or pages project can access. Default: none.
    #[serde(default)]
    #[schemars(length(max = MAX_ITEMS))]
    pub bindings: Vec<BindingDefinition>,
    /// The plain-text variables of a worker or pages project, by name. They are not suitable for secrets. Their names
    /// follow the rule for names of bindings. Default: none.
    #[serde(default)]
    pub vars: BTreeMap<String, String>,
}

/// A binding that gives a resource of a stack access to another one.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BindingDefinition {
    /// The name by which the script accesses the target. It must be an identifier.
    #[schemars(length(min = 1, max = 64), regex(pattern = "^[A-Za-z_][A-Za-z0-9_]*$"), extend("examples" = ["DB"]))]
    pub name: String,
    /// The name of the target in the stack.
    pub resource: PartName,
}

/// A feature of a stack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FeatureDefinition {
    /// The id of the feature.
    pub id: NewFeatureId,
    /// The version of the feature.
    pub version: FeatureVersion,
}

/// An app of a stack.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppDefinition {
    /// The name of the app.
    pub name: AppName,
    /// The type of the app, which determines its parts.
    #[serde(rename = "type")]
    pub app_type: AppType,
    /// Whether the app has a database. Default: `false`.
    #[serde(default)]
    pub with_database: bool,
}

impl StackDefinition {
    /// Parses the known keys of a definition and checks them.
    ///
    /// # Errors
    /// The first 50 issues, each with its path from the root of a request that publishes the definition.
    pub fn parse(definition: &JsonText) -> Result<Self, Vec<Issue>> {
        let value = definition.value();
        let Some(object) = value.as_object() else {
            return Err(vec![issue(&[], "invalid_type", "must be an object")]);
        };
        let mut issues = Vec::new();
        let definition = Self {
            resources: parse_items(object, "resources", &mut issues),
            features: parse_items(object, "features", &mut issues),
            apps: parse_items(object, "apps", &mut issues),
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

/// Parses the items of a list. Items that cannot be parsed are omitted and reported as issues.
fn parse_items<T: DeserializeOwned>(
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

impl StackDefinition {
    /// Returns the parts that are created in an environment, in the order of their creation. Stores come first,
    /// including the databases of apps. Workers follow, each after the workers that it is bound to, and then pages. The
    /// other parts of apps are created after the features, see [`StackDefinition::parts_of_apps`].
    #[must_use]
    pub fn parts(&self, environment: Environment) -> Vec<StackPart> {
        let there = |resource: &&ResourceDefinition| {
            resource.environment.is_none_or(|only| only == environment)
        };
        let resources: Vec<_> = self.resources.iter().filter(there).collect();
        let of_kind = |wanted: fn(ResourceType) -> bool| {
            let chosen = resources.iter().copied();
            chosen.filter(move |resource| wanted(resource.resource_type))
        };
        let stores = of_kind(ResourceType::is_store).map(|store| self.part(store));
        let databases = self
            .all_app_parts()
            .filter(|part| part.id.resource_type.is_store());
        let (mut workers, in_circles) = in_order(&self.workers());
        workers.extend(in_circles);
        let workers = workers.into_iter().filter(|worker| there(worker));
        let pages = of_kind(|resource_type| resource_type == ResourceType::Pages);
        let answering = workers.chain(pages).map(|resource| self.part(resource));
        stores.chain(databases).chain(answering).collect()
    }

    /// Returns the workers and pages of apps, in the order of their creation.
    #[must_use]
    pub fn parts_of_apps(&self) -> Vec<StackPart> {
        let parts = self.all_app_parts();
        parts
            .filter(|part| !part.id.resource_type.is_store())
            .collect()
    }

    fn all_app_parts(&self) -> impl Iterator<Item = StackPart> {
        let apps = self.apps.iter();
        apps.flat_map(|app| parts_of_app(&app.name, app.app_type, app.with_database))
    }

    fn workers(&self) -> Vec<&ResourceDefinition> {
        let resources = self.resources.iter();
        let workers = resources.filter(|r| r.resource_type == ResourceType::Worker);
        workers.collect()
    }

    fn part(&self, resource: &ResourceDefinition) -> StackPart {
        let bindings = resource.bindings.iter().map(|binding| PartBinding {
            name: binding.name.clone(),
            target: self.target(&binding.resource),
        });
        let script = resource.main_module.as_ref().map(|main_module| Script {
            main_module: main_module.clone(),
            modules: resource.modules.clone(),
        });
        StackPart {
            id: id_of(resource),
            bindings: bindings.collect(),
            vars: resource.vars.clone(),
            script,
        }
    }

    /// Returns the target of a binding: a resource of the stack, or else the database of an app.
    fn target(&self, name: &PartName) -> PartId {
        let mut resources = self.resources.iter();
        let resource = resources.find(|resource| resource.name == *name);
        resource.map_or_else(
            || PartId {
                resource_type: ResourceType::D1,
                name: name.clone(),
                of_app: true,
            },
            id_of,
        )
    }
}

fn id_of(resource: &ResourceDefinition) -> PartId {
    PartId {
        resource_type: resource.resource_type,
        name: resource.name.clone(),
        of_app: false,
    }
}

/// Returns the workers in an order in which each comes after the workers that it is bound to. The second list has the
/// workers without such an order, because their bindings lead to a cycle.
fn in_order<'d>(
    workers: &[&'d ResourceDefinition],
) -> (Vec<&'d ResourceDefinition>, Vec<&'d ResourceDefinition>) {
    let (mut ordered, mut left) = (Vec::new(), workers.to_vec());
    loop {
        let waits = |worker: &ResourceDefinition| {
            let mut bindings = worker.bindings.iter();
            bindings.any(|binding| left.iter().any(|other| other.name == binding.resource))
        };
        let Some(next) = left.iter().position(|worker| !waits(worker)) else {
            return (ordered, left);
        };
        ordered.push(left.remove(next));
    }
}

/// Returns every issue of a definition whose items could all be parsed.
fn issues_of(definition: &StackDefinition) -> Vec<Issue> {
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
        check_cycles(definition, &mut issues);
    }
    issues
}

/// Creates an issue at a path below the definition.
fn issue(path: &[&str], code: &'static str, message: impl Into<String>) -> Issue {
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
        refuse(&["modules"], "invalid", "are allowed only on workers");
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
            refuse(&[field], "invalid", "are allowed only on workers and pages");
        }
    }
}

/// Checks the paths of modules. Modules must fit into one folder as files, and into a form that has a part named
/// `metadata`.
fn check_paths(
    resource: &ResourceDefinition,
    refuse: &mut impl FnMut(&[&str], &'static str, &str),
) {
    for path in resource.modules.keys() {
        let mut folders = path.match_indices('/').map(|(end, _)| &path[..end]);
        let clashes = folders.any(|folder| resource.modules.contains_key(folder));
        if !is_module_path(path) {
            refuse(&["modules", path], "invalid", "is not a valid module path");
        } else if clashes {
            refuse(
                &["modules", path],
                "invalid",
                "is below a path that is a module",
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
        refuse(&["bindings"], "too_long", "must have at most 50 items");
    }
    if resource.vars.len() > MAX_VARS {
        refuse(&["vars"], "too_long", "must have at most 128 items");
    }
    for (name, text) in &resource.vars {
        if text.len() > MAX_VAR_BYTES {
            refuse(&["vars", name], "too_long", "must have at most 5 KiB");
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
        && name.len() <= MAX_IDENTIFIER_CHARS
        && name.bytes().all(good)
}

fn check_target(
    definition: &StackDefinition,
    resource: &ResourceDefinition,
    binding: &BindingDefinition,
) -> Result<(), (&'static str, &'static str)> {
    let Some((resource_type, environment)) = target(definition, &binding.resource) else {
        return Err(("unknown_resource", "is not a resource of the stack"));
    };
    if resource_type == ResourceType::Pages {
        return Err(("invalid", "must not be a pages project"));
    }
    if environment.is_some() && environment != resource.environment {
        return Err(("invalid", "does not exist in the same environments"));
    }
    Ok(())
}

/// Returns the type of a binding's target, and the environment that the target is limited to, if any.
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

fn check_cycles(definition: &StackDefinition, issues: &mut Vec<Issue>) {
    let workers = definition.workers();
    let (_, in_circles) = in_order(&workers);
    for (at, resource) in definition.resources.iter().enumerate() {
        if in_circles.iter().any(|worker| worker.name == resource.name) {
            let path = ["resources", &at.to_string(), "bindings"];
            let message = "form a cycle, or lead to one";
            issues.push(issue(&path, "cycle", message));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use serde_json::{Value, json};

    use crate::kernel::{JsonText, strategy};

    use super::*;

    fn issues(definition: &Value) -> Vec<String> {
        let issues = StackDefinition::parse(&JsonText::of(definition)).err();
        let told = |issue: Issue| format!("{} {}", issue.path[1..].join("."), issue.code);
        issues.into_iter().flatten().map(told).collect()
    }

    #[test]
    fn every_issue_is_reported_with_its_path() {
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
    fn unknown_keys_are_ignored_and_the_schema_example_is_valid() {
        let unknown =
            json!({ "resources": [{ "name": "db", "type": "d1", "size": 9 }], "dns": { "a": 1 } });
        assert!(issues(&unknown).is_empty());
        let schema = schemars::schema_for!(StackDefinition).to_value();
        let example = &schema["examples"][0];
        assert!(issues(example).is_empty(), "{:?}", issues(example));
    }

    proptest! {
        #[test]
        fn any_json_is_parsed_or_refused_with_issues(value in strategy::json()) {
            if let Err(issues) = StackDefinition::parse(&JsonText::of(&value)) {
                prop_assert!(!issues.is_empty());
                prop_assert!(issues.iter().all(|issue| issue.path[0] == FIELD));
            }
        }
    }

    #[test]
    fn stores_come_first_and_workers_follow_the_workers_they_are_bound_to() {
        let bound = |to: &[&str]| {
            let bindings = to.iter().enumerate();
            let bindings =
                bindings.map(|(at, to)| json!({ "name": format!("B{at}"), "resource": to }));
            bindings.collect::<Vec<_>>()
        };
        let definition = json!({
            "resources": [
                { "name": "site", "type": "pages", "bindings": bound(&["front"]) },
                { "name": "front", "type": "worker", "bindings": bound(&["back", "shop-db"]) },
                { "name": "back", "type": "worker", "bindings": bound(&["db"]) },
                { "name": "db", "type": "d1" },
                { "name": "only-dev", "type": "kv", "environment": "dev" },
            ],
            "apps": [{ "name": "shop", "type": "fullstack", "withDatabase": true }],
        });
        let definition = StackDefinition::parse(&JsonText::of(&definition)).unwrap();
        let names = |parts: Vec<StackPart>| -> Vec<String> {
            parts.iter().map(|part| part.id.name.to_string()).collect()
        };
        let made = names(definition.parts(Environment::Prod));
        assert_eq!(made, ["db", "shop-db", "back", "front", "site"]);
        assert_eq!(names(definition.parts_of_apps()), ["shop-svc", "shop"]);
        let in_dev = names(definition.parts(Environment::Dev));
        assert_eq!(in_dev[..3], ["db", "only-dev", "shop-db"]);
    }

    proptest! {
        #[test]
        fn accepted_definitions_create_the_targets_of_bindings_first(
            definition in strategy::from_schema::<StackDefinition>()
                .prop_filter("is accepted", |made| issues_of(made).is_empty()),
            environment in prop::sample::select(Environment::ALL),
        ) {
            let parts = definition.parts(environment).into_iter();
            let mut made = BTreeSet::new();
            for part in parts.chain(definition.parts_of_apps()) {
                for binding in &part.bindings {
                    prop_assert!(made.contains(&binding.target), "{:?}", part);
                }
                prop_assert!(made.insert(part.id));
            }
        }
    }
}
