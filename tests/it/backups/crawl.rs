//! A crawl: every GET that the ids in earlier responses make possible, and the responses.

use std::collections::{BTreeMap, BTreeSet};

use core_http::kernel::testing::Answer;
use core_http::kernel::{Endpoint, Service};
use core_suite::Suite;
use http::Method;
use serde_json::Value;

use crate::world::{Call, Installation, SERVICE_KEY};

/// Number of values that are tried for each parameter of a path.
const MAX_VALUES: usize = 3;

/// Number of rounds of a crawl. Each uses the ids in the responses of the rounds before.
const ROUNDS: usize = 4;

/// The fields that differ between two equal installations, by the end of the path.
///
/// A verification is recorded in the chain that it verifies. A background task seals the record later, which moves the
/// end of the chain and all counts. The verdict, the start and the problems are compared.
const VARYING_FIELDS: [(&str, &[&str]); 1] = [(
    "/api/v1/audit/verify",
    &[
        "to",
        "checked",
        "complete",
        "unsealed",
        "head",
        "installation",
    ],
)];

/// The ends of paths whose responses differ between two equal installations: challenges are random, and the others
/// report the state of the process.
const VARYING_PATHS: [&str; 5] = ["-options", "/health", "/livez", "/readyz", "/metrics"];

const EVENTS: &str = "/api/v1/events";
const INVOICE: &str = "/invoices/{invoiceId}";

/// A recorded response.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Response {
    status: u16,
    content_type: String,
    pub(super) body: Vec<u8>,
}

impl Response {
    fn of(path: &str, answer: &Answer) -> Self {
        let path = path.split('?').next().unwrap_or_default();
        let varying = VARYING_FIELDS.iter().find(|(end, _)| path.ends_with(end));
        let body = varying.map_or_else(
            || answer.bytes.to_vec(),
            |(_, names)| {
                let mut json = answer.json.clone();
                let fields = json.as_object_mut().unwrap();
                for name in *names {
                    assert!(fields.remove(*name).is_some(), "{path} has no {name}");
                }
                json.to_string().into_bytes()
            },
        );
        Self {
            status: answer.status.as_u16(),
            content_type: answer.header("content-type").to_owned(),
            body,
        }
    }

    fn describe(&self) -> String {
        let text = String::from_utf8_lossy(&self.body);
        format!("{} {}: {text}", self.status, self.content_type)
    }
}

/// The successful responses of a crawl, by service and request.
pub(super) struct Crawl(pub(super) BTreeMap<String, Response>);

impl Crawl {
    #[track_caller]
    pub(super) fn assert_equal(&self, copy: &Self) {
        self.assert_covers_every_format();
        for (request, own) in &self.0 {
            let other = copy.0.get(request);
            assert!(
                Some(own) == other,
                "{request}\n{}\n{}",
                own.describe(),
                other.map_or_else(|| "no success".to_owned(), Response::describe)
            );
        }
        assert_eq!(self.0.len(), copy.0.len());
    }

    /// Asserts that the crawl has many responses, in every format that the services have.
    #[track_caller]
    fn assert_covers_every_format(&self) {
        assert!(self.0.len() > 60, "{}", self.0.len());
        for (service, content_type) in [
            ("registry", "application/json"),
            ("registry", "application/x-ndjson"),
            ("registry", "text/csv"),
            ("registry", "text/event-stream"),
            ("cli", "text/event-stream"),
            ("iam", "text/html"),
            ("billing", "text/html"),
        ] {
            let is_in_format = |(request, response): (&String, &Response)| {
                request.starts_with(&format!("{service} "))
                    && response.content_type.starts_with(content_type)
                    && !response.body.is_empty()
            };
            assert!(
                self.0.iter().any(is_in_format),
                "no {content_type} of {service}"
            );
        }
        let verdicts = self.0.iter().filter(|(request, _)| {
            VARYING_FIELDS
                .iter()
                .any(|(path, _)| request.contains(path))
        });
        let verdicts: Vec<Value> = verdicts
            .map(|(_, response)| serde_json::from_slice(&response.body).unwrap())
            .collect();
        // The chain of the installation and that of the platform.
        assert!(verdicts.len() >= 2, "{verdicts:?}");
        for verdict in verdicts {
            assert_eq!(verdict["valid"], true, "{verdict}");
        }
    }
}

