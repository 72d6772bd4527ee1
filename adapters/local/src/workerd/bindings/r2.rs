//! The R2 binding: buckets. A call is described by JSON, either in a header or before the content in the body. In the
//! body, a header gives the length of the JSON.

use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt, stream};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Incoming;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::calls::Call;
use super::condition::Condition;
use super::r2_object::{Pair, metadata, to_json};
use super::reply::{BindingError, BindingResult, full, header_text, next_piece};
use crate::bucket::Bucket;
use crate::error::LocalError;
use crate::host::{Range, SiteBody};
use crate::object::{ObjectInfo, ObjectReader};
use crate::object_list::{ListQuery, MAX_LIST};

const REQUEST: &str = "cf-r2-request";
const METADATA_SIZE: HeaderName = HeaderName::from_static("cf-r2-metadata-size");
const ERROR: HeaderName = HeaderName::from_static("cf-r2-error");

/// Maximum length of the description of a call, in bytes.
const MAX_REQUEST: usize = 128 * 1024;
/// Maximum number of keys in one delete call.
const MAX_DELETE: usize = 1_000;
/// Size of the pieces in which an object is read, in bytes.
const PIECE_BYTES: u64 = 64 * 1024;
/// Memory that is reserved to read or write an object, in bytes: the pieces in transit between disk and script.
const STREAM_MEMORY: usize = 512 * 1024;

const NO_SUCH_KEY: u32 = 10_007;
const PRECONDITION_FAILED: u32 = 10_031;

#[derive(Deserialize)]
#[serde(tag = "method", rename_all = "camelCase")]
enum R2Call {
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
    range: Option<RangeRequest>,
    range_header: Option<String>,
    #[serde(default)]
    only_if: Condition,
}

/// A range of an object. The numbers may be strings.
#[derive(Deserialize)]
struct RangeRequest {
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
    /// All other fields, to detect digests that this provider does not support.
    #[serde(flatten)]
    other_fields: Map<String, Value>,
}

#[derive(Deserialize)]
struct Delete {
    object: Option<String>,
    #[serde(default)]
    objects: Vec<String>,
}

/// Handles a request to a bucket.
pub(super) async fn answer(
    bucket: &Bucket,
    request: Request<&mut Incoming>,
    call: Call,
) -> BindingResult {
    let (head, body) = request.into_parts();
    let (wanted, content) = if head.method == Method::PUT {
        read_description(&head.headers, body).await?
    } else {
        let wanted = header_text(&head.headers, REQUEST).unwrap_or_default();
        (parse_call(wanted.as_bytes())?, Bytes::new())
    };
    match wanted {
        R2Call::Head { object } => {
            let info = bucket.head(&object).await?.ok_or_else(no_such_key)?;
            Ok(without_content(&to_json(&info)))
        }
        R2Call::Get(get) => get_object(bucket, get, &call).await,
        R2Call::List(list) => list_objects(bucket, list, &call).await,
        R2Call::Put(put) => put_object(bucket, *put, content, body, &call).await,
        R2Call::Delete(delete) => {
            if delete.objects.len() > MAX_DELETE {
                let what = format!("a call deletes at most {MAX_DELETE} objects");
                return Err(BindingError::bad(what));
            }
            for key in delete.object.iter().chain(&delete.objects) {
                bucket.delete(key).await?;
            }
            Ok(without_content(&json!({})))
        }
        R2Call::Other => Err(BindingError::unsupported("multipart uploads to R2")),
    }
}

/// Returns the error response of R2.
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

/// Reads the description of a call from the start of a body. Returns it with the part of the content that was already
/// read.
async fn read_description(
    headers: &HeaderMap,
    body: &mut Incoming,
) -> Result<(R2Call, Bytes), BindingError> {
    let size = header_text(headers, METADATA_SIZE.as_str());
    let size: Option<usize> = size.and_then(|size| size.parse().ok());
    let unknown = || BindingError::bad("the request does not describe a call");
    let size = size
        .filter(|size| *size <= MAX_REQUEST)
        .ok_or_else(unknown)?;
    let mut read = BytesMut::new();
    while read.len() < size {
        let piece = next_piece(body).await?.ok_or_else(unknown)?;
        read.extend_from_slice(&piece);
    }
    let call = read.split_to(size);
    Ok((parse_call(&call)?, read.freeze()))
}

fn parse_call(call: &[u8]) -> Result<R2Call, BindingError> {
    serde_json::from_slice(call).map_err(|error| BindingError::bad(error.to_string()))
}

async fn get_object(bucket: &Bucket, get: Get, call: &Call) -> BindingResult {
    let reader = bucket.open(&get.object).await?.ok_or_else(no_such_key)?;
    let info = &reader.info;
    if !get.only_if.holds(Some(info)) {
        // The script receives the object without its content.
        let mut answer = refusal(&precondition_failed());
        let text = to_json(info).to_string();
        answer
            .headers_mut()
            .insert(METADATA_SIZE, text.len().into());
        *answer.body_mut() = full(text);
        return Ok(answer);
    }
    call.reserve(STREAM_MEMORY)?;
    let (start, end) = requested_range(&get, info)?;
    let mut known = to_json(info);
    known["range"] = json!({ "offset": start, "length": end - start });
    Ok(with_content(&known, bucket.clone(), reader, start, end))
}

