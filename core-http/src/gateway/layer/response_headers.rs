//! The headers that every answer has, even when it was made before their own step: request id, trace id, and CORS. Without
//! CORS headers on a 429, a browser would report a network error to its page instead of the reason.
//!
//! The connection of a chunked request ends with its answer: hyper does not show whether there was a `Content-Length`
//! as well, and a proxy in front that used it would take the rest for another client's request.

use std::sync::Arc;

use http::header::{CONNECTION, TRANSFER_ENCODING};
use http::{HeaderName, HeaderValue};
use tower::ServiceExt;

use super::{Next, Step, cors};
use crate::gateway::config::Settings;
use crate::gateway::exchange::{Inbound, Outcome, headers_of, single};
use crate::kernel::header_names;

const X_REQUEST_ID: HeaderName = HeaderName::from_static(header_names::REQUEST_ID);
const X_CORE_TRACE_ID: HeaderName = HeaderName::from_static(header_names::TRACE_ID);

#[derive(Clone, Debug)]
pub(crate) struct ResponseHeaders(pub(crate) Arc<Settings>);

impl Step for ResponseHeaders {
    async fn run<S: Next>(&self, inbound: Inbound, next: S) -> Outcome {
        let exchange = Arc::clone(&inbound.exchange);
        let origin = single(inbound.request.headers(), "origin")
            .and_then(|origin| self.0.origins.find(origin))
            .and_then(|origin| HeaderValue::from_str(origin.as_str()).ok());
        let chunked = inbound.request.headers().contains_key(TRANSFER_ENCODING);
        let mut outcome = next.oneshot(inbound).await;
        let headers = headers_of(&mut outcome);
        if let Ok(id) = HeaderValue::from_str(exchange.request_id()) {
            headers.insert(X_REQUEST_ID, id);
        }
        if let Ok(id) = HeaderValue::from_str(&exchange.trace.trace_id) {
            headers.insert(X_CORE_TRACE_ID, id);
        }
        cors::expose(headers, origin, &self.0);
        if chunked {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        outcome
    }
}
