//! Step 4: writes one log entry per request, when its response has ended or the client has disconnected. At the same time
//! the request is counted for the metrics, and metered unless the gateway has refused it.
//!
//! The entry contains no text of the client except the method and the request id, whose format is restricted.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use core_domain::kernel::Code;
use http::{Response, StatusCode};
use http_body::{Body as _, Frame, SizeHint};

use super::metrics::GatewayMetrics;
use crate::gateway::exchange::Exchange;
use crate::gateway::usage_meter::UsageMeter;
use crate::kernel::{Body, BoxError, OpenSpan};

/// The logged status if the client disconnected before the response. nginx uses the same number.
const CLIENT_CLOSED_REQUEST: u16 = 499;

/// A log entry that is written when it is dropped, whatever the reason for the drop.
#[derive(Debug)]
pub(super) struct AccessLogEntry {
    pub(super) exchange: Exchange,
    status: u16,
    bytes: u64,
    ended: bool,
    broken: bool,
    refused: bool,
    /// The code of a refusal.
    pub(super) error: Option<Code>,
    meter: Option<Arc<dyn UsageMeter>>,
    metrics: Arc<GatewayMetrics>,
    /// The span of the request; `None` if it is not sampled.
    span: Option<OpenSpan>,
}

impl AccessLogEntry {
    pub(super) fn begin(
        exchange: Exchange,
        meter: Option<Arc<dyn UsageMeter>>,
        metrics: Arc<GatewayMetrics>,
        span: Option<OpenSpan>,
    ) -> Self {
        metrics.begin();
        Self {
            exchange,
            status: CLIENT_CLOSED_REQUEST,
            bytes: 0,
            ended: false,
            broken: false,
            refused: false,
            error: None,
            meter,
            metrics,
            span,
        }
    }

    /// Returns the response. The entry is written when its body has ended. The entry of a refusal is written at once,
    /// because its body comes from the gateway.
    pub(super) fn into_logged_response(
        mut self,
        response: Response<Body>,
        refused: bool,
    ) -> Response<Body> {
        self.status = response.status().as_u16();
        self.refused = refused;
        if refused {
            self.ended = true;
            self.bytes = response.body().size_hint().lower();
            return response;
        }
        self.ended = response.body().is_end_stream();
        response.map(|inner| Body::new(LoggedBody { inner, entry: self }))
    }

    /// Counts the request for the platform of its caller.
    fn meter(&self) {
        let caller = self.exchange.caller.as_ref();
        let platform = caller.and_then(|caller| caller.platform_id());
        if let (Some(meter), Some(platform), false) = (&self.meter, platform, self.refused) {
            meter.count(platform, self.bytes);
        }
    }

    /// Ends the span of the request.
    fn end_span(&self, span: Option<OpenSpan>) {
        let Some(mut span) = span else {
            return;
        };
        let caller = self.exchange.caller.as_ref();
        let platform = caller.and_then(|caller| caller.platform_id());
        span.add_some("core.platform_id", platform.map(|id| id.as_str()));
        if self.exchange.head_time.is_some() {
            span.add("http.response.status_code", i64::from(self.status));
        }
        if self.broken {
            span.set_error(self.outcome());
        } else if self.status >= StatusCode::INTERNAL_SERVER_ERROR.as_u16() {
            let code = self.error.map(|code| code.as_str().to_owned());
            span.set_error(code.unwrap_or_else(|| self.status.to_string()));
        }
        if self.ended || self.broken {
            span.finish();
        }
    }

    fn outcome(&self) -> &'static str {
        if self.broken {
            "upstream-broke"
        } else if !self.ended {
            "client-left"
        } else if self.status >= StatusCode::INTERNAL_SERVER_ERROR.as_u16() {
            "server-error"
        } else if self.status >= StatusCode::BAD_REQUEST.as_u16() {
            "client-error"
        } else {
            "ok"
        }
    }
}

/// Converts a time to milliseconds, rounded to microseconds.
fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

impl Drop for AccessLogEntry {
    fn drop(&mut self) {
        self.meter();
        let exchange = &self.exchange;
        // Without the head of a response, the status is not that of a response.
        let status = exchange.head_time.map(|_| self.status);
        let status = status.and_then(|status| StatusCode::from_u16(status).ok());
        self.metrics.end(exchange, status, self.bytes);
        let span = self.span.take();
        self.end_span(span);
        let exchange = &self.exchange;
        tracing::info!(
            target: "core::gateway",
            method = exchange.method.as_str(),
            route = exchange.route_name(),
            status = self.status,
            outcome = self.outcome(),
            bytes = self.bytes,
            duration_ms = millis(exchange.arrived.elapsed()),
            head_ms = exchange.head_time.map(millis),
            upstream_ms = exchange.upstream_time.get().copied().map(millis),
            request_id = exchange.request_id(),
            trace_id = exchange.trace.trace_id(),
            actor = exchange.caller.as_ref().map(|caller| caller.actor_id()),
            "request"
        );
    }
}

/// A response body whose bytes are counted. It writes the log entry when it is dropped.
#[derive(Debug)]
struct LoggedBody {
    inner: Body,
    entry: AccessLogEntry,
}

impl http_body::Body for LoggedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let Poll::Ready(frame) = Pin::new(&mut self.inner).poll_frame(cx) else {
            return Poll::Pending;
        };
        match &frame {
            Some(Ok(frame)) => {
                let length = frame.data_ref().map_or(0, Bytes::len);
                self.entry.bytes += u64::try_from(length).unwrap_or(u64::MAX);
                // hyper does not poll again after the last frame of a body of known length.
                self.entry.ended = self.inner.is_end_stream();
            }
            Some(Err(_)) => self.entry.broken = true,
            None => self.entry.ended = true,
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
