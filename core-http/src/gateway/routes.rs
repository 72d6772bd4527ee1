//! The routes of the services, and their rate classes.

use std::collections::HashMap;
use std::sync::Arc;

use core_domain::gateway::{RateClass, Route};
use core_domain::kernel::TextValue;
use http::Method;

use super::config::ConfigError;
use crate::kernel::Service;

/// The properties of a route that rate limiting needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteClass<'r> {
    /// The rate class, which limits how many requests a client may send to the route.
    pub class: RateClass,
    /// The name of the route, unique within its service. Requests to a strict route are counted together, whatever the
    /// parameters in their paths.
    pub endpoint: &'r str,
    /// The path with its parameters, such as `/platforms/{platformId}`; `None` if the route has none. It becomes the
    /// `http.route` of spans.
    pub template: Option<&'r str>,
}

/// The routes of a service.
pub trait RouteClasses: Send + Sync + std::fmt::Debug {
    /// Returns the route for a method and the path after the prefix; `None` if there is none. All requests of a client
    /// to routes that do not exist are counted together.
    fn class(&self, method: &Method, route: &Route) -> Option<RouteClass<'_>>;
}

impl RouteClasses for Service {
    fn class(&self, method: &Method, route: &Route) -> Option<RouteClass<'_>> {
        let prefix = (!route.prefix.is_empty()).then_some(route.prefix);
        if let Some(endpoint) = self.find(method, &route.forwarded_path, prefix) {
            return Some(RouteClass {
                class: endpoint.rate_class(),
                endpoint: endpoint.operation(),
                template: Some(endpoint.path()),
            });
        }
        Self::is_built_in(method, &route.forwarded_path).then_some(RouteClass {
            class: RateClass::Default,
            endpoint: "built-in",
            template: None,
        })
    }
}

impl<R: RouteClasses + ?Sized> RouteClasses for Arc<R> {
    fn class(&self, method: &Method, route: &Route) -> Option<RouteClass<'_>> {
        (**self).class(method, route)
    }
}

/// A list of routes, for a service that runs in another process.
#[derive(Debug, Default)]
pub struct RouteTable {
    router: matchit::Router<usize>,
    paths: Vec<PathMethods>,
}

/// The methods of a path. The key `None` stands for every method.
#[derive(Debug, Default)]
struct PathMethods {
    path: String,
    methods: HashMap<Option<Method>, RateClass>,
}

fn error(line: &str, problem: impl std::fmt::Display) -> ConfigError {
    ConfigError {
        setting: "routes",
        problem: format!("{line:?} {problem}"),
    }
}

impl RouteTable {
    /// Parses lines such as `POST /api/auth/sign-in/email strict`.
    ///
    /// A line has a method or `*`, the path after the gateway's prefix, and optionally the class `default` or `strict`.
    /// Parameters in the path are `{name}` and `{*rest}`. Default class: `default`.
    ///
    /// # Errors
    /// [`ConfigError`] with the first line that is not a valid route.
    pub fn parse<L: AsRef<str>>(lines: impl IntoIterator<Item = L>) -> Result<Self, ConfigError> {
        let mut table = Self::default();
        for line in lines {
            table.add(line.as_ref())?;
        }
        Ok(table)
    }

    fn add(&mut self, line: &str) -> Result<(), ConfigError> {
        let form = || error(line, "must have the form METHOD /path [default|strict]");
        let mut words = line.split_ascii_whitespace();
        let (Some(method), Some(path), class, None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(form());
        };
        let method = match method {
            "*" => None,
            word => Some(word.parse::<Method>().map_err(|_| form())?),
        };
        let class = class.map_or(Some(RateClass::Default), RateClass::from_text);
        let class = class.filter(|_| path.starts_with('/')).ok_or_else(form)?;
        let listed = self
            .path_methods(path)
            .map_err(|problem| error(line, problem))?;
        match listed.methods.insert(method, class) {
            None => Ok(()),
            Some(_) => Err(error(line, "occurs twice")),
        }
    }

    fn path_methods(&mut self, path: &str) -> Result<&mut PathMethods, matchit::InsertError> {
        let at = match self.paths.iter().position(|listed| listed.path == path) {
            Some(at) => at,
            None => {
                self.router.insert(path, self.paths.len())?;
                self.paths.push(PathMethods {
                    path: path.to_owned(),
                    methods: HashMap::new(),
                });
                self.paths.len() - 1
            }
        };
        Ok(&mut self.paths[at])
    }
}

impl RouteClasses for RouteTable {
    fn class(&self, method: &Method, route: &Route) -> Option<RouteClass<'_>> {
        let at = *self.router.at(&route.forwarded_path).ok()?.value;
        let listed = self.paths.get(at)?;
        // A GET route also matches HEAD.
        let asked = if method == Method::HEAD {
            Method::GET
        } else {
            method.clone()
        };
        let methods = &listed.methods;
        let class = methods.get(&Some(asked)).or_else(|| methods.get(&None))?;
        Some(RouteClass {
            class: *class,
            endpoint: &listed.path,
            template: Some(&listed.path),
        })
    }
}

#[cfg(test)]
mod tests {
    use core_domain::kernel::SuiteService;

    use super::*;

    fn class(table: &RouteTable, method: Method, rest: &str) -> Option<RateClass> {
        let route = Route {
            service: SuiteService::Iam,
            prefix: "/api/v1/iam",
            forwarded_path: rest.to_owned(),
        };
        table.class(&method, &route).map(|found| found.class)
    }

    #[test]
    fn a_table_finds_only_its_own_routes() {
        let table = RouteTable::parse([
            "POST /api/auth/sign-in/email strict",
            "GET /api/sessions",
            "DELETE /api/sessions/{id} default",
            "* /files/{*rest}",
        ])
        .unwrap();
        let (default, strict) = (Some(RateClass::Default), Some(RateClass::Strict));
        for (method, path, expected) in [
            (Method::POST, "/api/auth/sign-in/email", strict),
            (Method::GET, "/api/auth/sign-in/email", None),
            (Method::HEAD, "/api/sessions", default),
            (Method::DELETE, "/api/sessions/s-1", default),
            (Method::DELETE, "/api/sessions/s-1/x", None),
            (Method::PUT, "/files/a/b", default),
            (Method::GET, "/", None),
        ] {
            assert_eq!(
                class(&table, method.clone(), path),
                expected,
                "{method} {path}"
            );
        }
    }

    #[test]
    fn line_56_invalid_and_repeated_lines_are_refused() {
        for bad in [
            "",
            "GET",
            "GET path",
            "GET /a lenient",
            "GET /a strict more",
            "G T /a",
            "(T) /a",
            "GET /{a",
        ] {
            assert!(RouteTable::parse([bad]).is_err(), "{bad}");
        }
        assert!(RouteTable::parse(["GET /a", "GET /a strict"]).is_err());
        assert!(RouteTable::parse(["GET /{a}/x", "GET /{b}/x"]).is_err());
    }
}
