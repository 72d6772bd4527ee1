//! The responses of the site host.

use std::fs::File;
use std::io::SeekFrom;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use http::header::{self, HeaderValue};
use http::{HeaderMap, Method, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use tokio::io::{AsyncReadExt, AsyncSeekExt};
use tokio_util::io::ReaderStream;

use super::SiteBody;
use super::lookup::Page;
use super::range::{Range, matches_entity_tag};
use crate::suspension_gate::AccessRefusal;

/// Size of the read buffer of a file, in bytes.
const CHUNK_BYTES: usize = 64 * 1024;

/// Browsers may cache a page but must revalidate it for each use.
const CACHE: HeaderValue = HeaderValue::from_static("public, max-age=0, must-revalidate");

/// Responds with a file, a part of it, or the result of the request's conditions.
pub(super) fn page(page: Page, method: &Method, headers: &HeaderMap) -> Response<SiteBody> {
    let tag = format!("\"{}\"", page.entry.digest);
    let mut answer = match requested_range(&page, &tag, method, headers) {
        Range::Unsatisfiable => {
            let mut answer = status(StatusCode::RANGE_NOT_SATISFIABLE, empty());
            set_header(
                &mut answer,
                header::CONTENT_RANGE,
                &format!("bytes */{}", page.entry.size),
            );
            answer
        }
        _ if not_modified(&tag, headers) => status(StatusCode::NOT_MODIFIED, empty()),
        Range::Whole => file(StatusCode::OK, page, 0, None, method),
        Range::Part { start, end } => {
            let content_range = format!("bytes {start}-{end}/{}", page.entry.size);
            let mut answer = file(StatusCode::PARTIAL_CONTENT, page, start, Some(end), method);
            set_header(&mut answer, header::CONTENT_RANGE, &content_range);
            answer
        }
    };
    set_header(&mut answer, header::ETAG, &tag);
    set_header(&mut answer, header::ACCEPT_RANGES, "bytes");
    answer.headers_mut().insert(header::CACHE_CONTROL, CACHE);
    answer
}

/// Responds with the site's own page for missing paths, with status 404.
pub(super) fn missing(page: Page, method: &Method) -> Response<SiteBody> {
    file(StatusCode::NOT_FOUND, page, 0, None, method)
}

/// Responds with a plain text.
pub(super) fn plain_text(
    code: StatusCode,
    text: impl Into<Bytes>,
    method: &Method,
) -> Response<SiteBody> {
    let text = text.into();
    let length = text.len();
    let body = if method == Method::HEAD {
        empty()
    } else {
        full(text)
    };
    let mut answer = status(code, body);
    set_header(
        &mut answer,
        header::CONTENT_TYPE,
        "text/plain; charset=utf-8",
    );
    set_header(&mut answer, header::CONTENT_LENGTH, &length.to_string());
    answer
}

/// Refuses a visitor of a suspended platform.
pub(super) fn access_refusal(closed: AccessRefusal, method: &Method) -> Response<SiteBody> {
    let mut answer = plain_text(closed.status(), format!("{closed}\n"), method);
    // The suspension may be lifted at any time.
    let never = HeaderValue::from_static("no-store");
    answer.headers_mut().insert(header::CACHE_CONTROL, never);
    answer
}

/// Refuses methods other than `GET` and `HEAD`.
pub(super) fn method_not_allowed() -> Response<SiteBody> {
    let text = "Only GET and HEAD are allowed.\n";
    let mut answer = plain_text(StatusCode::METHOD_NOT_ALLOWED, text, &Method::GET);
    set_header(&mut answer, header::ALLOW, "GET, HEAD");
    answer
}

/// Redirects to the path with a slash at the end.
pub(super) fn redirect(path: &str, query: Option<&str>) -> Response<SiteBody> {
    let mut answer = status(StatusCode::PERMANENT_REDIRECT, empty());
    let location = query.map_or_else(|| path.to_owned(), |query| format!("{path}?{query}"));
    set_header(&mut answer, header::LOCATION, &location);
    set_header(&mut answer, header::CONTENT_LENGTH, "0");
    // The path may become a file with the next deployment.
    answer.headers_mut().insert(header::CACHE_CONTROL, CACHE);
    answer
}

fn not_modified(tag: &str, headers: &HeaderMap) -> bool {
    headers
        .get_all(header::IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .any(|value| matches_entity_tag(value, tag))
}

fn requested_range(page: &Page, tag: &str, method: &Method, headers: &HeaderMap) -> Range {
    let text = |name| headers.get(name).and_then(|v| v.to_str().ok());
    let wanted = match text(header::RANGE) {
        Some(range) if method == Method::GET && !not_modified(tag, headers) => range,
        _ => return Range::Whole,
    };
    // Another entity tag, or a date, which this server never sends. The part would not match the version that the
    // client has.
    if headers.contains_key(header::IF_RANGE) && text(header::IF_RANGE) != Some(tag) {
        return Range::Whole;
    }
    Range::parse(wanted, page.entry.size)
}

fn file(
    code: StatusCode,
    page: Page,
    start: u64,
    end: Option<u64>,
    method: &Method,
) -> Response<SiteBody> {
    let length = end.map_or(page.entry.size, |end| end + 1) - start;
    let body = if method == Method::HEAD || length == 0 {
        empty()
    } else {
        file_body(page.file, start, length)
    };
    let mut answer = status(code, body);
    set_header(&mut answer, header::CONTENT_TYPE, &page.entry.content_type);
    set_header(&mut answer, header::CONTENT_LENGTH, &length.to_string());
    answer
}

fn file_body(file: File, start: u64, length: u64) -> SiteBody {
    let opened = async move {
        let mut file = tokio::fs::File::from_std(file);
        file.seek(SeekFrom::Start(start)).await?;
        Ok::<_, std::io::Error>(ReaderStream::with_capacity(file.take(length), CHUNK_BYTES))
    };
    let frames = stream::once(opened)
        .try_flatten()
        .map(|chunk| chunk.map(Frame::data));
    BodyExt::boxed(StreamBody::new(frames))
}

fn status(code: StatusCode, body: SiteBody) -> Response<SiteBody> {
    let mut answer = Response::new(body);
    *answer.status_mut() = code;
    set_header(&mut answer, header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    answer
}

fn set_header(answer: &mut Response<SiteBody>, name: header::HeaderName, value: &str) {
    // Every value comes from this module or from a parsed request, so it is always a valid header value.
    if let Ok(value) = HeaderValue::from_str(value) {
        answer.headers_mut().insert(name, value);
    }
}

fn empty() -> SiteBody {
    Empty::<Bytes>::new()
        .map_err(|never| match never {})
        .boxed()
}

fn full(text: Bytes) -> SiteBody {
    Full::new(text).map_err(|never| match never {}).boxed()
}