fn services(suite: &Suite) -> [(&'static str, Service); 6] {
    [
        ("iam", suite.iam()),
        ("registry", suite.registry()),
        ("provisioning", suite.provisioning()),
        ("cli", suite.cli()),
        ("billing", suite.billing()),
        ("stacks", suite.stacks()),
    ]
}

/// The texts of responses that can be parameters of paths, by the name of their field.
#[derive(Default)]
struct KnownValues(BTreeMap<String, BTreeSet<String>>);

impl KnownValues {
    fn read(&mut self, value: &Value) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.read(item)),
            Value::Object(fields) => {
                for (name, value) in fields {
                    if let Some(text) = value.as_str().filter(|text| is_segment(text)) {
                        self.0
                            .entry(name.clone())
                            .or_default()
                            .insert(text.to_owned());
                    }
                    self.read(value);
                }
            }
            _ => {}
        }
    }

    /// Returns values for a parameter: those of fields with its name, and for a parameter of the path the ids of all
    /// records.
    fn values(&self, parameter: &str, is_in_query: bool) -> Vec<&String> {
        let own = self.0.get(parameter).into_iter().flatten().take(MAX_VALUES);
        let ids = self.0.get("id").filter(|_| !is_in_query);
        own.chain(ids.into_iter().flatten()).collect()
    }

    /// Returns the path and query with each combination of values.
    fn fill_in(&self, path: &str) -> Vec<String> {
        let Some((before, rest)) = path.split_once('{') else {
            return vec![path.to_owned()];
        };
        let (parameter, after) = rest.split_once('}').unwrap();
        let values = self.values(parameter, before.contains('?')).into_iter();
        let filled = values.map(|value| format!("{before}{value}{after}"));
        filled
            .flat_map(|path| self.fill_in(&path))
            .take(400)
            .collect()
    }
}

fn is_segment(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    !text.is_empty() && text.len() <= 64 && text.bytes().all(fits)
}

fn is_stable(row: &Endpoint) -> bool {
    let path = row.path();
    *row.method() == Method::GET && !VARYING_PATHS.iter().any(|end| path.ends_with(end))
}

/// Returns the queries with which a path is requested.
fn queries(path: &str) -> &'static [&'static str] {
    match path {
        "/api/v1/audit/export" => &["", "?format=csv"],
        // The streams end after the existing events and lines.
        EVENTS => &["?follow=false"],
        _ if path.ends_with("/logs") => &["?follow=false"],
        _ if path.contains("{platformId}") => &[""],
        _ => &["", "?platformId={platformId}"],
    }
}

/// Returns the requests for a path as each caller: the holder of the service key, and in IAM the user with this cookie.
fn calls(service: &str, row: &Endpoint, path: &str, cookie: &str) -> Vec<(&'static str, Call)> {
    let as_operator = Call::get(path).bearer(SERVICE_KEY);
    match (service, row.path()) {
        ("iam", _) => {
            let as_user = Call::get(path).header("cookie", cookie);
            vec![("", as_operator), (" as the user", as_user)]
        }
        (_, EVENTS) => vec![("", as_operator.header("last-event-id", "0"))],
        (_, INVOICE) => {
            let page = as_operator.clone().header("accept", "text/html");
            vec![("", as_operator), (" as a page", page)]
        }
        _ => vec![("", as_operator)],
    }
}

/// Sends every GET that the ids of earlier responses make possible. Keeps the successful responses.
pub(super) async fn crawl(suite: &Suite, cookie: &str) -> Crawl {
    let (mut known, mut requests) = (KnownValues::default(), BTreeSet::new());
    let mut responses = BTreeMap::new();
    for _ in 0..ROUNDS {
        for (name, service) in services(suite) {
            for row in service.endpoints().iter().filter(|row| is_stable(row)) {
                let paths = queries(row.path()).iter();
                let paths =
                    paths.flat_map(|query| known.fill_in(&format!("{}{query}", row.path())));
                for path in paths.collect::<Vec<_>>() {
                    for (caller, call) in calls(name, row, &path, cookie) {
                        let request = format!("{name} {path}{caller}");
                        if !requests.insert(request.clone()) {
                            continue;
                        }
                        let answer = suite.send(name, call).await;
                        if answer.status.is_success() {
                            known.read(&answer.json);
                            responses.insert(request, Response::of(&path, &answer));
                        }
                    }
                }
            }
        }
    }
    Crawl(responses)
}
