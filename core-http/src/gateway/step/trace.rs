//! Step 8: the tracing span of the request.

use tracing::Span;

use crate::gateway::exchange::Exchange;

pub(super) fn span(exchange: &Exchange) -> Span {
    tracing::info_span!(
        target: "core::gateway",
        "gateway",
        trace_id = exchange.trace.trace_id(),
        span_id = exchange.trace.span_id(),
        request_id = exchange.request_id(),
        route = exchange.route_name(),
    )
}
