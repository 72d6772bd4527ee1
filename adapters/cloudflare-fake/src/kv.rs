//! KV namespaces and their values.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::envelope::{Refusal, Reply, ok, ok_with_info, raw};
use crate::page::{PageSize, cursor_page, page};
use crate::request::Request;
use crate::state::State;
use crate::state::kv::{Namespace, Stored};

const NOT_FOUND: Refusal = Refusal::new(404, 10013, "namespace not found");
const EXISTS: Refusal = Refusal::new(
    400,
    10014,
    "a namespace with this account ID and title already exists",
);
const NO_TITLE: Refusal = Refusal::new(400, 10019, "title is required");
const NO_KEY: Refusal = Refusal::new(404, 10009, "key not found");
const INVALID: u32 = 10012;
const TOO_LONG: Refusal = Refusal::new(400, INVALID, "a title, key, value or metadata is too long");
const LONGEST_NAME: usize = 512;
const LONGEST_VALUE: usize = 25 * 1024 * 1024;
const LONGEST_METADATA: usize = 1024;
const PAGE: PageSize = PageSize {
    min: 5,
    default: 20,
    max: 100,
};

#[derive(Deserialize)]
struct Titled {
    title: Option<String>,
}

#[derive(Deserialize)]
struct Pair {
    key: String,
    value: String,
    #[serde(default)]
    base64: bool,
    metadata: Option<Value>,
    expiration: Option<u64>,
    expiration_ttl: Option<u64>,
}

/// `/accounts/{account_id}/storage/kv/namespaces/..`
pub(crate) fn route(state: &mut State, request: &Request, path: &[&str]) -> Option<Reply> {
    let method = request.method.as_str();
    let Some((id, rest)) = path.split_first() else {
        return match method {
            "GET" => Some(page(
                request,
                state.kv.iter().map(Namespace::view).collect(),
                PAGE,
            )),
            "POST" => Some(create(state, request)),
            _ => None,
        };
    };
    let Some(at) = state.kv.iter().position(|namespace| namespace.id == *id) else {
        return Some(Err(NOT_FOUND));
    };
    Some(match (method, rest) {
        ("GET", []) => ok(state.kv[at].view()),
        ("PUT", []) => rename(state, at, request),
        ("DELETE", []) => {
            state.kv.remove(at);
            ok(Value::Null)
        }
        ("GET", ["keys"]) => keys(&state.kv[at], request),
        ("PUT", ["bulk"]) => put_bulk(state, at, request),
        ("GET", ["values", key @ ..]) => match state.kv[at].values.get(&key.join("/")) {
            Some(value) => Ok(raw("application/octet-stream", value.bytes.clone())),
            None => Err(NO_KEY),
        },
        ("PUT", ["values", key @ ..]) => put(state, at, &key.join("/"), request),
        ("DELETE", ["values", key @ ..]) => {
            state.kv[at].values.remove(&key.join("/"));
            ok(Value::Null)
        }
        _ => return None,
    })
}

/// Returns the title in a request body, if no other namespace has it.
fn title(state: &State, request: &Request, but: Option<usize>) -> Result<String, Refusal> {
    let body: Titled = request.json(INVALID)?;
    let title = body
        .title
        .filter(|title| !title.is_empty())
        .ok_or(NO_TITLE)?;
    if title.chars().count() > LONGEST_NAME {
        return Err(TOO_LONG);
    }
    let mut namespaces = state.kv.iter().enumerate();
    if namespaces.any(|(at, namespace)| namespace.title == title && Some(at) != but) {
        return Err(EXISTS);
    }
    Ok(title)
}

fn create(state: &mut State, request: &Request) -> Reply {
    let title = title(state, request, None)?;
    let namespace = Namespace {
        id: state.ids.hex(),
        title,
        values: BTreeMap::new(),
    };
    let view = namespace.view();
    state.kv.push(namespace);
    ok(view)
}

fn rename(state: &mut State, at: usize, request: &Request) -> Reply {
    state.kv[at].title = title(state, request, Some(at))?;
    ok(state.kv[at].view())
}

