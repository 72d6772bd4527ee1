//! The complete suite's responses to unauthenticated callers and to malformed requests: every endpoint of every
//! service, through the gateway and directly.

use core_domain::access::Requirement;
use core_http::kernel::testing::Answer;
use core_http::kernel::{Endpoint, Service};
use core_suite::Suite;
use http::Method;

use crate::world::{Backend, Call, Fresh, SERVICE_KEY};

/// An id that stands for everything that a path names.
const UNKNOWN_ID: &str = "0198c0de-0000-7000-8000-000000000000";

fn services(suite: &Suite) -> [(&'static str, Service); 5] {
    [
        ("iam", suite.iam()),
        ("platforms", suite.registry()),
        ("provisioning", suite.provisioning()),
        ("cli", suite.cli()),
        ("stacks", suite.stacks()),
    ]
}

/// Returns the endpoint's path with this text in place of every parameter.
fn path(row: &Endpoint, text: &str) -> String {
    let segments = row.path().split('/');
    let filled = segments.map(|segment| {
        if segment.starts_with('{') {
            text
        } else {
            segment
        }
    });
    filled.collect::<Vec<_>>().join("/")
}

fn call(row: &Endpoint, path: impl Into<String>) -> Call {
    match *row.method() {
        Method::GET | Method::DELETE => Call::new(row.method().clone(), path),
        _ => Call::upload(path, "application/json", "{}").by(row.method()),
    }
}

#[track_caller]
fn assert_refused(what: &str, answer: &Answer, status: u16) {
    assert_eq!(answer.status.as_u16(), status, "{what}: {}", answer.json);
    assert!(!answer.code().is_empty(), "{what}: {}", answer.json);
}

#[tokio::test]
async fn requests_without_a_valid_credential_are_refused() {
    let suite = Fresh::on(Backend::Memory).await.suite().await;
    for (name, service) in services(&suite) {
        for row in service.endpoints() {
            let what = format!("{name} {} {}", row.method(), row.path());
            let own = path(row, UNKNOWN_ID);
            if row.requirement() != Requirement::Public {
                let wrong = call(row, &own).bearer("wrong-credential");
                assert_refused(&what, &wrong.to(service.clone()).await, 401);
            }
            let through = call(row, format!("/api/v1/{name}{own}"));
            if row.path().starts_with("/internal/") {
                let operator = through.bearer(SERVICE_KEY);
                assert_refused(&what, &operator.to(suite.gateway()).await, 404);
                continue;
            }
            let answer = through.to(suite.gateway()).await;
            assert_refused(&what, &answer, 401);
            assert_eq!(answer.header("www-authenticate"), "Bearer", "{what}");
        }
    }
}

#[tokio::test]
async fn line_45_malformed_paths_and_queries_never_return_5xx() {
    let suite = Fresh::on(Backend::Memory).await.suite().await;
    let long = "x".repeat(4_000);
    let odd = [
        "%00",
        "%ff",
        "%C3%A4",
        "..%2f..",
        "'%20OR%201=1--",
        "-1",
        &long,
    ];
    let queries = [
        "limit=99999999999999999999",
        "cursor=%00",
        "limit=1&limit=2",
        "%00=1",
        "wait=x",
        "status=nonsense",
        "from=yesterday",
        "platformId=%00",
        "sort=;drop",
    ];
    for (_, service) in services(&suite) {
        for row in service.endpoints() {
            let named = odd.iter().filter(|_| row.path().contains('{'));
            let mut paths: Vec<String> = named.map(|text| path(row, text)).collect();
            if row.method() == Method::GET {
                let asked = queries
                    .iter()
                    .map(|query| format!("{}?{query}", path(row, UNKNOWN_ID)));
                paths.extend(asked);
            }
            for path in paths {
                let asked = call(row, &path).bearer(SERVICE_KEY);
                let status = asked.status_of(service.clone()).await.as_u16();
                assert!(status < 500, "{} {path}: {status}", row.method());
            }
        }
    }
}
