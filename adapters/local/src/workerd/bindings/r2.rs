//! Buckets. What a call is stands as JSON in a header, or before the content in the body; the header says how long it is.

use std::collections::BTreeSet;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::condition::Condition;
use super::r2_object::{Pair, metadata, shown};
use super::reply::{Answer, BindingError, collected, full, header_text};
use crate::bucket::{Bucket, ObjectInfo};
use crate::host::{Range, SiteBody};

const REQUEST: &str = "cf-r2-request";
const METADATA_SIZE: HeaderName = HeaderName::from_static("cf-r2-metadata-size");
const ERROR: HeaderName = HeaderName::from_static("cf-r2-error");

/// The largest object a script can store at once, in bytes: it is in memory meanwhile.
const MAX_OBJECT: usize = 100 * 1024 * 1024;
/// The most objects of a list.
const MAX_LIST: usize = 1_000;

const NO_SUCH_KEY: u32 = 10_007;
const PRECONDITION_FAILED: u32 = 10_031;

#[derive(Deserialize)]
#[serde(tag = "method", rename_all = "camelCase")]
enum Call {
    Head {
        object: String,
    },
    Get(Get),
    List(List),
    Put(Box<Put>),
    Delete(Delete),
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Get {
    object: String,
    range: Option<Piece>,
    range_header: Option<String>,
    #[serde(default)]
    only_if: Condition,
}

/// A piece of an object; the numbers may stand in quotes.
#[derive(Deserialize)]
struct Piece {
    offset: Option<Value>,
    length: Option<Value>,
    suffix: Option<Value>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct List {
    limit: Option<usize>,
    prefix: String,
    cursor: String,
    delimiter: String,
    start_after: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Put {
    object: String,
    #[serde(default)]
    custom_fields: Vec<Pair>,
    #[serde(default)]
    http_fields: Map<String, Value>,
    #[serde(default)]
    only_if: Condition,
    sha256: Option<String>,
    /// Digests this provider does not know.
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Deserialize)]
struct Delete {
    object: Option<String>,
    #[serde(default)]
    objects: Vec<String>,
}

/// Answers a request for a bucket.
pub(super) async fn answer(bucket: &Bucket, request: Request<Incoming>) -> Answer {
    let (call, content) = if request.method() == Method::PUT {
        split(request).await?
    } else {
        let call = header_text(request.headers(), REQUEST).unwrap_or_default();
        (parsed(call.as_bytes())?, Bytes::new())
    };
    match call {
        Call::Head { object } => {
            let info = bucket.head(&object).await?.ok_or_else(no_such_key)?;
            Ok(with_content(&shown(&info), &[]))
        }
        Call::Get(get) => get_object(bucket, get).await,
        Call::List(list) => list_objects(bucket, list).await,
        Call::Put(put) => put_object(bucket, *put, content).await,
        Call::Delete(delete) => {
            for key in delete.object.iter().chain(&delete.objects) {
                bucket.delete(key).await?;
            }
            Ok(with_content(&json!({}), &[]))
        }
        Call::Other => Err(BindingError::unsupported("multipart uploads to R2")),
    }
}

/// What R2 answers instead of what was asked for.
pub(super) fn refusal(error: &BindingError) -> Response<SiteBody> {
    let code = match error.status {
        StatusCode::NOT_FOUND => NO_SUCH_KEY,
        StatusCode::PRECONDITION_FAILED => PRECONDITION_FAILED,
        _ => 10_001,
    };
    let text = json!({ "version": 1, "v4code": code, "message": error.message }).to_string();
    let mut answer = Response::new(full(""));
    *answer.status_mut() = error.status;
    if let Ok(text) = HeaderValue::from_str(&text) {
        answer.headers_mut().insert(ERROR, text);
    }
    answer
}

async fn split(request: Request<Incoming>) -> Result<(Call, Bytes), BindingError> {
    let size = header_text(request.headers(), METADATA_SIZE.as_str());
    let size: Option<usize> = size.and_then(|size| size.parse().ok());
    let mut content = collected(request.into_body(), MAX_OBJECT).await?;
    let size = size.filter(|size| *size <= content.len());
    let size = size.ok_or_else(|| BindingError::bad("the request does not say what it is"))?;
    let call = content.split_to(size);
    Ok((parsed(&call)?, content))
}

fn parsed(call: &[u8]) -> Result<Call, BindingError> {
    serde_json::from_slice(call).map_err(|error| BindingError::bad(error.to_string()))
}

async fn get_object(bucket: &Bucket, get: Get) -> Answer {
    let object = bucket.get(&get.object).await?.ok_or_else(no_such_key)?;
    let info = &object.info;
    if !get.only_if.holds(Some(info)) {
        // The script is given the object without its content.
        let mut answer = refusal(&precondition_failed());
        let text = shown(info).to_string();
        answer
            .headers_mut()
            .insert(METADATA_SIZE, text.len().into());
        *answer.body_mut() = full(text);
        return Ok(answer);
    }
    let (start, end) = piece(&get, info)?;
    let mut known = shown(info);
    known["range"] = json!({ "offset": start, "length": end - start });
    let whole = |at: u64| {
        usize::try_from(at)
            .unwrap_or(usize::MAX)
            .min(object.content.len())
    };
    Ok(with_content(
        &known,
        &object.content[whole(start)..whole(end)],
    ))
}

/// Where the wanted piece begins, and where it has ended.
fn piece(get: &Get, info: &ObjectInfo) -> Result<(u64, u64), BindingError> {
    let size = info.size;
    let unsatisfiable = || {
        let what = "the object does not have this range";
        BindingError::new(StatusCode::RANGE_NOT_SATISFIABLE, what)
    };
    if let Some(header) = &get.range_header {
        return match Range::parse(header, size) {
            Range::Whole => Ok((0, size)),
            Range::Part { start, end } => Ok((start, end + 1)),
            Range::Unsatisfiable => Err(unsatisfiable()),
        };
    }
    let Some(range) = &get.range else {
        return Ok((0, size));
    };
    let number = |value: &Option<Value>| {
        let value = value.as_ref()?;
        value.as_u64().or_else(|| value.as_str()?.parse().ok())
    };
    if let Some(suffix) = number(&range.suffix) {
        return Ok((size.saturating_sub(suffix), size));
    }
    let start = number(&range.offset).unwrap_or(0);
    if start > size {
        return Err(unsatisfiable());
    }
    let length = number(&range.length).unwrap_or(size);
    Ok((start, start.saturating_add(length).min(size)))
}

async fn put_object(bucket: &Bucket, put: Put, content: Bytes) -> Answer {
    let unknown = ["md5", "sha1", "sha384", "sha512"];
    if unknown.iter().any(|digest| put.rest.contains_key(*digest)) {
        return Err(BindingError::unsupported("digests other than sha256"));
    }
    let wanted = put
        .sha256
        .as_ref()
        .map(|digest| digest.to_ascii_lowercase());
    if wanted.is_some_and(|wanted| wanted != crate::names::content_digest(&content)) {
        return Err(BindingError::bad("the content does not have this digest"));
    }
    let known = bucket.head(&put.object).await?;
    if !put.only_if.holds(known.as_ref()) {
        return Err(precondition_failed());
    }
    let metadata = metadata(&put.http_fields, put.custom_fields);
    let info = bucket.put_object(&put.object, metadata, content).await?;
    Ok(with_content(&shown(&info), &[]))
}

async fn list_objects(bucket: &Bucket, list: List) -> Answer {
    let limit = list.limit.unwrap_or(MAX_LIST);
    if !(1..=MAX_LIST).contains(&limit) {
        let what = format!("a list has 1 to {MAX_LIST} objects");
        return Err(BindingError::bad(what));
    }
    let after = list.cursor.as_str().max(&list.start_after);
    let mut objects = Vec::new();
    let mut folders = BTreeSet::new();
    let mut last = None;
    let mut is_truncated = false;
    for info in bucket.list(&list.prefix, after, usize::MAX).await? {
        let folder = folder_of(&info.key, &list);
        let is_known = folder
            .as_ref()
            .is_some_and(|folder| folders.contains(folder));
        if !is_known && objects.len() + folders.len() == limit {
            is_truncated = true;
            break;
        }
        last = Some(info.key.clone());
        match folder {
            Some(folder) => drop(folders.insert(folder)),
            None => objects.push(shown(&info)),
        }
    }
    let mut listed = json!({
        "objects": objects,
        "truncated": is_truncated,
        "delimitedPrefixes": folders,
    });
    if let Some(last) = last.filter(|_| is_truncated) {
        listed["cursor"] = last.into();
    }
    Ok(with_content(&listed, &[]))
}

/// What of a key stands before the delimiter, with it.
fn folder_of(key: &str, list: &List) -> Option<String> {
    let rest = key.strip_prefix(&list.prefix)?;
    if list.delimiter.is_empty() {
        return None;
    }
    let at = rest.find(&list.delimiter)?;
    let end = list.prefix.len() + at + list.delimiter.len();
    Some(key[..end].to_owned())
}

/// JSON, then content.
fn with_content(known: &Value, content: &[u8]) -> Response<SiteBody> {
    let known = known.to_string();
    let body = [known.as_bytes(), content].concat();
    let mut answer = Response::new(full(body));
    answer
        .headers_mut()
        .insert(METADATA_SIZE, known.len().into());
    answer
}

fn no_such_key() -> BindingError {
    BindingError::missing("The specified key does not exist.")
}

fn precondition_failed() -> BindingError {
    let what = "At least one of the pre-conditions you specified did not hold.";
    BindingError::new(StatusCode::PRECONDITION_FAILED, what)
}
