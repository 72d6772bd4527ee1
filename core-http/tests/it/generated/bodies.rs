//! Validation of request bodies: every error is reported at once, and an invalid request changes nothing.

use std::cell::Cell;

use core_domain::kernel::PLAIN_NAME;
use serde_json::{Map, Value, json};

use super::fixture::{Case, TestRequest, description, for_each_endpoint};

/// Returns the schema of the endpoint's JSON body with every `$ref` inlined; `None` if it has no JSON body.
fn body_schema(case: &Case) -> Option<Value> {
    let operation = case.operation();
    let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
    (!schema.is_null()).then(|| inline_refs(schema, &description(&case.service)))
}

fn inline_refs(schema: &Value, document: &Value) -> Value {
    match schema {
        Value::Object(fields) => {
            if let Some(target) = fields.get("$ref").and_then(Value::as_str) {
                let pointer = target.trim_start_matches('#');
                return inline_refs(document.pointer(pointer).unwrap(), document);
            }
            let fields = fields.iter();
            let inline = fields.map(|(name, value)| (name.clone(), inline_refs(value, document)));
            Value::Object(inline.collect())
        }
        Value::Array(items) => items
            .iter()
            .map(|item| inline_refs(item, document))
            .collect(),
        other => other.clone(),
    }
}

/// Returns the branch of a schema that is not `null`.
fn non_null_branch(schema: &Value) -> &Value {
    let branches = schema["anyOf"].as_array();
    let value = branches.and_then(|all| all.iter().find(|b| b["type"] != "null"));
    value.unwrap_or(schema)
}

fn allows(schema: &Value, kind: &str) -> bool {
    match &schema["type"] {
        Value::String(known) => known == kind,
        Value::Array(known) => known.iter().any(|known| known == kind),
        _ => true,
    }
}

/// Returns values that violate each rule of a schema, with the code of the issue.
fn violations(whole: &Value) -> Vec<(Value, &'static str)> {
    let schema = non_null_branch(whole);
    let mut bad = Vec::new();
    for (value, kind) in [
        (json!("seven"), "string"),
        (json!(7), "integer"),
        (json!({ "a": 1 }), "object"),
        (json!([1]), "array"),
        (json!(true), "boolean"),
    ] {
        if !allows(schema, kind) {
            bad.push((value, "invalid_type"));
        }
    }
    let length = |key: &str| schema[key].as_u64().and_then(|n| usize::try_from(n).ok());
    if let Some(least) = length("minLength").filter(|least| *least > 0) {
        bad.push((json!("x".repeat(least - 1)), "too_short"));
    }
    if let Some(most) = length("maxLength") {
        bad.push((json!("x".repeat(most + 1)), "too_long"));
    }
    if let Some(most) = whole["x-maxBytes"].as_u64() {
        let text = "x".repeat(usize::try_from(most).unwrap());
        bad.push((json!({ "x": text }), "too_long"));
    }
    if schema["enum"].is_array() {
        bad.push((json!("moon"), "invalid_enum"));
    }
    // The format of a number gives its range.
    if schema["format"].is_string() && allows(schema, "string") {
        let value = match schema["format"].as_str() {
            Some(PLAIN_NAME) => "See https://example.org",
            _ => "of no format",
        };
        bad.push((json!(value), "invalid_format"));
    }
    if let Some(pattern) = schema["pattern"].as_str() {
        bad.push((json!(breaking_pattern(pattern)), "pattern"));
    }
    bad
}

/// Returns a text of ordinary length that does not match the pattern. A pattern that excludes characters gets one of
/// them; every other pattern gets a text that is no valid name.
fn breaking_pattern(pattern: &str) -> &'static str {
    if pattern.contains("\\u202A") {
        "a\u{202e}b"
    } else if pattern.contains("[^\\u0000]") {
        ""
    } else {
        "Not ok! ü"
    }
}

fn issue(field: &str, code: &str) -> String {
    format!("{field}: {code}")
}

/// Returns whether an issue is about the field or about a value inside it.
fn is_issue(found: &str, field: &str, code: &str) -> bool {
    found == issue(field, code)
        || (found.starts_with(&format!("{field}.")) && found.ends_with(code))
}

/// The endpoint with a body whose errors have no `details`, as the interface says.
const WITHOUT_DETAILS: &str = "upgradePlan";

#[tokio::test]
async fn every_rule_of_every_body_field_is_enforced() {
    let broken = Cell::new(0);
    for_each_endpoint(async |case: &Case| {
        let Some(schema) = body_schema(case) else {
            return false;
        };
        let (good, least) = (case.valid_request(), case.lowest_caller());
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        for (field, rules) in schema["properties"].as_object().unwrap() {
            let mut cases: Vec<(Option<Value>, &str)> = Vec::new();
            let bad = violations(rules)
                .into_iter()
                .filter(|(value, _)| *value != json!(""));
            cases.extend(bad.map(|(value, code)| (Some(value), code)));
            if required.iter().any(|name| name == field) {
                cases.push((None, "required"));
            }
            for (value, code) in cases {
                let ask = good.clone().with_field(field, value.clone());
                let answer = case.send(&least, &ask).await;
                let context = format!("{} {field} = {value:?}: {}", case.name(), answer.json);
                assert_eq!(answer.status, 400, "{context}");
                assert_eq!(answer.code(), "VALIDATION_ERROR", "{context}");
                let mut issues = answer.issues().into_iter();
                assert!(
                    WITHOUT_DETAILS == case.name()
                        || issues.any(|found| is_issue(&found, field, code)),
                    "{context}"
                );
                broken.set(broken.get() + 1);
            }
        }
        // The valid request still succeeds after the refusals.
        case.succeed().await;
        true
    })
    .await;
    assert!(broken.get() > 300, "{}", broken.get());
}

