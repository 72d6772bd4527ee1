//! Tests of the requests of every operation against Cloudflare's OpenAPI description.

use std::collections::BTreeMap;
use std::path::Path;

use core_cloudflare_fake::contract::Contract;
use core_cloudflare_fake::{Exchange, Settings};
use http::Request;
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;

use crate::operations::all;
use crate::world::World;

const DOCUMENT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../tests/data/cloudflare-api.json"
);

/// Every client that lists queues sends this parameter, including the reference client. Without it, a queue after the
/// first page would not be found.
const NOT_DESCRIBED: &str = "query name: there is no such parameter";

/// The variable with the base URL of the mock that `tests/mock` starts.
const MOCK: &str = "CORE_TEST_CLOUDFLARE_MOCK";

/// Returns the requests of all operations and of their preparation, with the responses.
async fn exchanges() -> Vec<Exchange> {
    let mut exchanges = Vec::new();
    for operation in all() {
        let settings = Settings {
            record_exchanges: true,
            ..Settings::default()
        };
        let world = World::with(settings, |_| ()).await;
        operation.prepare(&world).await.unwrap();
        operation.perform(&world).await.unwrap();
        exchanges.extend(world.fake.exchanges());
    }
    exchanges
}

#[tokio::test]
async fn every_request_matches_the_description() {
    let contract = Contract::read(Path::new(DOCUMENT)).unwrap();
    let mut violations = Vec::new();
    for exchange in exchanges().await {
        let finding = contract.check(&exchange);
        let unknown = finding
            .operation
            .is_none()
            .then(|| "the operation is not in the description".to_owned());
        let found = finding.violations.into_iter().chain(unknown);
        let is_queue = exchange.recorded.path.ends_with("/queues");
        let found = found.filter(|violation| !(is_queue && violation == NOT_DESCRIBED));
        violations.extend(found.map(|violation| format!("{:?} {violation}", exchange.recorded)));
    }
    violations.sort_unstable();
    violations.dedup();
    assert!(violations.is_empty(), "{}", violations.join("\n"));
}

/// Returns one request of each kind. Requests of one kind have the same path except for ids and names.
fn distinct(exchanges: Vec<Exchange>) -> impl Iterator<Item = Exchange> {
    let kind = |exchange: &Exchange| {
        let path = exchange.recorded.path.split('/').map(|segment| {
            let is_name = segment.contains(|c: char| c.is_ascii_digit()) || segment.contains('.');
            if is_name { "*" } else { segment }
        });
        let names: Vec<_> = exchange
            .query
            .iter()
            .map(|(name, _)| name.clone())
            .collect();
        (
            exchange.recorded.method.clone(),
            path.collect::<Vec<_>>().join("/"),
            names,
        )
    };
    let by_kind: BTreeMap<_, _> = exchanges.into_iter().map(|e| (kind(&e), e)).collect();
    by_kind.into_values()
}

/// Validates with a second, third-party validator.
#[tokio::test]
#[ignore = "needs the mock that tests/mock starts"]
async fn mock_of_the_description_accepts_every_request() {
    let mock = std::env::var_os(MOCK).unwrap().into_string().unwrap();
    let client = Client::builder(TokioExecutor::new()).build_http();
    let (mut sent, mut violations) = (0, Vec::new());
    for exchange in distinct(exchanges().await) {
        let query = form(&exchange.query);
        let path = &exchange.recorded.path;
        let mut request = Request::builder()
            .method(exchange.recorded.method.as_str())
            .uri(format!("{mock}{path}?{query}"))
            .header("authorization", "Bearer token");
        if let Some(content_type) = &exchange.request_type {
            request = request.header("content-type", content_type);
        }
        let request = request.body(Full::new(exchange.request.clone())).unwrap();
        let answered = client.request(request).await.unwrap();
        sent += 1;
        let violation = answered.headers().get("sl-violations");
        let is_refused = answered.status().is_client_error();
        if let Some(violation) = violation.filter(|_| is_refused) {
            violations.push(format!("{:?}: {violation:?}", exchange.recorded));
        } else if is_refused {
            violations.push(format!("{:?}: {}", exchange.recorded, answered.status()));
        }
    }
    assert_eq!(sent, 56);
    assert!(violations.is_empty(), "{}", violations.join("\n"));
}

fn form(query: &[(String, String)]) -> String {
    let pairs = query.iter().map(|(name, value)| {
        let value: String = value
            .bytes()
            .map(|byte| match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' => {
                    char::from(byte).to_string()
                }
                other => format!("%{other:02X}"),
            })
            .collect();
        format!("{name}={value}")
    });
    pairs.collect::<Vec<_>>().join("&")
}
