//! Every documented route is answered in every spelling, by the row that documents it.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails with the test")]

use std::sync::Arc;

use core_domain::kernel::{ManualClock, Timestamp};
use core_http::kernel::Service;
use core_http::kernel::testing::app;
use core_storage::memory::{MemoryConfig, open};
use http::Method;
use serde_json::Value;

const ENDPOINTS: &str = include_str!("../../tests/data/endpoints.json");

/// The services, by the names the list of documented endpoints uses. A new service is added here.
fn services() -> Vec<(&'static str, Service)> {
    let clock = Arc::new(ManualClock::at(Timestamp::EPOCH));
    let store = open(MemoryConfig {
        clock: clock.clone(),
        cursor_key: [7; 32].into(),
    });
    let app = app(store, clock);
    vec![("stack_registry", core_http::stacks::service(app).unwrap())]
}

fn documented(service: &str) -> Vec<Value> {
    let all: Vec<Value> = serde_json::from_str(ENDPOINTS).unwrap();
    let of_service: Vec<Value> = all
        .into_iter()
        .filter(|e| e["service"] == service)
        .collect();
    assert!(!of_service.is_empty(), "{service} is documented");
    of_service
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}

/// A path a client could ask for: parameters and the star are filled in.
fn asked(pattern: &str) -> String {
    let segments = pattern.split('/').map(|segment| match segment {
        "*" => "some/thing",
        s if s.starts_with('{') => "x1",
        s => s,
    });
    segments.collect::<Vec<_>>().join("/")
}

/// All (path, prefix taken off) under which the endpoint must be found.
fn spellings(endpoint: &Value) -> Vec<(String, Option<String>)> {
    let path = text(endpoint, "path");
    let mut spellings = vec![(asked(path), None)];
    for alias in endpoint["aliases"].as_array().into_iter().flatten() {
        spellings.push((asked(alias.as_str().unwrap()), None));
    }
    let gateway = &endpoint["gateway_path"];
    if let Some(prefix) = text(gateway, "literal").strip_suffix(path) {
        spellings.push((asked(path), Some(prefix.to_owned())));
    }
    let (natural, rest) = (
        text(gateway, "natural"),
        text(gateway, "reaches_natural_as"),
    );
    // Where two services share a prefix the rest names another service in words.
    if rest.starts_with('/') && !rest.contains(' ') {
        let prefix = natural.strip_suffix(rest).unwrap_or(natural);
        spellings.push((asked(rest), None));
        spellings.push((asked(rest), Some(prefix.to_owned())));
    }
    spellings
}

#[test]
fn every_documented_route_is_answered_in_every_spelling_by_one_and_the_same_row() {
    for (name, service) in services() {
        for endpoint in documented(name) {
            let method: Method = text(&endpoint, "method").parse().unwrap();
            let own = service.find(&method, &asked(text(&endpoint, "path")), None);
            let own = own.map(|row| row.operation());
            assert!(own.is_some(), "{endpoint}");
            for (path, prefix) in spellings(&endpoint) {
                let found = service.find(&method, &path, prefix.as_deref());
                let found = found.map(|row| row.operation());
                assert_eq!(found, own, "{name} {method} {path} below {prefix:?}");
            }
        }
    }
}

#[test]
fn the_stack_registry_has_no_route_that_is_not_documented() {
    for (name, service) in services() {
        if name != "stack_registry" {
            continue;
        }
        let documented = documented(name);
        for row in service.endpoints() {
            let known = documented.iter().any(|endpoint| {
                text(endpoint, "method") == row.method().as_str()
                    && text(endpoint, "path") == row.path()
            });
            assert!(known, "{} {}", row.method(), row.path());
        }
    }
}