fn keys(namespace: &Namespace, request: &Request) -> Reply {
    let prefix = request.param("prefix").unwrap_or_default();
    let asked = request.param("limit").and_then(|text| text.parse().ok());
    let limit: usize = asked.unwrap_or(1000);
    if !(10..=1000).contains(&limit) {
        return Err(Refusal::new(400, INVALID, "limit must be from 10 to 1000"));
    }
    let matching = namespace
        .values
        .iter()
        .filter(|(key, _)| key.starts_with(prefix));
    let keys = matching.map(|(key, value)| {
        let mut view = json!({"name": key});
        if let Some(metadata) = &value.metadata {
            view["metadata"] = metadata.clone();
        }
        if let Some(expiration) = value.expiration {
            view["expiration"] = json!(expiration);
        }
        (key.clone(), view)
    });
    let cursor = request.param("cursor").filter(|cursor| !cursor.is_empty());
    let (keys, cursor) = cursor_page(keys.collect(), cursor, limit);
    let info = json!({"count": keys.len(), "cursor": cursor});
    ok_with_info(Value::Array(keys), info)
}

/// Returns the expiry of a value in Unix seconds; `None` if it does not expire.
fn expiration(state: &State, at: Option<u64>, ttl: Option<u64>) -> Result<Option<u64>, Refusal> {
    if ttl.is_some_and(|ttl| ttl < 60) {
        return Err(Refusal::new(
            400,
            INVALID,
            "expiration_ttl must be at least 60",
        ));
    }
    Ok(at.or_else(|| ttl.map(|ttl| state.clock.seconds() + ttl)))
}

fn store(state: &mut State, at: usize, key: &str, value: Stored) -> Result<(), Refusal> {
    let metadata = value
        .metadata
        .as_ref()
        .map_or(0, |metadata| metadata.to_string().len());
    if key.is_empty()
        || key.len() > LONGEST_NAME
        || value.bytes.len() > LONGEST_VALUE
        || metadata > LONGEST_METADATA
    {
        return Err(TOO_LONG);
    }
    state.kv[at].values.insert(key.to_owned(), value);
    Ok(())
}

fn put(state: &mut State, at: usize, key: &str, request: &Request) -> Reply {
    let number = |name| request.param(name).and_then(|text| text.parse().ok());
    let expiration = expiration(state, number("expiration"), number("expiration_ttl"))?;
    let is_form = request
        .header("content-type")
        .is_some_and(|kind| kind.starts_with("multipart/form-data"));
    let (bytes, metadata) = if is_form {
        let parts = request.form(INVALID)?;
        let part = |name: &str| parts.iter().find(|part| part.name == name);
        let value = part("value").ok_or(Refusal::new(400, INVALID, "the form has no value"))?;
        let metadata = part("metadata").map(|metadata| serde_json::from_slice(&metadata.body));
        let metadata = metadata
            .transpose()
            .map_err(|_| Refusal::new(400, INVALID, "metadata is no JSON"))?;
        (value.body.clone(), metadata)
    } else {
        (request.body.clone(), None)
    };
    let value = Stored {
        bytes,
        metadata,
        expiration,
    };
    store(state, at, key, value)?;
    ok(Value::Null)
}

fn put_bulk(state: &mut State, at: usize, request: &Request) -> Reply {
    let pairs: Vec<Pair> = request.json(INVALID)?;
    let count = pairs.len();
    for pair in pairs {
        let bytes = if pair.base64 {
            let decoded = STANDARD.decode(&pair.value);
            Bytes::from(decoded.map_err(|_| Refusal::new(400, INVALID, "a value is no base64"))?)
        } else {
            Bytes::from(pair.value)
        };
        let expiration = expiration(state, pair.expiration, pair.expiration_ttl)?;
        let value = Stored {
            bytes,
            metadata: pair.metadata,
            expiration,
        };
        store(state, at, &pair.key, value)?;
    }
    ok(json!({"successful_key_count": count, "unsuccessful_keys": []}))
}
