//! Apps of stacks, and what each kind of app is made of.

use super::part::{PartBinding, PartId, PartName, StackPart};
use crate::kernel::{TextError, text, text_enum};
use crate::registry::ResourceType;

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
    /// What an app is made of.
    pub enum AppType {
        /// A site: a pages project `{name}`.
        App = "app",
        /// A service: a worker `{name}-svc` that begins with a script of ours.
        Service = "svc",
        /// Both. The site reaches the service by the binding `API`.
        Fullstack = "fullstack",
    }
}

/// The binding of a site to the service of its app.
const API: &str = "API";
/// The binding of a service, or of a site without one, to the database of its app.
const DATABASE: &str = "DB";

/// What an app is made of, in the order in which it is made. Its database `{name}-db` is bound to its service, or to its
/// site when it has no service.
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

    fn made_of(app_type: AppType, with_database: bool) -> Vec<String> {
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
    fn an_app_is_a_site_a_service_or_both_and_its_database_is_bound_to_what_answers_requests() {
        use AppType::{App, Fullstack, Service};
        assert_eq!(made_of(App, false), ["pages:shop"]);
        assert_eq!(made_of(App, true), ["d1:shop-db", "pages:shop DB=shop-db"]);
        assert_eq!(made_of(Service, false), ["worker:shop-svc"]);
        let service = "worker:shop-svc DB=shop-db";
        assert_eq!(made_of(Service, true), ["d1:shop-db", service]);
        let all = ["d1:shop-db", service, "pages:shop API=shop-svc"];
        assert_eq!(made_of(Fullstack, true), all);
    }
}
