//! The body of a request. The next request on a connection begins after it, so the connection reads the part that the
//! service did not read.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;

use crate::kernel::{BodyTimes, BoxError, TimedBody};

/// Maximum number of unread body bytes that are discarded. For a larger remainder, closing the connection costs less.
const MAX_DISCARDED_BYTES: usize = 256 * 1024;

/// Maximum time that a response waits while the remainder of the body is discarded.
const DISCARD_TIME: Duration = Duration::from_secs(2);

/// The body of a request as [`serve`](super::serve) passes it to the service, with time limits.
#[derive(Debug)]
pub struct IncomingBody {
    /// The body; `None` while this value is being dropped.
    inner: Option<TimedBody<Incoming>>,
    has_begun: bool,
    /// Receives the part that the service did not read; `None` for a body without bytes.
    rest: Option<Unread>,
}

/// The part of a body that the service did not read.
#[derive(Clone, Debug, Default)]
pub(super) struct Unread(Arc<Mutex<UnreadPart>>);

/// The state of the unread part of a body.
#[derive(Debug, Default)]
enum UnreadPart {
    /// The service still has the body.
    #[default]
    InUse,
    /// The service has read the body to its end.
    Nothing,
    /// The service dropped the body after it had begun to read it.
    Part(TimedBody<Incoming>),
    /// The service dropped the body without reading it.
    Whole(TimedBody<Incoming>),
    /// Reading the body failed.
    Broken,
}

impl IncomingBody {
    /// Returns the body with these time limits, and a handle to its unread part. The handle is `None` for an empty
    /// body.
    pub(super) fn new(body: Incoming, times: BodyTimes) -> (Self, Option<Unread>) {
        let rest = (!body.is_end_stream()).then(Unread::default);
        let body = Self {
            inner: Some(TimedBody::new(body, times)),
            has_begun: false,
            rest: rest.clone(),
        };
        (body, rest)
    }
}

impl Unread {
    fn leave(&self, rest: UnreadPart) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = rest;
    }

    fn take(&self) -> UnreadPart {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads and discards the unread part. Returns whether the end of the body was reached. `is_held_back` means that
    /// the client sends no bytes before the service begins to read (`Expect: 100-continue`).
    pub(super) async fn discard(self, is_held_back: bool) -> bool {
        match self.take() {
            UnreadPart::Nothing => true,
            UnreadPart::Part(body) => discard_body(body).await,
            UnreadPart::Whole(body) => !is_held_back && discard_body(body).await,
            UnreadPart::InUse | UnreadPart::Broken => false,
        }
    }
}

async fn discard_body(mut body: TimedBody<Incoming>) -> bool {
    if body.size_hint().lower() > MAX_DISCARDED_BYTES as u64 {
        return false;
    }
    let read = async {
        let mut length = 0;
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else { return false };
            length += frame.data_ref().map_or(0, Bytes::len);
            if length > MAX_DISCARDED_BYTES {
                return false;
            }
        }
        true
    };
    tokio::time::timeout(DISCARD_TIME, read)
        .await
        .unwrap_or(false)
}

impl Body for IncomingBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        let Some(inner) = &mut this.inner else {
            return Poll::Ready(None);
        };
        this.has_begun = true;
        let polled = Pin::new(&mut *inner).poll_frame(cx);
        if let (Poll::Ready(frame), Some(rest)) = (&polled, &this.rest) {
            if matches!(frame, Some(Err(_))) {
                rest.leave(UnreadPart::Broken);
                this.rest = None;
            } else if frame.is_none() || inner.is_end_stream() {
                rest.leave(UnreadPart::Nothing);
                this.rest = None;
            }
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let inner = self.inner.as_ref();
        inner.map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}

impl Drop for IncomingBody {
    fn drop(&mut self) {
        if let (Some(inner), Some(rest)) = (self.inner.take(), &self.rest) {
            rest.leave(if self.has_begun {
                UnreadPart::Part(inner)
            } else {
                UnreadPart::Whole(inner)
            });
        }
    }
}
