//! What a stack is made of: the keys of a `stackDefinition` that are known, their rules, and the order in which it is made.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{AppName, AppType, PartBinding, PartId, PartName, Script, StackPart, parts_of_app};
use crate::kernel::{Environment, Issue, JsonText};
use crate::registry::{FeatureVersion, NewFeatureId, ResourceType};

/// The field of a request that holds a definition; the paths of all issues begin with it.
const FIELD: &str = "stackDefinition";

/// The longest name of a binding.
const MAX_IDENTIFIER: usize = 64;

/// The longest path of a module, the most texts, and the most bytes of one: what every provider takes.
const MAX_MODULE_PATH: usize = 200;
const MAX_VARS: usize = 128;
const MAX_VAR_BYTES: usize = 5 * 1024;

/// Every issue of a definition whose items could be read.
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
        check_circles(definition, &mut issues);
    }
    issues
}

/// An issue at a path below the definition.
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

impl StackDefinition {
    /// What is made in an environment: stores, those of apps included, then workers, each after those it is bound to, then
    /// pages. What else apps are made of comes after the features, see [`StackDefinition::parts_of_apps`].
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
            .all_of_apps()
            .filter(|part| part.id.resource_type.is_store());
        let (mut workers, in_circles) = in_order(&self.workers());
        workers.extend(in_circles);
        let workers = workers.into_iter().filter(|worker| there(worker));
        let pages = of_kind(|resource_type| resource_type == ResourceType::Pages);
        let answering = workers.chain(pages).map(|resource| self.part(resource));
        stores.chain(databases).chain(answering).collect()
    }

    /// The workers and pages of apps, in order.
    #[must_use]
    pub fn parts_of_apps(&self) -> Vec<StackPart> {
        let parts = self.all_of_apps();
        parts
            .filter(|part| !part.id.resource_type.is_store())
            .collect()
    }

    fn all_of_apps(&self) -> impl Iterator<Item = StackPart> {
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

    /// What a binding leads to: a resource, or else the database of an app.
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

/// The workers, each after those it is bound to; and those for which there is no order, because their bindings lead in
/// circles.
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

/// The most resources, features or apps of a definition.
const MAX_ITEMS: usize = 50;

/// What a stack is made of. A definition is an object of any keys and at most 256 KiB, kept as it came; these keys have a
/// meaning, and are checked when a version is published:
///
/// - the names of resources and of what apps are made of (`{app}`, `{app}-svc`, `{app}-db`) are unique;
/// - `modules`, of which `mainModule` is one, are for workers; a path has letters, digits and `._-+@$()[]` between slashes,
///   and is not `metadata`; `bindings` and `vars`, whose names are unique, are for workers and pages; there are at most 128
///   `vars` of 5 KiB each;
/// - a binding names another resource of the stack, or the database of one of its apps, that is there in the same
///   environments and is no pages project, and bindings of workers make no circle.
///
/// Stores are made first, then workers, each after those it is bound to, then pages, features and apps.
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
    /// Its resources.
    #[serde(default)]
    #[schemars(length(max = MAX_ITEMS))]
    pub resources: Vec<ResourceDefinition>,
    /// The features that its entity shall have.
    #[serde(default)]
    #[schemars(length(max = MAX_ITEMS))]
    pub features: Vec<FeatureDefinition>,
    /// The apps it begins with.
    #[serde(default)]
    #[schemars(length(max = MAX_ITEMS))]
    pub apps: Vec<AppDefinition>,
}

/// A resource of a stack.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceDefinition {
    /// Its name in the stack, and the service name of its entry in the catalogue.
    pub name: PartName,
    /// What kind of object it is.
    #[serde(rename = "type")]
    pub resource_type: ResourceType,
    /// The environment it is there in; all when not said.
    pub environment: Option<Environment>,
    /// For a worker, the text of each module by its path. A worker without begins with a script of ours.
    #[serde(default)]
    pub modules: BTreeMap<String, String>,
    /// For a worker with modules, the one that is run.
    pub main_module: Option<String>,
    /// What a worker or a pages project can reach.
    #[serde(default)]
    #[schemars(length(max = MAX_ITEMS))]
    pub bindings: Vec<BindingDefinition>,
    /// Texts that a worker or a pages project can read, by name: no secrets. The names are as those of bindings.
    #[serde(default)]
    pub vars: BTreeMap<String, String>,
}

/// What a resource of a stack can reach.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BindingDefinition {
    /// What the script calls it: an identifier.
    #[schemars(length(min = 1, max = 64), regex(pattern = "^[A-Za-z_][A-Za-z0-9_]*$"), extend("examples" = ["DB"]))]
    pub name: String,
    /// The resource, by its name in the stack.
    pub resource: PartName,
}

/// A feature of a stack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FeatureDefinition {
    /// The feature.
    pub id: NewFeatureId,
    /// Its version.
    pub version: FeatureVersion,
}

/// An app of a stack.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppDefinition {
    /// Its name.
    pub name: AppName,
    /// What it is made of.
    #[serde(rename = "type")]
    pub app_type: AppType,
    /// Whether it has a database.
    #[serde(default)]
    pub with_database: bool,
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

    #[test]
    fn stores_come_first_and_each_worker_after_those_it_is_bound_to() {
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
        fn whatever_is_accepted_is_made_in_an_order_in_which_bindings_lead_to_what_is_there(
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
