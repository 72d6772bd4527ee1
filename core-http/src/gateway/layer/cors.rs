//! Step 7: answers the question a browser asks before a page's request, without asking who is there.

use std::sync::Arc;

use core_domain::gateway::PREFLIGHT_METHODS;
use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
    ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use tower::ServiceExt;

use super::{Next, Step};
use crate::gateway::config::Settings;
use crate::gateway::exchange::{Inbound, Outcome, single};
use crate::kernel::{Body, empty_body};

/// How long a browser may remember the answer, in seconds.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");

/// What of an answer's headers a page may read.
const EXPOSED: HeaderValue =
    HeaderValue::from_static("X-Request-Id, Retry-After, ETag, RateLimit, RateLimit-Policy");

#[derive(Clone, Debug)]
pub(crate) struct Cors(pub(crate) Arc<Settings>);

impl Step for Cors {
    async fn run<S: Next>(&self, inbound: Inbound, next: S) -> Outcome {
        if !is_preflight(&inbound.request) {
            return next.oneshot(inbound).await;
        }
        let mut response = Response::new(empty_body());
        *response.status_mut() = StatusCode::NO_CONTENT;
        let origin = single(inbound.request.headers(), "origin");
        if origin.is_some_and(|origin| self.0.origins.find(origin).is_some()) {
            let headers = response.headers_mut();
            let methods = HeaderValue::from_static(PREFLIGHT_METHODS);
            headers.insert(ACCESS_CONTROL_ALLOW_METHODS, methods);
            headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, self.0.cors_headers.clone());
            headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
        }
        Ok(response)
    }
}

fn is_preflight(request: &Request<Body>) -> bool {
    request.method() == Method::OPTIONS
        && request.headers().contains_key(ORIGIN)
        && request
            .headers()
            .contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// Lets the page of a listed origin read an answer. The answer varies by origin even when there is none, because a
/// cache must not give one origin's answer to another.
pub(crate) fn allow(headers: &mut HeaderMap, origin: Option<HeaderValue>, settings: &Settings) {
    vary_by_origin(headers);
    let Some(origin) = origin else {
        return;
    };
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    if settings.cors_credentials {
        let yes = HeaderValue::from_static("true");
        headers.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, yes);
    }
}

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
