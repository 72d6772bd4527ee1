//! Step 8: the tracing span of the request.

use std::sync::Arc;

use tower::ServiceExt;
use tracing::Instrument;

use super::{Next, Step};
use crate::gateway::exchange::{Inbound, Outcome};

#[derive(Clone, Debug)]
pub(crate) struct Trace;

impl Step for Trace {
    async fn run<S: Next>(&self, inbound: Inbound, next: S) -> Outcome {
        let exchange = Arc::clone(&inbound.exchange);
        let span = tracing::info_span!(
            target: "core::gateway",
            "gateway",
            trace_id = exchange.trace.trace_id,
            span_id = exchange.trace.span_id,
            request_id = exchange.request_id(),
            route = exchange.route_name(),
        );
        next.oneshot(inbound).instrument(span).await
    }
}
