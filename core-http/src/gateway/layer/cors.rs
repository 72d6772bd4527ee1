//! Step 7: preflights, which are answered without asking for a credential.

use std::sync::Arc;

use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS,
};
use http::{HeaderMap, HeaderValue};
use tower::ServiceExt;

use super::{Next, Step};
use crate::gateway::config::Settings;
use crate::gateway::exchange::{Inbound, Outcome, single};
use crate::kernel::cors::{EXPOSED_HEADERS, is_preflight, preflight, vary_by_origin};

#[derive(Clone, Debug)]
pub(crate) struct Cors(pub(crate) Arc<Settings>);

impl Step for Cors {
    async fn run<S: Next>(&self, inbound: Inbound, next: S) -> Outcome {
        let request = &inbound.request;
        if !is_preflight(request.method(), request.headers()) {
            return next.oneshot(inbound).await;
        }
        let origin = single(request.headers(), "origin");
        let allowed = origin.and_then(|origin| self.0.origins.find(origin));
        Ok(preflight(allowed.map(|_| self.0.cors_headers.clone())))
    }
}

/// Adds the CORS headers that let a page of an allowed origin read the answer.
pub(crate) fn expose(headers: &mut HeaderMap, origin: Option<HeaderValue>, settings: &Settings) {
    vary_by_origin(headers);
    let Some(origin) = origin else {
        return;
    };
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED_HEADERS);
    if settings.cors_credentials {
        let yes = HeaderValue::from_static("true");
        headers.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, yes);
    }
}
