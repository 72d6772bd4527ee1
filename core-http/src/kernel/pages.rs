//! Lets the pages of listed origins read the answers of a service that browsers call without a gateway before it.

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
        let headers = request.headers();
        let asks = request.method() == Method::OPTIONS
            && headers.contains_key(ORIGIN)
            && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
        if self.0.is_empty() || !asks {
            return None;
        }
        let mut response = Response::new(empty_body());
        *response.status_mut() = StatusCode::NO_CONTENT;
        if self.origin_of(headers).is_some() {
            let said = response.headers_mut();
            let methods = HeaderValue::from_static(PREFLIGHT_METHODS);
            said.insert(ACCESS_CONTROL_ALLOW_METHODS, methods);
            said.insert(ACCESS_CONTROL_ALLOW_HEADERS, SENT);
            said.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
        }
        Some(response)
    }

    /// Lets the page of this origin read an answer. What is answered to others varies by origin as well: a cache must not
    /// give one origin's answer to another.
    pub(super) fn allow(&self, origin: Option<HeaderValue>, headers: &mut HeaderMap) {
        if self.0.is_empty() {
            return;
        }
        headers.append(VARY, HeaderValue::from_static("Origin"));
        let Some(origin) = origin else { return };
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        let yes = HeaderValue::from_static("true");
        headers.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, yes);
        headers.append(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    }
}
