//! The KV binding: key-value namespaces.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use core_domain::kernel::Timestamp;
use http::{HeaderName, HeaderValue, Method, Request, Response};
use hyper::body::Incoming;
use percent_encoding::percent_decode_str;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::calls::Call;
use super::reply::{self, BindingError, BindingResult, full, header_text, read_body};
use crate::error::LocalError;
use crate::host::SiteBody;
use crate::kv::{KvEntry, KvNamespace, MAX_LIST, MAX_VALUE};

const EXPIRATION: HeaderName = HeaderName::from_static("cf-expiration");
const METADATA: HeaderName = HeaderName::from_static("cf-kv-metadata");

/// Maximum number of keys in one bulk request.
const MAX_BULK: usize = 100;
/// Maximum length of a bulk request, in bytes: the longest keys, with each byte as a JSON escape.
const MAX_BULK_REQUEST: usize = 512 * 1024;
/// Minimum lifetime of a value, in seconds.
const MIN_TTL_SECONDS: i64 = 60;

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

/// Handles a request to a namespace.
pub(super) async fn answer(
    kv: &KvNamespace,
    now: Timestamp,
    request: Request<&mut Incoming>,
    call: Call,
) -> BindingResult {
    let query = request.uri().query().unwrap_or_default();
    let query: Query =
        serde_urlencoded::from_str(query).map_err(|error| BindingError::bad(error.to_string()))?;
    let path = request.uri().path().trim_start_matches('/').to_owned();
    let key = || {
        let key = percent_decode_str(&path).decode_utf8();
        key.map_err(|_| BindingError::bad("the key is not UTF-8"))
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

async fn get(kv: &KvNamespace, key: &str, call: Call) -> BindingResult {
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

async fn get_many(kv: &KvNamespace, request: Request<&mut Incoming>, call: &Call) -> BindingResult {
    let body = read_body(request.into_body(), MAX_BULK_REQUEST, call).await?;
    let bulk: Bulk =
        serde_json::from_slice(&body).map_err(|error| BindingError::bad(error.to_string()))?;
    if !(1..=MAX_BULK).contains(&bulk.keys.len()) {
        let what = format!("a bulk request has 1 to {MAX_BULK} keys");
        return Err(BindingError::bad(what));
    }
    let mut answer = b"{".to_vec();
    let total = Arc::new(AtomicUsize::new(0));
    let keys: BTreeSet<&String> = bulk.keys.iter().collect();
    for key in keys {
        let (call_of_value, total) = (call.clone(), Arc::clone(&total));
        let reserve = move |bytes: usize| {
            if total.fetch_add(bytes, Ordering::Relaxed) + bytes > MAX_VALUE {
                let what = format!("the values together are longer than {MAX_VALUE} bytes");
                return Err(LocalError::Limit(what));
            }
            // Memory for the value, and for its copy in the response.
            call_of_value.reserve(bytes.saturating_mul(2))
        };
        let entry = kv.entry_within(key, reserve).await?;
        if answer.len() > 1 {
            answer.push(b',');
        }
        write_json(&mut answer, key)?;
        answer.push(b':');
        match entry {
            Some(entry) => write_entry(&mut answer, &entry, &bulk, call)?,
            None => answer.extend_from_slice(b"null"),
        }
    }
    answer.push(b'}');
    Ok(reply::json_text(answer))
}

/// Writes an entry in the requested form. A JSON value is copied as text: a parsed tree would take many times the
/// memory.
fn write_entry(
    answer: &mut Vec<u8>,
    entry: &KvEntry,
    bulk: &Bulk,
    call: &Call,
) -> Result<(), BindingError> {
    let text = String::from_utf8_lossy(&entry.value);
    if bulk.with_metadata {
        answer.extend_from_slice(br#"{"value":"#);
    }
    match bulk.form.as_deref() {
        None | Some("text") => {
            call.reserve(json_length(&text).saturating_sub(entry.value.len()))?;
            write_json(answer, &text)?;
        }
        Some("json") => {
            call.reserve(text.len().saturating_sub(entry.value.len()))?;
            let checked = serde_json::from_str::<IgnoredAny>(&text);
            checked.map_err(|_| BindingError::bad("one of the values is not valid JSON"))?;
            answer.extend_from_slice(text.as_bytes());
        }
        Some(_) => return Err(BindingError::bad("the type must be text or json")),
    }
    if bulk.with_metadata {
        let metadata = entry.metadata.as_deref();
        let metadata = metadata.and_then(|text| serde_json::from_str::<&RawValue>(text).ok());
        answer.extend_from_slice(br#","metadata":"#);
        write_json(answer, &metadata)?;
        answer.push(b'}');
    }
    Ok(())
}

fn write_json(answer: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) -> Result<(), BindingError> {
    serde_json::to_writer(answer, value).map_err(|error| BindingError::bad(error.to_string()))
}

/// Returns the length of a text as a JSON string in bytes, or a slightly larger number.
fn json_length(text: &str) -> usize {
    let length = |byte: u8| match byte {
        b'"' | b'\\' => 2,
        0..=0x1f => 6,
        _ => 1,
    };
    2 + text.bytes().map(length).sum::<usize>()
}

async fn put(
    kv: &KvNamespace,
    now: Timestamp,
    key: &str,
    query: Query,
    request: Request<&mut Incoming>,
    call: &Call,
) -> BindingResult {
    let metadata = header_text(request.headers(), METADATA.as_str()).map(str::to_owned);
    let expires_at = expiry(now, &query)?;
    check_metadata(metadata.as_deref())?;
    let entry = KvEntry {
        value: read_body(request.into_body(), MAX_VALUE, call).await?,
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
    if at < now.seconds() + MIN_TTL_SECONDS {
        let what = format!("the lifetime of a value is at least {MIN_TTL_SECONDS} seconds");
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
        Err(_) => Err(BindingError::bad("the metadata is not valid JSON")),
    }
}

async fn list(kv: &KvNamespace, query: Query) -> BindingResult {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::BindingLimits;
    use crate::workerd::bindings::calls::Calls;

    async fn entry_json(form: Option<&str>, with_metadata: bool, value: &[u8]) -> Option<String> {
        let calls = Calls::new(BindingLimits {
            memory_bytes: 4096,
            ..BindingLimits::default()
        });
        let call = calls.acquire().await.unwrap();
        let entry = KvEntry {
            value: value.to_vec(),
            metadata: Some("{\"m\":1.0}".to_owned()),
            expires_at: None,
        };
        let bulk = Bulk {
            keys: Vec::new(),
            form: form.map(str::to_owned),
            with_metadata,
        };
        let mut answer = Vec::new();
        let written = write_entry(&mut answer, &entry, &bulk, &call);
        written.ok().map(|()| String::from_utf8(answer).unwrap())
    }

    #[tokio::test]
    async fn json_value_is_returned_unchanged() {
        let text = r#"{ "b": 1.0e0, "a": [{}, {}] }"#;
        let json = entry_json(Some("json"), false, text.as_bytes()).await;
        assert_eq!(json.as_deref(), Some(text));
        let with_metadata = entry_json(Some("json"), true, b"[1]").await;
        let expected = r#"{"value":[1],"metadata":{"m":1.0}}"#;
        assert_eq!(with_metadata.as_deref(), Some(expected));
        assert_eq!(entry_json(Some("json"), false, b"{").await, None);
    }

    #[tokio::test]
    async fn text_reserves_memory_for_its_escapes() {
        let quoted = entry_json(None, false, b"a\"\n\x01").await;
        assert_eq!(quoted.as_deref(), Some(r#""a\"\n\u0001""#));
        assert_eq!(entry_json(None, false, &[1; 1000]).await, None);
        assert!(entry_json(None, false, &[b'a'; 1000]).await.is_some());
    }
}
