//! Step 1: the security headers, on every answer. They replace those of an upstream.

use std::sync::Arc;

use http::HeaderValue;
use http::header::{CACHE_CONTROL, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS};
use tower::ServiceExt;

use super::{Next, Step};
use crate::gateway::config::Settings;
use crate::gateway::exchange::{Inbound, Outcome, headers_of};

#[derive(Clone, Debug)]
pub(crate) struct SecurityHeaders(pub(crate) Arc<Settings>);

impl Step for SecurityHeaders {
    async fn run<S: Next>(&self, inbound: Inbound, next: S) -> Outcome {
        // A path that is refused was most likely meant for the API.
        let no_store = inbound.exchange.is_api() || inbound.exchange.destination.is_err();
        let mut outcome = next.oneshot(inbound).await;
        let headers = headers_of(&mut outcome);
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        headers.insert(X_FRAME_OPTIONS, self.0.frame_options.clone());
        headers.insert(REFERRER_POLICY, self.0.referrer_policy.clone());
        if no_store {
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        }
        outcome
    }
}
