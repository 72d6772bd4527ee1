//! Step 7: answers the question a browser asks before a page's request, without asking who is there.

use std::sync::Arc;

use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS,
};
use http::{HeaderMap, HeaderValue};
use tower::ServiceExt;

use super::{Next, Step};
use crate::gateway::config::Settings;
use crate::gateway::exchange::{Inbound, Outcome, single};
use crate::kernel::cors::{is_preflight, preflight, vary_by_origin};

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
        let origin = single(inbound.request.headers(), "origin");
        let listed = origin.and_then(|origin| self.0.origins.find(origin));
        Ok(preflight(listed.map(|_| self.0.cors_headers.clone())))
    }
}

/// Lets the page of a listed origin read an answer.
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
