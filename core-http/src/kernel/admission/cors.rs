//! Cross-origin requests: the CORS policy of the gateway and of services, and the refusal of cross-origin requests.

use core_domain::gateway::{BrowserRequest, PREFLIGHT_METHODS};
use core_domain::kernel::{Code, Error};
use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
    ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};

use crate::kernel::request::body::{Body, empty_body};
use crate::kernel::request::header_lines::single;

/// The request headers that pages of allowed origins may send (`Access-Control-Allow-Headers`).
pub(crate) const ALLOWED_HEADERS: &str = "Content-Type, Authorization, X-Request-Id";

/// The response headers that pages of allowed origins may read (`Access-Control-Expose-Headers`).
const EXPOSED_HEADERS: HeaderValue =
    HeaderValue::from_static("X-Request-Id, Retry-After, ETag, RateLimit, RateLimit-Policy");

/// The time for which browsers may cache the response to a preflight, in seconds.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");

/// Returns whether the request is a CORS preflight.
fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    method == Method::OPTIONS
        && headers.contains_key(ORIGIN)
        && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// Returns the method of a request. For a preflight, it is the method of the request that the browser intends to send.
pub(crate) fn intended_method(method: &Method, headers: &HeaderMap) -> Method {
    let requested = headers
        .get(ACCESS_CONTROL_REQUEST_METHOD)
        .filter(|_| is_preflight(method, headers))
        .and_then(|name| Method::from_bytes(name.as_bytes()).ok());
    requested.unwrap_or_else(|| method.clone())
}

/// Creates the response to a preflight. `allowed_headers` are the headers that an allowed origin may send; `None`
/// refuses the origin.
fn preflight(allowed_headers: Option<HeaderValue>) -> Response<Body> {
    let mut response = Response::new(empty_body());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let Some(allowed_headers) = allowed_headers else {
        return response;
    };
    let headers = response.headers_mut();
    let methods = HeaderValue::from_static(PREFLIGHT_METHODS);
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, methods);
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, allowed_headers);
    headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    response
}

/// Adds `Vary: Origin`, so that a cache does not serve the response for one origin to another. It is also needed in
/// responses to requests without an origin.
fn vary_by_origin(headers: &mut HeaderMap) {
    let named = headers
        .get_all(VARY)
        .iter()
        .flat_map(|line| line.as_bytes().split(|b| *b == b','))
        .any(|name| name.trim_ascii().eq_ignore_ascii_case(b"origin"));
    if !named {
        headers.append(VARY, HeaderValue::from_static("Origin"));
    }
}

/// Returns whether a browser sent the request for a page of another origin that is not allowed.
pub(crate) fn is_cross_origin(
    method: &Method,
    headers: &HeaderMap,
    host: Option<&str>,
    is_allowed: impl Fn(&[u8]) -> bool,
) -> bool {
    let said = |name: &str, value: &str| headers.get(name).is_some_and(|v| v == value);
    let safe = matches!(*method, Method::GET | Method::HEAD);
    let mut origins = headers.get_all(ORIGIN).iter();
    let origin = match (origins.next(), origins.next()) {
        (origin, None) => origin.map(HeaderValue::as_bytes),
        // No browser sends two lines. An empty origin is never allowed.
        (_, Some(_)) => Some(&b""[..]),
    };
    let page = BrowserRequest {
        origin,
        fetch_site: headers.get("sec-fetch-site").map(HeaderValue::as_bytes),
        is_navigation: safe
            && said("sec-fetch-mode", "navigate")
            && said("sec-fetch-dest", "document"),
        host,
    };
    page.is_cross_origin(is_allowed)
}

/// Returns the error for a refused cross-origin request.
pub(crate) fn cross_origin_error() -> Error {
    Error::refused(
        Code::InvalidOrigin,
        "Without a service key, cross-origin requests are refused.",
    )
}

/// A CORS policy: the origins whose pages may call, with the headers and cookies that these pages may send.
#[derive(Clone, Debug)]
pub(crate) struct CorsPolicy {
    /// The allowed origins, as browsers write them.
    origins: Vec<String>,
    /// The request headers that pages may send: the value of `Access-Control-Allow-Headers`.
    headers: HeaderValue,
    /// `true` if pages of these origins may send cookies.
    credentials: bool,
}

impl CorsPolicy {
    /// Creates a policy.
    pub(crate) const fn new(origins: Vec<String>, headers: HeaderValue, credentials: bool) -> Self {
        Self {
            origins,
            headers,
            credentials,
        }
    }

    /// Creates the policy of a service that accepts cookies of these origins; `None` without origins. No CORS headers
    /// are then sent.
    pub(crate) fn of_service(origins: Vec<String>) -> Option<Self> {
        let headers = HeaderValue::from_static(ALLOWED_HEADERS);
        (!origins.is_empty()).then(|| Self::new(origins, headers, true))
    }

    /// Returns whether pages of this origin may call.
    pub(crate) fn allows(&self, origin: &[u8]) -> bool {
        self.origins
            .iter()
            .any(|allowed| allowed.as_bytes() == origin)
    }

    /// Returns the origin of the request, if it is allowed.
    pub(crate) fn allowed_origin(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let origin = single(headers, &ORIGIN)?;
        self.allows(origin.as_bytes()).then(|| origin.clone())
    }

    /// Returns the response to a preflight; `None` for any other request.
    pub(crate) fn preflight(&self, method: &Method, headers: &HeaderMap) -> Option<Response<Body>> {
        if !is_preflight(method, headers) {
            return None;
        }
        let allowed = self.allowed_origin(headers);
        Some(preflight(allowed.map(|_| self.headers.clone())))
    }

    /// Adds the CORS headers that allow pages of this origin to read the response.
    pub(crate) fn expose(&self, origin: Option<HeaderValue>, headers: &mut HeaderMap) {
        vary_by_origin(headers);
        let Some(origin) = origin else { return };
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.append(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED_HEADERS);
        if self.credentials {
            let yes = HeaderValue::from_static("true");
            headers.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, yes);
        }
    }
}