#[tokio::test]
async fn all_errors_of_a_body_are_reported_at_once() {
    for_each_endpoint(async |case: &Case| {
        let Some(schema) = body_schema(case) else {
            return false;
        };
        let mut ask = case.valid_request();
        let mut wanted = Vec::new();
        for (field, rules) in schema["properties"].as_object().unwrap() {
            if let Some((value, code)) = violations(rules).into_iter().next() {
                ask = ask.with_field(field, Some(value));
                wanted.push(issue(field, code));
            }
        }
        let answer = case.send(&case.lowest_caller(), &ask).await;
        for issue in wanted {
            assert!(
                WITHOUT_DETAILS == case.name() || answer.issues().contains(&issue),
                "{}: {}",
                case.name(),
                answer.json
            );
        }
        true
    })
    .await;
}

/// Sends a raw body with a content type. Returns the status and the error code.
async fn with_text(case: &Case, content_type: &str, text: &str) -> (u16, String) {
    let ask = case.valid_request();
    let mut request = http::Request::builder()
        .method(ask.method.clone())
        .uri(format!("{}?{}", ask.path, ask.query))
        .extension(core_http::kernel::ViaGateway)
        .extension(std::sync::Arc::new(case.lowest_caller()));
    for (name, value) in &ask.headers {
        request = request.header(name, value);
    }
    if !content_type.is_empty() {
        request = request.header("content-type", content_type);
    }
    let body = core_http::kernel::bytes_body(text.to_owned());
    let answer = case.service.raw(request.body(body).unwrap()).await;
    (answer.status.as_u16(), answer.code().to_owned())
}

#[tokio::test]
async fn bodies_that_are_not_json_objects_of_limited_size_are_refused() {
    for_each_endpoint(async |case: &Case| {
        if body_schema(case).is_none() {
            return false;
        }
        let json = "application/json";
        let large = format!("{{\"x\": \"{}\"}}", "x".repeat(9 * 1024 * 1024));
        let deep = format!("{}{}", "[".repeat(80), "]".repeat(80));
        for (content_type, text, status, code) in [
            (json, "[1]", 400, "VALIDATION_ERROR"),
            (json, "{", 400, "MALFORMED_JSON"),
            (json, "{\"a\":1,\"a\":2}", 400, "MALFORMED_JSON"),
            (json, "{\"a\":\"\\u0000\"}", 400, "MALFORMED_JSON"),
            (json, deep.as_str(), 400, "MALFORMED_JSON"),
            (json, large.as_str(), 413, "PAYLOAD_TOO_LARGE"),
            ("text/plain", "{}", 415, "UNSUPPORTED_MEDIA_TYPE"),
            ("", "{}", 415, "UNSUPPORTED_MEDIA_TYPE"),
        ] {
            let refusal = with_text(case, content_type, text).await;
            let wanted = (status, code.to_owned());
            let bad_request = (400, "BAD_REQUEST".to_owned());
            // better-auth has no more specific code.
            let said = refusal == wanted || (code == "MALFORMED_JSON" && refusal == bad_request);
            assert!(said, "{} {text:.20}: {refusal:?}", case.name());
        }
        true
    })
    .await;
}

/// Returns fields that clients cannot set in a request body.
fn read_only_fields() -> Map<String, Value> {
    let fields = json!({
        "id": "chosen", "organizationId": "chosen", "ownerUserId": "chosen", "paymentCustomerId": "chosen",
        "createdAt": "2001-01-01T00:00:00.000Z", "updatedAt": "2001-01-01T00:00:00.000Z",
        "deletedAt": "2001-01-01T00:00:00.000Z", "suspendedAt": "2001-01-01T00:00:00.000Z",
        "trialEndsAt": "2099-01-01T00:00:00.000Z", "purging": true, "depth": 9, "rowVersion": 9, "priority": 9,
        "emailVerified": true, "role": "chosen", "digest": "chosen", "tokenHash": "chosen", "byOperator": false,
        "requestedBy": "chosen", "platformTier": "scale", "cfDeploymentId": "chosen",
    });
    fields.as_object().cloned().unwrap_or_default()
}

#[tokio::test]
async fn fields_that_clients_cannot_set_change_nothing() {
    for_each_endpoint(async |case: &Case| {
        let Some(schema) = body_schema(case) else {
            return false;
        };
        let mut ask: TestRequest = case.valid_request();
        for (field, value) in read_only_fields() {
            if schema["properties"][&field].is_null() {
                ask = ask.with_field(&field, Some(value));
            }
        }
        let answer = case.send(&case.lowest_caller(), &ask).await;
        let text = answer.json.to_string();
        assert!(answer.is_success(), "{}: {text}", case.name());
        for chosen in ["chosen", "2001-01-01", "2099-01-01"] {
            assert!(
                !text.contains(chosen),
                "{} accepted {chosen}: {text}",
                case.name()
            );
        }
        true
    })
    .await;
}
