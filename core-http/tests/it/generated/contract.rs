//! Every documented endpoint returns exactly the documented fields, types and enum values.

use http::Method;
use serde_json::{Map, Value};

use super::fixture::{Case, for_each_endpoint};

pub(super) const ENDPOINTS: &str = include_str!("../../../../tests/data/endpoints.json");

/// Response fields that are not in the list: RFC 8628 adds one, and a hostname lists its missing DNS records.
const ADDITIONAL_FIELDS: [(&str, &str); 8] = [
    ("iam-029", "verification_uri_complete"),
    ("registry-078", "missingRecords"),
    ("registry-079", "missingRecords"),
    ("registry-080", "missingRecords"),
    ("registry-082", "missingRecords"),
    ("registry-084", "missingRecords"),
    ("registry-085", "missingRecords"),
    ("registry-086", "missingRecords"),
];

/// Returns the documentation of a route; `None` if the route is not documented.
pub(super) fn find_documentation(service: &str, method: &Method, path: &str) -> Option<Value> {
    let all: Vec<Value> = serde_json::from_str(ENDPOINTS).unwrap();
    let service = if service == "stacks" {
        "stack_registry"
    } else {
        service
    };
    all.into_iter().find(|endpoint| {
        endpoint["service"] == service
            && endpoint["method"] == method.as_str()
            && endpoint["path"] == path
    })
}

fn is_of_type(value: &Value, wanted: &str) -> bool {
    match wanted {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    }
}

/// Returns whether a value is a time in the form `2027-01-15T08:00:00.000Z`, or in Unix seconds.
fn is_instant(value: &Value) -> bool {
    let Some(text) = value.as_str() else {
        return value.is_u64();
    };
    let bytes = text.as_bytes();
    text.len() == 24 && bytes[10] == b'T' && bytes[19] == b'.' && text.ends_with('Z')
}

fn assert_record_matches(id: &str, fields: &Map<String, Value>, words: &Value, record: &Value) {
    let Some(record) = record.as_object() else {
        panic!("{id}: not an object: {record}");
    };
    for name in fields.keys() {
        assert!(record.contains_key(name), "{id}: {name} is missing");
    }
    for (name, value) in record.iter().filter(|(_, value)| !value.is_null()) {
        if ADDITIONAL_FIELDS.contains(&(id, name.as_str())) {
            continue;
        }
        let Some(wanted) = fields.get(name) else {
            panic!("{id}: {name} is not documented");
        };
        let wanted = wanted.as_str().unwrap_or("any");
        assert!(is_of_type(value, wanted), "{id}: {name} is {value}");
        assert!(
            !name.ends_with("At") || is_instant(value),
            "{id}: {name} is {value}"
        );
        if let Some(words) = words[name].as_array() {
            assert!(words.contains(value), "{id}: {name} is {value}");
        }
    }
}

fn assert_list_matches(id: &str, response: &Value, answer: &Value) {
    let data = answer["data"].as_array().unwrap();
    assert!(!data.is_empty(), "{id}: the list is empty");
    if let Some(fields) = response["item_fields"].as_object() {
        for record in data {
            assert_record_matches(id, fields, &response["enum"], record);
        }
    }
    if let Some(envelope) = response["envelope"]["pagination"].as_object() {
        assert_record_matches(id, envelope, &Value::Null, &answer["pagination"]);
    }
}

fn assert_response_matches(id: &str, response: &Value, answer: &Value) {
    match response["kind"].as_str().unwrap_or_default() {
        "list" => assert_list_matches(id, response, answer),
        "object" => {
            let Some(fields) = response["fields"].as_object() else {
                return;
            };
            assert_record_matches(id, fields, &response["enum"], answer);
            for (name, value) in response["values"].as_object().into_iter().flatten() {
                assert_eq!(&answer[name], value, "{id}");
            }
        }
        "data_array" => {
            let mut records = response["records"].as_object().unwrap().values();
            let record = records.next().unwrap();
            let data = answer["data"].as_array().unwrap();
            assert!(
                !data.is_empty() && answer.as_object().unwrap().len() == 1,
                "{id}"
            );
            for entity in data {
                assert_record_matches(
                    id,
                    record["fields"].as_object().unwrap(),
                    &record["enum"],
                    entity,
                );
            }
        }
        // No fields are documented, so there is nothing to compare.
        "none_listed" | "object_partial" | "object_open" | "text" | "empty" | "array" => {}
        kind => panic!("{id}: no check for a documented response of kind {kind:?}"),
    }
}

#[tokio::test]
async fn every_endpoint_returns_exactly_what_is_documented() {
    let checked = for_each_endpoint(async |case: &Case| {
        let row = case.row();
        let Some(documented) = find_documentation(case.service.0.name(), row.method(), row.path())
        else {
            return false;
        };
        let answer = case.succeed().await;
        let id = documented["id"].as_str().unwrap();
        let status = documented["success_status"].as_u64();
        if let Some(status) = status {
            assert_eq!(u64::from(answer.status.as_u16()), status, "{id}");
        }
        assert_response_matches(id, &documented["response"], &answer.json);
        true
    })
    .await;
    assert_eq!(checked, 158);
}
