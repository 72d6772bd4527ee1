//! Key-value namespaces.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use core_domain::kernel::Timestamp;
use http::{HeaderName, HeaderValue, Method, Request, Response};
use hyper::body::Incoming;
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::calls::Call;
use super::reply::{self, Answer, BindingError, collected, full, header_text};
use crate::error::LocalError;
use crate::host::SiteBody;
use crate::kv::{KvEntry, KvNamespace, MAX_LIST, MAX_VALUE};

const EXPIRATION: HeaderName = HeaderName::from_static("cf-expiration");
const METADATA: HeaderName = HeaderName::from_static("cf-kv-metadata");

/// The most keys of one request for many.
const MAX_BULK: usize = 100;
/// The longest request for many, in bytes: the longest keys, each byte as an escape of JSON.
const MAX_BULK_REQUEST: usize = 512 * 1024;
/// The shortest time a value lives, in seconds.
const SHORTEST_LIFE: i64 = 60;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Query {
    expiration: Option<i64>,
    expiration_ttl: Option<i64>,
    key_count_limit: Option<u32>,
    prefix: String,
    cursor: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Bulk {
    keys: Vec<String>,
    #[serde(rename = "type")]
    form: Option<String>,
    #[serde(default)]
    with_metadata: bool,
}

/// Answers a request for a namespace.
pub(super) async fn answer(
    kv: &KvNamespace,
    now: Timestamp,
    request: Request<&mut Incoming>,
    call: Call,
) -> Answer {
    let query = request.uri().query().unwrap_or_default();
    let query: Query =
        serde_urlencoded::from_str(query).map_err(|error| BindingError::bad(error.to_string()))?;
    let path = request.uri().path().trim_start_matches('/').to_owned();
    let key = || {
        let key = percent_decode_str(&path).decode_utf8();
        key.map_err(|_| BindingError::bad("the key is no text"))
    };
    match *request.method() {
        Method::GET if path.is_empty() => list(kv, query).await,
        Method::GET => get(kv, &key()?, call).await,
        Method::PUT => put(kv, now, &key()?, query, request, &call).await,
        Method::DELETE => {
            kv.delete(&key()?).await?;
            Ok(Response::new(full("")))
        }
        Method::POST if path == "bulk/get" => get_many(kv, request, &call).await,
        _ => Err(BindingError::unsupported("this call of a KV namespace")),
    }
}

async fn get(kv: &KvNamespace, key: &str, call: Call) -> Answer {
    let entry = kv.entry_within(key, move |bytes| call.reserve(bytes));
    let Some(entry) = entry.await? else {
        return Err(BindingError::missing("Not Found"));
    };
    let mut answer = Response::new(full(entry.value));
    if let Some(at) = entry.expires_at {
        set(&mut answer, EXPIRATION, &at.seconds().to_string());
    }
    if let Some(metadata) = &entry.metadata {
        set(&mut answer, METADATA, metadata);
    }
    Ok(answer)
}

async fn get_many(kv: &KvNamespace, request: Request<&mut Incoming>, call: &Call) -> Answer {
    let body = collected(request.into_body(), MAX_BULK_REQUEST, call).await?;
    let bulk: Bulk =
        serde_json::from_slice(&body).map_err(|error| BindingError::bad(error.to_string()))?;
    if !(1..=MAX_BULK).contains(&bulk.keys.len()) {
        let what = format!("1 to {MAX_BULK} keys can be asked for at once");
        return Err(BindingError::bad(what));
    }
    let mut values = Map::new();
    let total = Arc::new(AtomicUsize::new(0));
    for key in &bulk.keys {
        let (call, total) = (call.clone(), Arc::clone(&total));
        let reserve = move |bytes: usize| {
            if total.fetch_add(bytes, Ordering::Relaxed) + bytes > MAX_VALUE {
                let what = format!("the values are longer than {MAX_VALUE} bytes together");
                return Err(LocalError::Limit(what));
            }
            // The value, and the answer that it becomes a part of.
            call.reserve(bytes.saturating_mul(2))
        };
        let value = match kv.entry_within(key, reserve).await? {
            Some(entry) => shown(entry, &bulk)?,
            None => Value::Null,
        };
        values.insert(key.clone(), value);
    }
    Ok(reply::json(&Value::Object(values)))
}

fn shown(entry: KvEntry, bulk: &Bulk) -> Result<Value, BindingError> {
    let text = String::from_utf8_lossy(&entry.value);
    let value = match bulk.form.as_deref() {
        None | Some("text") => Value::String(text.into_owned()),
        Some("json") => serde_json::from_str(&text)
            .map_err(|_| BindingError::bad("one of the values is no JSON"))?,
        Some(_) => return Err(BindingError::bad("many values are text or json")),
    };
    if !bulk.with_metadata {
        return Ok(value);
    }
    let metadata = entry
        .metadata
        .and_then(|text| serde_json::from_str(&text).ok());
    Ok(json!({ "value": value, "metadata": metadata.unwrap_or(Value::Null) }))
}

async fn put(
    kv: &KvNamespace,
    now: Timestamp,
    key: &str,
    query: Query,
    request: Request<&mut Incoming>,
    call: &Call,
) -> Answer {
    let metadata = header_text(request.headers(), METADATA.as_str()).map(str::to_owned);
    let expires_at = expiry(now, &query)?;
    check_metadata(metadata.as_deref())?;
    let entry = KvEntry {
        value: collected(request.into_body(), MAX_VALUE, call).await?,
        metadata,
        expires_at,
    };
    kv.put_entry(key, entry).await?;
    Ok(Response::new(full("")))
}

fn expiry(now: Timestamp, query: &Query) -> Result<Option<Timestamp>, BindingError> {
    let after = query
        .expiration_ttl
        .map(|ttl| now.seconds().saturating_add(ttl));
    let Some(at) = after.or(query.expiration) else {
        return Ok(None);
    };
    if at < now.seconds() + SHORTEST_LIFE {
        let what = format!("a value lives {SHORTEST_LIFE} seconds at least");
        return Err(BindingError::bad(what));
    }
    Ok(Some(Timestamp::from_seconds(at)))
}

fn check_metadata(metadata: Option<&str>) -> Result<(), BindingError> {
    let Some(text) = metadata else {
        return Ok(());
    };
    match serde_json::from_str::<Value>(text) {
        Ok(_) => Ok(()),
        Err(_) => Err(BindingError::bad("the metadata is no JSON")),
    }
}

async fn list(kv: &KvNamespace, query: Query) -> Answer {
    let limit = query.key_count_limit.unwrap_or(MAX_LIST);
    if !(1..=MAX_LIST).contains(&limit) {
        let what = format!("a list has 1 to {MAX_LIST} keys");
        return Err(BindingError::bad(what));
    }
    let after = percent_decode_str(&query.cursor).decode_utf8_lossy();
    let keys = kv.keys(&query.prefix, &after, limit).await?;
    let last = keys.last().map(|key| key.name.clone());
    let is_complete = match &last {
        Some(last) if keys.len() == limit as usize => {
            kv.keys(&query.prefix, last, 1).await?.is_empty()
        }
        _ => true,
    };
    let keys = keys.into_iter().map(|key| {
        let mut shown = json!({ "name": key.name });
        if let Some(at) = key.expires_at {
            shown["expiration"] = at.seconds().into();
        }
        if let Some(metadata) = key.metadata {
            shown["metadata"] = metadata.into();
        }
        shown
    });
    let mut listed = json!({
        "keys": keys.collect::<Vec<_>>(),
        "list_complete": is_complete,
        "cacheStatus": null,
    });
    if let Some(last) = last.filter(|_| !is_complete) {
        listed["cursor"] = last.into();
    }
    Ok(reply::json(&listed))
}

fn set(answer: &mut Response<SiteBody>, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        answer.headers_mut().insert(name, value);
    }
}
