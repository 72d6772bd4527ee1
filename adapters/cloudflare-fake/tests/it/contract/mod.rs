//! Tests of every operation of the fake against Cloudflare's OpenAPI document.
//!
//! The document is too large for this repository. If the `shared` folder next to the workspace is missing, these tests
//! report that they check nothing.

mod drive;

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;

use bytes::Bytes;
use core_cloudflare_fake::Exchange;
use core_cloudflare_fake::contract::Contract;
use serde_json::{Value, json};

use self::drive::drive;

const DOCUMENT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../../shared/contracts/cloudflare-openapi.json"
);
/// Databases of the fake execute no SQL.
const NOT_FAKED: [&str; 1] = ["POST /accounts/{account_id}/d1/database/{database_id}/query"];
/// The document describes an object there, but Cloudflare returns a list, which wrangler reads.
const WRONG_IN_DOCUMENT: &str =
    "response/result/resources/bindings: value is not of type \"object\"";

fn contract() -> Option<Contract> {
    let file = Path::new(DOCUMENT);
    if !file.exists() {
        // Written directly to stderr, because the test harness hides the output of passing tests.
        let line = format!("SKIPPED, nothing is checked: {DOCUMENT} does not exist\n");
        io::stderr().write_all(line.as_bytes()).unwrap();
        return None;
    }
    Some(Contract::read(file).unwrap())
}

#[tokio::test]
async fn every_exchange_matches_the_document_and_every_operation_exists() {
    let Some(contract) = contract() else { return };
    let (mut driven, mut violations) = (BTreeSet::new(), Vec::new());
    for exchange in drive().await {
        let finding = contract.check(&exchange);
        let found = finding
            .violations
            .iter()
            .filter(|violation| *violation != WRONG_IN_DOCUMENT);
        violations.extend(found.map(|violation| format!("{:?} {violation}", exchange.recorded)));
        driven.extend(finding.operation);
    }
    assert!(violations.is_empty(), "{}", violations.join("\n"));
    let documented = contract.operations().into_iter();
    let left: Vec<_> = documented
        .filter(|operation| !driven.contains(operation))
        .collect();
    assert_eq!(left, NOT_FAKED);
}

/// Removes each required member of a JSON object in turn, and gives each member a value of another type.
fn mutants(body: &Value) -> Vec<(String, Value)> {
    let mut mutants = Vec::new();
    for (name, value) in body.as_object().into_iter().flatten() {
        let mut without = body.clone();
        without.as_object_mut().unwrap().remove(name);
        mutants.push((format!("without {name}"), without));
        let mut other = body.clone();
        other[name] = if value.is_object() {
            json!(7)
        } else {
            json!({"not": "this"})
        };
        mutants.push((format!("{name} of another type"), other));
        for (what, mutant) in mutants_within(value) {
            let mut changed = body.clone();
            changed[name] = mutant;
            mutants.push((format!("{name}: {what}"), changed));
        }
    }
    mutants
}

fn mutants_within(value: &Value) -> Vec<(String, Value)> {
    match value {
        Value::Object(_) => mutants(value),
        Value::Array(items) => {
            let first = items.first().map(mutants).unwrap_or_default();
            first
                .into_iter()
                .map(|(what, mutant)| (what, json!([mutant])))
                .collect()
        }
        _ => Vec::new(),
    }
}

