//! Headers that every answer carries although their own step may never be reached: the request id, the trace id, and
//! CORS. Without CORS headers on a 429, say, a browser would show its page a network error instead of the reason.
//!
//! The connection of a chunked request ends with its answer: hyper does not show whether a `Content-Length` stood beside
//! the chunks, and a proxy before us that went by it would take what follows for another client's request.

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
pub(crate) struct Decorate(pub(crate) Arc<Settings>);

impl Step for Decorate {
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
        cors::allow(headers, origin, &self.0);
        if chunked {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        outcome
    }
}
