//! Step 4: one line in the log for each request, when its answer has ended or the client has left.
//!
//! Nothing of the client's own text is in it but the method and the request id, and that one is harmless by its rule.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::StatusCode;
use http_body::{Body as _, Frame, SizeHint};
use tower::ServiceExt;

use super::{Next, Step};
use crate::gateway::exchange::{Exchange, Inbound, Outcome, boxed};
use crate::kernel::{Body, BoxError, status_of};

/// The status of a request whose client left before there was an answer, as nginx has it.
const CLIENT_LEFT: u16 = 499;

#[derive(Clone, Debug)]
pub(crate) struct Log;

impl Step for Log {
    async fn run<S: Next>(&self, inbound: Inbound, next: S) -> Outcome {
        let mut line = Line::begin(Arc::clone(&inbound.exchange));
        match next.oneshot(inbound).await {
            Ok(response) => {
                line.status = response.status().as_u16();
                Ok(response.map(|body| boxed(Logged::new(body, line))))
            }
            Err(refusal) => {
                line.status = status_of(refusal.error.code()).as_u16();
                line.ended = true;
                Err(refusal)
            }
        }
    }
}

/// A line that writes itself when it is dropped, whatever the reason.
#[derive(Debug)]
struct Line {
    exchange: Arc<Exchange>,
    status: u16,
    bytes: u64,
    ended: bool,
    broken: bool,
}

impl Line {
    fn begin(exchange: Arc<Exchange>) -> Self {
        Self {
            exchange,
            status: CLIENT_LEFT,
            bytes: 0,
            ended: false,
            broken: false,
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

impl Drop for Line {
    fn drop(&mut self) {
        let exchange = &self.exchange;
        let millis = |time: std::time::Duration| time.as_secs_f64() * 1_000.0;
        tracing::info!(
            target: "core::gateway",
            method = %exchange.method,
            route = exchange.route_name(),
            status = self.status,
            outcome = self.outcome(),
            bytes = self.bytes,
            duration_ms = millis(exchange.arrived.elapsed()),
            head_ms = exchange.head_time.get().copied().map(millis),
            upstream_ms = exchange.upstream_time.get().copied().map(millis),
            request_id = exchange.request_id(),
            trace_id = exchange.trace.trace_id,
            actor = exchange.actor.get().map(String::as_str),
            "request"
        );
    }
}

/// An answer's body that is counted until it ends.
#[derive(Debug)]
struct Logged {
    inner: Body,
    line: Line,
}

impl Logged {
    fn new(inner: Body, mut line: Line) -> Self {
        line.ended = inner.is_end_stream();
        Self { inner, line }
    }
}

impl http_body::Body for Logged {
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
                self.line.bytes += u64::try_from(length).unwrap_or(u64::MAX);
                // hyper does not ask again when it knows that this was the last frame.
                self.line.ended = self.inner.is_end_stream();
            }
            Some(Err(_)) => self.line.broken = true,
            None => self.line.ended = true,
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
