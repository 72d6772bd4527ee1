//! Step 4: one log entry for each request, written when its answer has ended or the client has disconnected.
//!
//! Nothing of the client's own text is in it but the method and the request id, which is harmless by its rule.

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

/// The status of a request whose client disconnected before the answer; the same as nginx's.
const CLIENT_CLOSED_REQUEST: u16 = 499;

#[derive(Clone, Debug)]
pub(crate) struct AccessLog;

impl Step for AccessLog {
    async fn run<S: Next>(&self, inbound: Inbound, next: S) -> Outcome {
        let mut entry = AccessLogEntry::begin(Arc::clone(&inbound.exchange));
        match next.oneshot(inbound).await {
            Ok(response) => {
                entry.status = response.status().as_u16();
                Ok(response.map(|body| boxed(LoggedBody::new(body, entry))))
            }
            Err(refusal) => {
                entry.status = status_of(refusal.error.code()).as_u16();
                entry.ended = true;
                Err(refusal)
            }
        }
    }
}

/// An entry that is written when it is dropped, whatever the reason.
#[derive(Debug)]
struct AccessLogEntry {
    exchange: Arc<Exchange>,
    status: u16,
    bytes: u64,
    ended: bool,
    broken: bool,
}

impl AccessLogEntry {
    fn begin(exchange: Arc<Exchange>) -> Self {
        Self {
            exchange,
            status: CLIENT_CLOSED_REQUEST,
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

impl Drop for AccessLogEntry {
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
struct LoggedBody {
    inner: Body,
    entry: AccessLogEntry,
}

impl LoggedBody {
    fn new(inner: Body, mut entry: AccessLogEntry) -> Self {
        entry.ended = inner.is_end_stream();
        Self { inner, entry }
    }
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