/// Returns the start and the exclusive end of the requested range.
fn requested_range(get: &Get, info: &ObjectInfo) -> Result<(u64, u64), BindingError> {
    let size = info.size;
    let unsatisfiable = || {
        let what = "the range is outside the object";
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

async fn put_object(
    bucket: &Bucket,
    put: Put,
    first: Bytes,
    body: &mut Incoming,
    call: &Call,
) -> BindingResult {
    let unknown = ["md5", "sha1", "sha384", "sha512"];
    if unknown
        .iter()
        .any(|digest| put.other_fields.contains_key(*digest))
    {
        return Err(BindingError::unsupported("digests other than sha256"));
    }
    call.reserve(STREAM_MEMORY)?;
    let metadata = metadata(&put.http_fields, put.custom_fields);
    let writer = bucket.begin(&put.object, metadata).await?;
    let mut writer = bucket.append(writer, first).await?;
    while let Some(piece) = next_piece(body).await? {
        writer = bucket.append(writer, piece).await?;
    }
    let known = bucket.head(&put.object).await?;
    if !put.only_if.holds(known.as_ref()) {
        return Err(precondition_failed());
    }
    let wanted = put.sha256.map(|digest| digest.to_ascii_lowercase());
    let check = move |info: &ObjectInfo| {
        if wanted.is_some_and(|wanted| wanted != info.etag) {
            let what = "the content does not match the given digest";
            return Err(LocalError::Invalid(what.to_owned()));
        }
        Ok(())
    };
    let info = bucket.commit(writer, check).await?;
    Ok(without_content(&to_json(&info)))
}

async fn list_objects(bucket: &Bucket, list: List, call: &Call) -> BindingResult {
    let limit = list.limit.unwrap_or(MAX_LIST);
    if !(1..=MAX_LIST).contains(&limit) {
        let what = format!("a list has 1 to {MAX_LIST} objects");
        return Err(BindingError::bad(what));
    }
    let query = ListQuery {
        after: list.cursor.max(list.start_after),
        prefix: list.prefix,
        delimiter: list.delimiter,
        limit,
    };
    // The blocking thread has a clone, so that the call counts until the thread has ended.
    let (mut held, of_thread) = (0, call.clone());
    let allow = move |bytes: usize| {
        of_thread.ensure_awaited()?;
        of_thread.reserve(bytes.saturating_sub(held))?;
        held = held.max(bytes);
        Ok(())
    };
    let page = bucket.page(query, allow).await?;
    let objects = page.objects.iter().map(to_json).collect::<Vec<_>>();
    let mut listed = json!({
        "objects": objects,
        "truncated": page.next.is_some(),
        "delimitedPrefixes": page.folders,
    });
    if let Some(next) = page.next {
        listed["cursor"] = next.into();
    }
    Ok(without_content(&listed))
}

/// Returns a response with JSON and no content.
fn without_content(known: &impl ToString) -> Response<SiteBody> {
    let known = known.to_string();
    let size = known.len();
    let mut answer = Response::new(full(known));
    answer.headers_mut().insert(METADATA_SIZE, size.into());
    answer
}

/// Returns a response with JSON, followed by the content from `start` to `end`, which is read in pieces.
fn with_content(
    known: &Value,
    bucket: Bucket,
    reader: ObjectReader,
    start: u64,
    end: u64,
) -> Response<SiteBody> {
    let known = Bytes::from(known.to_string());
    let size = known.len();
    let content = stream::try_unfold((reader, start), move |(reader, at)| {
        let bucket = bucket.clone();
        async move {
            if at >= end {
                return Ok(None);
            }
            let read = bucket.read(reader, at, PIECE_BYTES.min(end - at)).await;
            let (reader, piece) = read.map_err(std::io::Error::other)?;
            if piece.is_empty() {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            let next = at + piece.len() as u64;
            Ok(Some((Frame::data(Bytes::from(piece)), (reader, next))))
        }
    });
    let frames = stream::iter([Ok(Frame::data(known))]).chain(content);
    let mut answer = Response::new(BodyExt::boxed(StreamBody::new(frames)));
    let headers = answer.headers_mut();
    headers.insert(METADATA_SIZE, size.into());
    headers.insert(header::CONTENT_LENGTH, (size as u64 + end - start).into());
    answer
}

fn no_such_key() -> BindingError {
    BindingError::missing("The specified key does not exist.")
}

fn precondition_failed() -> BindingError {
    let what = "At least one of the pre-conditions you specified did not hold.";
    BindingError::new(StatusCode::PRECONDITION_FAILED, what)
}
