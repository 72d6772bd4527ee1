//! The OpenAPI documents: valid OpenAPI 3.1, equal to the committed files, and consistent with the responses.

use std::collections::BTreeSet;
use std::path::PathBuf;

use jsonschema::{Draft, Validator};
use serde_json::{Value, json};

use super::fixture::{Case, description, for_each_endpoint};
use crate::world::{World, operator};

/// The official meta-schema of OpenAPI 3.1 (2022-10-07).
const META_SCHEMA: &str = include_str!("../../data/openapi-3.1.json");

fn documents() -> Vec<(&'static str, Value)> {
    let world = World::new();
    let services = world.services();
    let documents = services.iter().map(|api| {
        let document = serde_json::from_slice(&api.0.openapi().unwrap()).unwrap();
        (api.0.name(), document)
    });
    documents.collect()
}

fn validator(schema: &Value) -> Validator {
    let options = jsonschema::options().with_draft(Draft::Draft202012);
    options.build(schema).unwrap()
}

#[test]
fn every_service_has_a_valid_openapi_document() {
    let meta_schema = validator(&serde_json::from_str(META_SCHEMA).unwrap());
    for (name, document) in documents() {
        let errors: Vec<String> = meta_schema
            .iter_errors(&document)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{name}: {errors:#?}");
    }
}

/// Returns the path of the committed document of a service. `UPDATE_OPENAPI=1` rewrites the files.
fn golden(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("openapi");
    folder.join(format!("{name}.json"))
}

#[test]
fn every_openapi_document_is_equal_to_the_committed_file() {
    for (name, document) in documents() {
        let text = format!("{}\n", serde_json::to_string_pretty(&document).unwrap());
        if std::env::var_os("UPDATE_OPENAPI").is_some() {
            std::fs::create_dir_all(golden(name).parent().unwrap()).unwrap();
            std::fs::write(golden(name), &text).unwrap();
        }
        let known = std::fs::read_to_string(golden(name)).unwrap_or_default();
        let same = known == text;
        assert!(
            same,
            "{name} has changed; run with UPDATE_OPENAPI=1 and look at the difference"
        );
    }
}

/// Collects the target of every `$ref` in a document.
fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            if let Some(target) = fields.get("$ref").and_then(Value::as_str) {
                found.insert(target.to_owned());
            }
            fields.values().for_each(|value| references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

#[test]
fn every_reference_resolves_and_every_operation_has_a_unique_id() {
    let mut ids = BTreeSet::new();
    for (name, document) in documents() {
        let mut found = BTreeSet::new();
        references(&document, &mut found);
        for target in found {
            let pointer = target.trim_start_matches('#');
            assert!(document.pointer(pointer).is_some(), "{name}: {target}");
        }
        let paths = document["paths"].as_object().unwrap();
        for operation in paths
            .values()
            .flat_map(|path| path.as_object().unwrap().values())
        {
            let id = operation["operationId"].as_str().unwrap();
            assert!(ids.insert(id.to_owned()), "{id} is used twice");
            assert!(operation["tags"][0].is_string(), "{id} has no tag");
            assert!(
                operation["summary"]
                    .as_str()
                    .is_some_and(|s| s.ends_with('.')),
                "{id}"
            );
        }
    }
}

/// Returns a validator of a schema, together with the components that it refers to.
fn schema_at(document: &Value, schema: &Value) -> Validator {
    let mut whole = json!({ "components": document["components"] });
    whole["allOf"] = json!([schema]);
    validator(&whole)
}

#[tokio::test]
async fn every_response_and_every_example_matches_its_schema() {
    for_each_endpoint(async |case: &Case| {
        let document = description(&case.service);
        let operation = case.operation();
        let answer = case.succeed().await;
        let response = &operation["responses"][answer.status.as_str()];
        let content = &response["content"]["application/json"];
        let name = case.name();
        if answer.bytes.is_empty() {
            assert!(content.is_null(), "{name} returned no body");
            return false;
        }
        if answer.header("content-type") != "application/json" {
            let content = &response["content"][answer.header("content-type")];
            assert_eq!(content["schema"]["type"], "string", "{name}");
            return true;
        }
        let schema = schema_at(&document, &content["schema"]);
        let errors: Vec<String> = schema
            .iter_errors(&answer.json)
            .map(|e| e.to_string())
            .collect();
        assert!(errors.is_empty(), "{name}: {errors:#?} in {}", answer.json);
        assert!(
            schema.is_valid(&content["example"]),
            "{name}: {}",
            content["example"]
        );
        let body = &operation["requestBody"]["content"]["application/json"];
        if !body.is_null() {
            let schema = schema_at(&document, &body["schema"]);
            assert!(
                schema.is_valid(&body["example"]),
                "{name}: {}",
                body["example"]
            );
        }
        true
    })
    .await;
}

#[tokio::test]
async fn every_error_code_of_every_endpoint_is_documented() {
    for_each_endpoint(async |case: &Case| {
        let operation = case.operation();
        let mut bad = vec![
            case.valid_request().with("accept", "image/png"),
            case.valid_request(),
        ];
        bad.push(case.valid_request().with("if-match", "\"999\""));
        bad.push(case.valid_request().with("idempotency-key", "a b"));
        bad.push(
            case.valid_request()
                .with_query("limit=0&cursor=garbage&wait=x&type=x"),
        );
        let mut ask = case.valid_request();
        ask.body = json!({ "name": 7 });
        bad.push(ask);
        for ask in bad {
            for caller in [
                case.lowest_caller(),
                operator(),
                core_domain::kernel::Caller::Anonymous,
            ] {
                let answer = case.send(&caller, &ask).await;
                if answer.is_success() {
                    return false;
                }
                let described = &operation["responses"][answer.status.as_str()]["x-codes"];
                let codes = described.as_array().cloned().unwrap_or_default();
                let known = codes.iter().any(|code| code == answer.code());
                let (name, status) = (case.name(), answer.status);
                assert!(
                    known,
                    "{name}: {status} {} is not documented",
                    answer.code()
                );
            }
        }
        true
    })
    .await;
}

#[test]
fn the_documents_describe_headers_statuses_aliases_and_authentication() {
    let documents = documents();
    let of = |name: &str| &documents.iter().find(|(n, _)| *n == name).unwrap().1;
    let registry = of("registry");
    let update = &registry["paths"]["/api/v1/platforms/{platformId}"]["patch"];
    let parameters = update["parameters"].to_string();
    for shared in ["If-Match", "Idempotency-Key", "platformId"] {
        assert!(parameters.contains(shared), "{parameters}");
    }
    for status in [
        "200", "400", "401", "403", "404", "409", "412", "415", "429", "451", "503",
    ] {
        assert!(update["responses"][status].is_object(), "{status}");
    }
    let create = &registry["paths"]["/api/v1/platforms"]["post"];
    assert_eq!(create["requestBody"]["required"], true);
    assert_eq!(
        registry["components"]["securitySchemes"]["apiKey"]["name"],
        "x-api-key"
    );
    let limit = &registry["components"]["parameters"]["limit"];
    assert_eq!(
        (&limit["in"], &limit["required"]),
        (&json!("query"), &json!(false))
    );
    let resources = &registry["paths"]["/api/v1/platforms/{platformId}/resources"]["get"];
    let alias = "/api/v1/resources/platforms/{platformId}/resources";
    assert_eq!(resources["x-aliases"], json!([alias]));
    let key = &registry["components"]["parameters"]["Idempotency-Key"]["schema"];
    assert!(key["pattern"].is_string());
    let iam = of("iam");
    let cookie = &iam["components"]["securitySchemes"]["session"];
    assert_eq!(cookie["name"], "better-auth.session_token");
    let sign_in = &iam["paths"]["/api/auth/sign-in/email"]["post"];
    let form = &sign_in["requestBody"]["content"]["application/x-www-form-urlencoded"];
    assert!(form["schema"].is_object());
    assert_eq!(sign_in["security"], json!([]));
}
