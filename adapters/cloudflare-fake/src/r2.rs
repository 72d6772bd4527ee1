//! R2 buckets and their objects.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::envelope::{Refusal, Reply, ok, ok_with_info};
use crate::page::cursor_page;
use crate::request::Request;
use crate::state::State;
use crate::state::r2::{Bucket, Object};

const NOT_FOUND: Refusal = Refusal::new(404, 10006, "The specified bucket does not exist.");
const NO_OBJECT: Refusal = Refusal::new(404, 10007, "The specified key does not exist.");
const EXISTS: Refusal = Refusal::new(
    409,
    10004,
    "The bucket you tried to create already exists, and you own it.",
);
const NOT_EMPTY: Refusal = Refusal::new(409, 10008, "The bucket you tried to delete is not empty.");
const INVALID_NAME: Refusal = Refusal::new(400, 10005, "The specified bucket name is not valid.");
const INVALID: u32 = 10001;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Create {
    name: String,
    location_hint: Option<String>,
    storage_class: Option<String>,
}

/// `/accounts/{account_id}/r2/buckets/..`
///
/// The operations on single objects are not in the published document. Clients that empty a bucket need them.
pub(crate) fn route(state: &mut State, request: &Request, path: &[&str]) -> Option<Reply> {
    Some(match (request.method.as_str(), path) {
        ("GET", []) => list(state, request),
        ("POST", []) => create(state, request),
        ("GET", [name]) => find(state, request, name).and_then(|at| ok(state.r2[at].view())),
        ("DELETE", [name]) => find(state, request, name).and_then(|at| delete(state, at)),
        (method, [name, "objects", key @ ..]) => match find(state, request, name) {
            Err(refusal) => Err(refusal),
            Ok(at) => return object(state, at, request, method, &key.join("/")),
        },
        _ => return None,
    })
}

fn jurisdiction(request: &Request) -> &str {
    request.header("cf-r2-jurisdiction").unwrap_or("default")
}

fn find(state: &State, request: &Request, name: &str) -> Result<usize, Refusal> {
    let of = jurisdiction(request);
    let mut buckets = state.r2.iter();
    let at = buckets.position(|bucket| bucket.name == name && bucket.jurisdiction == of);
    at.ok_or(NOT_FOUND)
}

fn limit(request: &Request, name: &str, most: usize) -> usize {
    let asked = request.param(name).and_then(|text| text.parse().ok());
    asked.unwrap_or(most).clamp(1, most)
}

fn list(state: &State, request: &Request) -> Reply {
    let of = jurisdiction(request);
    let contains = request.param("name_contains").unwrap_or_default();
    let matching = state
        .r2
        .iter()
        .filter(|bucket| bucket.jurisdiction == of && bucket.name.contains(contains));
    let mut buckets: Vec<_> = matching
        .map(|bucket| (bucket.name.clone(), bucket.view()))
        .collect();
    buckets.sort_by(|one, other| one.0.cmp(&other.0));
    let start = request
        .param("cursor")
        .or_else(|| request.param("start_after"));
    let per_page = limit(request, "per_page", 1000);
    let (buckets, cursor) = cursor_page(buckets, start, per_page);
    let info = json!({"cursor": cursor, "per_page": per_page, "count": buckets.len()});
    ok_with_info(json!({"buckets": buckets}), info)
}

fn create(state: &mut State, request: &Request) -> Reply {
    let body: Create = request.json(INVALID)?;
    let name = body.name;
    let alphanumeric = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let valid = (3..=63).contains(&name.len())
        && name.chars().all(|c| alphanumeric(c) || c == '-')
        && name.starts_with(alphanumeric)
        && name.ends_with(alphanumeric);
    if !valid {
        return Err(INVALID_NAME);
    }
    if find(state, request, &name).is_ok() {
        return Err(EXISTS);
    }
    let bucket = Bucket {
        name,
        jurisdiction: jurisdiction(request).to_owned(),
        objects: BTreeMap::new(),
        created: state.clock.now(),
        location: body.location_hint.unwrap_or_else(|| "weur".to_owned()),
        storage_class: body.storage_class.unwrap_or_else(|| "Standard".to_owned()),
    };
    let view = bucket.view();
    state.r2.push(bucket);
    ok(view)
}

fn delete(state: &mut State, at: usize) -> Reply {
    if !state.r2[at].objects.is_empty() {
        return Err(NOT_EMPTY);
    }
    state.r2.remove(at);
    ok(json!({}))
}

fn object(
    state: &mut State,
    at: usize,
    request: &Request,
    method: &str,
    key: &str,
) -> Option<Reply> {
    let modified = state.clock.now();
    let bucket = &mut state.r2[at];
    Some(match (method, key) {
        ("GET", "") => list_objects(bucket, request),
        (_, "") => return None,
        ("PUT", key) => {
            let object = Object {
                bytes: request.body.clone(),
                content_type: request.header("content-type").map(str::to_owned),
                modified,
            };
            let view = object.view(key, &bucket.storage_class);
            bucket.objects.insert(key.to_owned(), object);
            ok(view)
        }
        ("DELETE", key) => bucket
            .objects
            .remove(key)
            .ok_or(NO_OBJECT)
            .and_then(|_| ok(json!({"key": key}))),
        _ => return None,
    })
}

fn list_objects(bucket: &Bucket, request: &Request) -> Reply {
    let prefix = request.param("prefix").unwrap_or_default();
    let matching = bucket
        .objects
        .iter()
        .filter(|(key, _)| key.starts_with(prefix));
    let objects: Vec<_> = matching
        .map(|(key, object)| (key.clone(), object.view(key, &bucket.storage_class)))
        .collect();
    let start = request
        .param("cursor")
        .or_else(|| request.param("start_after"));
    let per_page = limit(request, "per_page", 1000);
    let (objects, cursor) = cursor_page(objects, start, per_page);
    let info = json!({"cursor": cursor, "per_page": per_page, "count": objects.len()});
    ok_with_info(Value::Array(objects), info)
}
