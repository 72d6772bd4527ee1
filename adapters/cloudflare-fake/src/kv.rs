//! KV namespaces and their values.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;

use crate::envelope::{Refusal, Reply, ok, raw};
use crate::multipart::Part;
use crate::page::{PageSize, page};
use crate::request::Request;
use crate::state::State;
use crate::state::kv::Namespace;

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
const SHORT_TTL: Refusal = Refusal::new(400, INVALID, "expiration_ttl must be at least 60");
const NO_VALUE: Refusal = Refusal::new(400, INVALID, "the form has no value");
const BAD_METADATA: Refusal = Refusal::new(400, INVALID, "metadata is no JSON");
const LONGEST_NAME: usize = 512;
const LONGEST_VALUE: usize = 25 * 1024 * 1024;
const LONGEST_METADATA: usize = 1024;
const PAGE: PageSize = PageSize {
    min: 5,
    default: 20,
    max: 100,
};

#[derive(Deserialize)]
struct NamespaceBody {
    title: Option<String>,
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
        ("DELETE", []) => {
            state.kv.remove(at);
            ok(Value::Null)
        }
        ("GET", ["values", key @ ..]) => match state.kv[at].values.get(&key.join("/")) {
            Some(value) => Ok(raw("application/octet-stream", value.clone())),
            None => Err(NO_KEY),
        },
        ("PUT", ["values", key @ ..]) => put(state, at, &key.join("/"), request),
        _ => return None,
    })
}

/// Returns the title in a request body, if no namespace has it.
fn title(state: &State, request: &Request) -> Result<String, Refusal> {
    let body: NamespaceBody = request.json(INVALID)?;
    let title = body
        .title
        .filter(|title| !title.is_empty())
        .ok_or(NO_TITLE)?;
    if title.chars().count() > LONGEST_NAME {
        return Err(TOO_LONG);
    }
    if state.kv.iter().any(|namespace| namespace.title == title) {
        return Err(EXISTS);
    }
    Ok(title)
}

fn create(state: &mut State, request: &Request) -> Reply {
    let title = title(state, request)?;
    let namespace = Namespace {
        id: state.ids.hex(),
        title,
        values: BTreeMap::new(),
    };
    let view = namespace.view();
    state.kv.push(namespace);
    ok(view)
}

/// Stores a value. Its metadata and expiry are checked and not stored, because no operation returns them.
fn put(state: &mut State, at: usize, key: &str, request: &Request) -> Reply {
    let ttl = request.param("expiration_ttl");
    if ttl
        .and_then(|text| text.parse::<u64>().ok())
        .is_some_and(|ttl| ttl < 60)
    {
        return Err(SHORT_TTL);
    }
    let is_form = request
        .header("content-type")
        .is_some_and(|kind| kind.starts_with("multipart/form-data"));
    let value = if is_form {
        value_in_form(&request.form(INVALID)?)?
    } else {
        request.body.clone()
    };
    if key.is_empty() || key.len() > LONGEST_NAME || value.len() > LONGEST_VALUE {
        return Err(TOO_LONG);
    }
    state.kv[at].values.insert(key.to_owned(), value);
    ok(Value::Null)
}

/// Returns the value in a form, if its metadata is valid.
fn value_in_form(parts: &[Part]) -> Result<Bytes, Refusal> {
    let part = |name: &str| parts.iter().find(|part| part.name == name);
    let value = part("value").ok_or(NO_VALUE)?;
    if let Some(metadata) = part("metadata") {
        let metadata: Value = serde_json::from_slice(&metadata.body).map_err(|_| BAD_METADATA)?;
        if metadata.to_string().len() > LONGEST_METADATA {
            return Err(TOO_LONG);
        }
    }
    Ok(value.body.clone())
}
