//! Tells browsers which pages may call: what the gateway says and services that are called without one, and the list of the latter.

use core_domain::gateway::PREFLIGHT_METHODS;
use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
    ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};

use super::{Body, empty_body};

/// What a page may send besides what browsers let it send anyway.
const SENT: HeaderValue = HeaderValue::from_static("Content-Type, Authorization, X-Request-Id");

/// What of an answer's headers a page may read.
const EXPOSED: HeaderValue = HeaderValue::from_static("X-Request-Id, Retry-After, ETag");

/// How long a browser may remember the answer to its question, in seconds.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");

/// Whether this is the question a browser asks before a page's request.
pub(crate) fn is_preflight(request: &Request<Body>) -> bool {
    request.method() == Method::OPTIONS
        && request.headers().contains_key(ORIGIN)
        && request
            .headers()
            .contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// The answer to that question: to a page that may call, with the headers it may send.
pub(crate) fn preflight(may_send: Option<HeaderValue>) -> Response<Body> {
    let mut response = Response::new(empty_body());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let Some(may_send) = may_send else {
        return response;
    };
    let headers = response.headers_mut();
    let methods = HeaderValue::from_static(PREFLIGHT_METHODS);
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, methods);
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, may_send);
    headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    response
}

/// Says that the answer varies by origin, even when there is none: a cache must not give one origin's answer to another.
pub(crate) fn vary_by_origin(headers: &mut HeaderMap) {
    let named = headers
        .get_all(VARY)
        .iter()
        .flat_map(|line| line.as_bytes().split(|b| *b == b','))
        .any(|name| name.trim_ascii().eq_ignore_ascii_case(b"origin"));
    if !named {
        headers.append(VARY, HeaderValue::from_static("Origin"));
    }
}

/// The origins whose pages may call, cookies included, as browsers write them. When there are none, nothing is said.
#[derive(Clone, Debug, Default)]
pub(super) struct Pages(pub(super) Vec<String>);

impl Pages {
    /// The origin of the request, if it is listed.
    pub(super) fn origin_of(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let mut lines = headers.get_all(ORIGIN).iter();
        let (origin, second) = (lines.next()?, lines.next());
        let listed = self
            .0
            .iter()
            .any(|page| page.as_bytes() == origin.as_bytes());
        (listed && second.is_none()).then(|| origin.clone())
    }

    /// The answer to the question a browser asks before a page's request; `None` for any other request.
    pub(super) fn preflight(&self, request: &Request<Body>) -> Option<Response<Body>> {
        if self.0.is_empty() || !is_preflight(request) {
            return None;
        }
        let listed = self.origin_of(request.headers());
        Some(preflight(listed.map(|_| SENT)))
    }

    /// Lets the page of this origin read an answer.
    pub(super) fn allow(&self, origin: Option<HeaderValue>, headers: &mut HeaderMap) {
        if self.0.is_empty() {
            return;
        }
        vary_by_origin(headers);
        let Some(origin) = origin else { return };
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        let yes = HeaderValue::from_static("true");
        headers.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, yes);
        headers.append(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    }
}