#[tokio::test]
async fn invalid_responses_are_detected() {
    let Some(contract) = contract() else { return };
    let exchanges = drive().await;
    for (request, mutant) in [
        (
            "POST /zones/{zone_id}/dns_records",
            "result: without proxiable",
        ),
        (
            "GET /accounts/{account_id}/workers/services/{script_name}",
            "without success",
        ),
        (
            "POST /accounts/{account_id}/storage/kv/namespaces",
            "result: without id",
        ),
        (
            "POST /accounts/{account_id}/storage/kv/namespaces",
            "result: title of another type",
        ),
        (
            "PUT /accounts/{account_id}/workers/scripts/{script_name}",
            "result: without startup_time_ms",
        ),
        (
            "GET /accounts/{account_id}/workers/scripts/{script_name}/deployments",
            "result: deployments: versions: without version_id",
        ),
        (
            "POST /accounts/{account_id}/pages/projects",
            "result: deployment_configs: production: without fail_open",
        ),
        (
            "POST /accounts/{account_id}/pages/projects/{project_name}/deployments",
            "result: latest_stage: name of another type",
        ),
        (
            "POST /accounts/{account_id}/pages/projects/{project_name}/domains",
            "result: verification_data: without status",
        ),
        (
            "POST /zones/{zone_id}/custom_hostnames",
            "result: ssl: status of another type",
        ),
        (
            "PUT /accounts/{account_id}/workers/domains",
            "result: without cert_id",
        ),
        ("GET /zones/{zone_id}", "result: without name_servers"),
        (
            "POST /accounts/{account_id}/queues",
            "result: settings: delivery_delay of another type",
        ),
        ("GET /user/tokens/verify", "result: status of another type"),
    ] {
        let is_it =
            |exchange: &&Exchange| contract.check(exchange).operation.as_deref() == Some(request);
        let exchange = exchanges.iter().find(is_it).unwrap();
        let body = serde_json::from_slice(&exchange.response).unwrap();
        let changed = mutants(&body).into_iter().find(|(what, _)| what == mutant);
        let (_, changed) = changed.unwrap_or_else(|| panic!("{request}: no {mutant} in {body}"));
        let exchange = Exchange {
            response: Bytes::from(changed.to_string()),
            ..exchange.clone()
        };
        assert!(
            !contract.check(&exchange).violations.is_empty(),
            "{request}: {mutant}"
        );
    }
}

#[tokio::test]
async fn invalid_requests_are_detected() {
    let Some(contract) = contract() else { return };
    let exchanges = drive().await;
    let changed = |request: &str, change: &dyn Fn(&mut Exchange)| {
        let is_it =
            |exchange: &&Exchange| contract.check(exchange).operation.as_deref() == Some(request);
        let mut exchange = exchanges.iter().find(is_it).unwrap().clone();
        change(&mut exchange);
        contract.check(&exchange).violations
    };
    let body = |text: &'static str| {
        move |exchange: &mut Exchange| exchange.request = Bytes::from_static(text.as_bytes())
    };
    let query = |name: &'static str, value: &'static str| {
        move |exchange: &mut Exchange| exchange.query.push((name.to_owned(), value.to_owned()))
    };
    let namespaces = "POST /accounts/{account_id}/storage/kv/namespaces";
    let hostnames = "POST /zones/{zone_id}/custom_hostnames";
    let upload = "PUT /accounts/{account_id}/workers/scripts/{script_name}";
    for violations in [
        changed(namespaces, &body("{}")),
        changed(namespaces, &body("title")),
        changed(
            hostnames,
            &body(r#"{"hostname": "a.b", "ssl": {"method": "pigeon"}}"#),
        ),
        changed(upload, &query("bindings_inherit", "loose")),
        changed(
            upload,
            &body(
                "--xyz\r\nContent-Disposition: form-data; name=\"other\"\r\n\r\n{}\r\n--xyz--\r\n",
            ),
        ),
        changed(
            upload,
            &body(
                "--xyz\r\nContent-Disposition: form-data; name=\"metadata\"\r\n\r\n{\"bindings\":7}\r\n--xyz--\r\n",
            ),
        ),
        changed("GET /zones", &query("per_page", "1000")),
        changed("GET /zones", &query("colour", "red")),
        changed("GET /zones/{zone_id}/dns_records", &query("name.like", "x")),
        changed("GET /zones/{zone_id}", &body("{}")),
    ] {
        assert_eq!(violations.len(), 1, "{violations:?}");
    }
}
