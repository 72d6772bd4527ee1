//! Every documented route of a service is answered in every spelling, by the row that documents it; those a service does
//! not have yet are named here.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails with the test")]

use std::sync::Arc;

use async_trait::async_trait;
use core_domain::cli::SiteError;
use core_domain::kernel::{ManualClock, Timestamp};
use core_domain::port::{SiteArchives, SiteFile};
use core_http::kernel::Service;
use core_http::kernel::testing::app;
use core_storage::memory::{MemoryConfig, open};
use http::Method;
use serde_json::Value;

const ENDPOINTS: &str = include_str!("../../tests/data/endpoints.json");

/// A service by the name the list of documented endpoints has for it.
struct Landed {
    name: &'static str,
    service: Service,
    /// The ids of documented endpoints it does not have.
    missing: &'static [&'static str],
}

/// The services. A new one is added here.
fn services() -> Vec<Landed> {
    let clock = Arc::new(ManualClock::at(Timestamp::EPOCH));
    let store = open(MemoryConfig {
        clock: clock.clone(),
        cursor_key: [7; 32].into(),
    });
    let app = app(store, clock);
    vec![
        Landed {
            name: "stack_registry",
            service: core_http::stacks::service(app.clone()).unwrap(),
            missing: &[],
        },
        Landed {
            name: "cli",
            service: core_http::cli::service(app, Arc::new(NoArchives)).unwrap(),
            missing: &["cli-113", "cli-114", "cli-117"],
        },
    ]
}

#[derive(Debug)]
struct NoArchives;

#[async_trait]
impl SiteArchives for NoArchives {
    async fn unpack(&self, _: Vec<u8>) -> Result<Vec<SiteFile>, SiteError> {
        Err(SiteError::UnknownFormat)
    }
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
    for landed in services() {
        let Landed { name, service, .. } = &landed;
        for endpoint in documented(name) {
            let method: Method = text(&endpoint, "method").parse().unwrap();
            let own = service.find(&method, &asked(text(&endpoint, "path")), None);
            let own = own.map(|row| row.operation());
            let is_missing = landed.missing.contains(&text(&endpoint, "id"));
            assert_eq!(own.is_none(), is_missing, "{endpoint}");
            if is_missing {
                continue;
            }
            for (path, prefix) in spellings(&endpoint) {
                let found = service.find(&method, &path, prefix.as_deref());
                let found = found.map(|row| row.operation());
                assert_eq!(found, own, "{name} {method} {path} below {prefix:?}");
            }
        }
    }
}

#[test]
fn only_services_that_others_call_inside_have_routes_that_are_not_documented() {
    let called_inside = ["iam", "provisioning", "registry"];
    for Landed { name, service, .. } in services() {
        if called_inside.contains(&name) {
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
