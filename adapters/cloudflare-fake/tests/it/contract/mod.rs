//! Tests of every operation of the fake against Cloudflare's OpenAPI document.

mod drive;

use std::collections::BTreeSet;
use std::path::Path;

use bytes::Bytes;
use core_cloudflare_fake::Exchange;
use core_cloudflare_fake::contract::Contract;
use serde_json::{Value, json};

use self::drive::drive;
use crate::world::World;

const DOCUMENT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../tests/data/cloudflare-api.json"
);
/// The documentation of the crate, which lists the operations.
const DOCUMENTATION: &str = include_str!("../../../src/lib.rs");
/// The document describes an object there, but Cloudflare returns a list, which wrangler reads.
const WRONG_IN_DOCUMENT: &str =
    "response/result/resources/bindings: value is not of type \"object\"";

fn contract() -> Contract {
    Contract::read(Path::new(DOCUMENT)).unwrap()
}

/// Returns the operations that the documentation lists: their methods and path templates.
fn documented_operations() -> Vec<(&'static str, &'static str)> {
    let lines = DOCUMENTATION
        .lines()
        .filter_map(|line| line.strip_prefix("//! "));
    let operations = lines.filter_map(|line| line.split_once(' '));
    operations
        .filter(|(_, path)| path.starts_with('/'))
        .collect()
}

/// Returns the number of literal segments of a template; `None` if it does not match the path. An object key may
/// contain slashes.
fn literals(template: &str, path: &str) -> Option<usize> {
    let (mut literals, mut segments) = (0, path.split('/'));
    for part in template.split('/') {
        let segment = segments.next()?;
        if part == "{object_key}" {
            return Some(literals);
        }
        if part == segment {
            literals += 1;
        } else if !part.starts_with('{') {
            return None;
        }
    }
    segments.next().is_none().then_some(literals)
}

#[tokio::test]
async fn documentation_lists_the_operations() {
    let (listed, mut driven) = (documented_operations(), BTreeSet::new());
    for exchange in drive().await {
        let recorded = &exchange.recorded;
        let matching = listed.iter().filter_map(|(method, path)| {
            let literals = literals(path, &recorded.path)?;
            (*method == recorded.method).then_some((literals, (*method, *path)))
        });
        let operation = matching.max();
        let (_, operation) = operation.unwrap_or_else(|| panic!("{recorded:?} is not listed"));
        driven.insert(operation);
    }
    let listed: BTreeSet<_> = listed.into_iter().collect();
    assert_eq!(driven, listed);
}

#[tokio::test]
async fn other_operations_are_refused() {
    let contract = contract();
    let world = World::start().await;
    world.upload("w", json!({})).await.result();
    world.create_project("site").await;
    let listed: BTreeSet<_> = documented_operations().into_iter().collect();
    for operation in contract.operations() {
        let (method, path) = operation.split_once(' ').unwrap();
        if listed.contains(&(method, path)) {
            continue;
        }
        let path = path
            .replace("{account_id}", "{a}")
            .replace("{zone_id}", "{z}")
            .replace("{script_name}", "w")
            .replace("{project_name}", "site");
        let reply = world.send(method, &path, &Value::Null).await;
        assert_eq!(reply.json()["success"], false, "{operation}");
    }
}

#[tokio::test]
async fn every_exchange_matches_the_document() {
    let contract = contract();
    let mut violations = Vec::new();
    for exchange in drive().await {
        let finding = contract.check(&exchange);
        let found = finding
            .violations
            .iter()
            .filter(|violation| *violation != WRONG_IN_DOCUMENT);
        violations.extend(found.map(|violation| format!("{:?} {violation}", exchange.recorded)));
    }
    assert!(violations.is_empty(), "{}", violations.join("\n"));
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
    let contract = contract();
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
        ("GET /zones", "result: without name_servers"),
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
    let contract = contract();
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
        changed("GET /zones/{zone_id}/dns_records", &body("{}")),
    ] {
        assert_eq!(violations.len(), 1, "{violations:?}");
    }
}
