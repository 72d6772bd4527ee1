//! Parts of stacks: the single objects that an activated stack and its apps consist of.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::kernel::{TextError, text, text_enum};
use crate::registry::ResourceType;

text! {
    /// The name of a part in its stack: `^[a-z]([a-z0-9-]*[a-z0-9])?$`, 1 to 44 characters.
    PartName,
    part_name,
    { "type": "string", "minLength": 1, "maxLength": 44, "pattern": "^[a-z]([a-z0-9-]*[a-z0-9])?$", "examples": ["api"] }
}

fn part_name(text: &str) -> Result<String, TextError> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    match text.len() {
        0 => Err(TextError::TooShort),
        45.. => Err(TextError::TooLong),
        _ if text.starts_with(|c: char| c.is_ascii_lowercase())
            && text.ends_with(plain)
            && text.chars().all(|c| plain(c) || c == '-') =>
        {
            Ok(text.to_owned())
        }
        _ => Err(TextError::Malformed),
    }
}

impl PartName {
    /// Returns the name of a part of an app: the name of the app followed by a suffix.
    pub(super) fn of_app(app: &str, suffix: &str) -> Self {
        Self(format!("{app}{suffix}"))
    }
}

/// The identity of a part in its stack.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PartId {
    /// The type of the object.
    pub resource_type: ResourceType,
    /// The name of the part.
    pub name: PartName,
    /// Whether the part belongs to an app. `false` for a resource of the definition.
    pub of_app: bool,
}

impl PartId {
    /// Returns a text that is unique among the parts of the stack, whatever the names of its apps are.
    #[must_use]
    pub fn key(&self) -> String {
        let of = if self.of_app { "app" } else { "resource" };
        format!("{}\n{of}\n{}", self.resource_type, self.name)
    }
}

/// A binding of a worker or site to another part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartBinding {
    /// The name by which the script accesses the target.
    pub name: String,
    /// The part that the binding leads to.
    pub target: PartId,
}

/// The script of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// The path of the module that is run; one of `modules`.
    pub main_module: String,
    /// The source text of each module, by path.
    pub modules: BTreeMap<String, String>,
}

/// An object that is created for a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackPart {
    /// The identity of the part.
    pub id: PartId,
    /// The parts that the object can access.
    pub bindings: Vec<PartBinding>,
    /// The plain-text variables that the object can read, by name.
    pub vars: BTreeMap<String, String>,
    /// The script of a worker. `None` for a worker that starts with a default script, and for all other parts.
    pub script: Option<Script>,
}

impl StackPart {
    /// Creates a part without settings.
    pub(super) const fn plain(id: PartId) -> Self {
        Self {
            id,
            bindings: Vec::new(),
            vars: BTreeMap::new(),
            script: None,
        }
    }
}

text! {
    /// The name of an app: `^[a-z][a-z0-9-]*[a-z0-9]$`, 2 to 40 characters.
    AppName,
    app_name,
    { "type": "string", "minLength": 2, "maxLength": 40, "pattern": "^[a-z][a-z0-9-]*[a-z0-9]$", "examples": ["shop"] }
}

fn app_name(text: &str) -> Result<String, TextError> {
    match text.len() {
        0..2 => Err(TextError::TooShort),
        41.. => Err(TextError::TooLong),
        _ => PartName::parse(text).map(|name| name.as_str().to_owned()),
    }
}

text_enum! {
    /// The type of an app, which determines its parts.
    pub enum AppType {
        /// A site: a pages project `{name}`.
        App = "app",
        /// A service: a worker `{name}-svc` that starts with a default script.
        Service = "svc",
        /// A site and a service. The site accesses the service through the binding `API`.
        Fullstack = "fullstack",
    }
}

/// The binding of a site to the service of its app.
const API: &str = "API";
/// The binding of a service, or of a site without a service, to the database of its app.
const DATABASE: &str = "DB";

/// Returns the parts of an app, in the order of their creation. The database `{name}-db` is bound to the service, or to
/// the site if there is no service.
#[must_use]
pub fn parts_of_app(app: &AppName, app_type: AppType, with_database: bool) -> Vec<StackPart> {
    let part = |resource_type, suffix| PartId {
        resource_type,
        name: PartName::of_app(app.as_str(), suffix),
        of_app: true,
    };
    let binding = |name: &str, target: &PartId| PartBinding {
        name: name.to_owned(),
        target: target.clone(),
    };
    let mut parts: Vec<StackPart> = Vec::new();
    if with_database {
        parts.push(StackPart::plain(part(ResourceType::D1, "-db")));
    }
    let mut reaches: Vec<PartBinding> = parts
        .iter()
        .map(|database| binding(DATABASE, &database.id))
        .collect();
    if app_type != AppType::App {
        let service = part(ResourceType::Worker, "-svc");
        parts.push(StackPart {
            bindings: std::mem::replace(&mut reaches, vec![binding(API, &service)]),
            ..StackPart::plain(service)
        });
    }
    if app_type != AppType::Service {
        parts.push(StackPart {
            bindings: reaches,
            ..StackPart::plain(part(ResourceType::Pages, ""))
        });
    }
    parts
}

#[cfg(test)]
mod tests {

    use super::*;

    fn describe_parts(app_type: AppType, with_database: bool) -> Vec<String> {
        let app = AppName::parse("shop").unwrap();
        let told = |part: StackPart| {
            let bindings = part.bindings.iter();
            let bindings = bindings.map(|b| format!(" {}={}", b.name, b.target.name));
            let bindings: String = bindings.collect();
            format!("{}:{}{bindings}", part.id.resource_type, part.id.name)
        };
        let parts = parts_of_app(&app, app_type, with_database);
        parts.into_iter().map(told).collect()
    }

    #[test]
    fn an_app_is_a_site_or_a_service_or_both_and_the_database_is_bound_to_one_of_them() {
        use AppType::{App, Fullstack, Service};
        assert_eq!(describe_parts(App, false), ["pages:shop"]);
        assert_eq!(
            describe_parts(App, true),
            ["d1:shop-db", "pages:shop DB=shop-db"]
        );
        assert_eq!(describe_parts(Service, false), ["worker:shop-svc"]);
        let service = "worker:shop-svc DB=shop-db";
        assert_eq!(describe_parts(Service, true), ["d1:shop-db", service]);
        let all = ["d1:shop-db", service, "pages:shop API=shop-svc"];
        assert_eq!(describe_parts(Fullstack, true), all);
    }
}
