//! Step 4: one log entry for each request, written when its answer has ended or the client has disconnected.
//!
//! Nothing of the client's own text is in it but the method and the request id, which is harmless by its rule.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Response, StatusCode};
use http_body::{Body as _, Frame, SizeHint};

use crate::gateway::exchange::Exchange;
use crate::kernel::{Body, BoxError};

/// The status of a request whose client disconnected before the answer; the same as nginx's.
const CLIENT_CLOSED_REQUEST: u16 = 499;

/// An entry that is written when it is dropped, whatever the reason.
#[derive(Debug)]
pub(super) struct AccessLogEntry {
    pub(super) exchange: Exchange,
    status: u16,
    bytes: u64,
    ended: bool,
    broken: bool,
}

impl AccessLogEntry {
    pub(super) fn begin(exchange: Exchange) -> Self {
        Self {
            exchange,
            status: CLIENT_CLOSED_REQUEST,
            bytes: 0,
            ended: false,
            broken: false,
        }
    }

    /// The answer; its entry is written when its body has ended. The entry of a refusal, which has no body of a service, is
    /// written at once.
    pub(super) fn answered(mut self, response: Response<Body>, refused: bool) -> Response<Body> {
        self.status = response.status().as_u16();
        if refused {
            self.ended = true;
            return response;
        }
        self.ended = response.body().is_end_stream();
        response.map(|inner| Body::new(LoggedBody { inner, entry: self }))
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

/// Milliseconds, to the microsecond.
fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

impl Drop for AccessLogEntry {
    fn drop(&mut self) {
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

/// An answer's body that is counted until it ends.
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
