//! Errors as pages, for browsers that ask for one.

use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};

use super::answer_media::{HTML, Html, page_headers};
use super::body::{Body, bytes_body};

/// Writes the pages of errors, for a service that has pages.
pub trait ErrorPages: Send + Sync + std::fmt::Debug {
    /// The page of a status; of a request with this id, which may be tried again in so many seconds.
    fn page(&self, status: StatusCode, request_id: &str, retry_after: Option<u64>) -> Html;
}

/// The answer to a request that failed, as a page.
pub(super) fn as_page(
    pages: &dyn ErrorPages,
    mut response: Response<Body>,
    request_id: &str,
) -> Response<Body> {
    let seconds = response.headers().get(RETRY_AFTER);
    let seconds = seconds.and_then(|value| value.to_str().ok()?.parse().ok());
    let Html(text) = pages.page(response.status(), request_id, seconds);
    *response.body_mut() = bytes_body(text);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(HTML));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.extend(page_headers());
    response
}
