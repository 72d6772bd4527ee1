//! The request body that is sent to the upstream. It limits the size, and records which side the gateway is waiting
//! for.
//!
//! A service may respond before it has received the whole body. The upload then ends with the response: the connection
//! to the service is closed, and so is that to the client, because the rest of the body is on it.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use http_body::{Frame, SizeHint};
use tokio::time::Instant;

use crate::kernel::{Body, BoxError};

/// The side that the gateway is waiting for, and the time at which the wait began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    /// The client has not sent the next frame.
    ForClient(Instant),
    /// The upstream has received everything so far and has not responded yet.
    ForUpstream(Instant),
}

/// The state of an upload.
#[derive(Debug)]
pub(crate) struct Progress {
    waiting: Mutex<Waiting>,
    too_large: AtomicBool,
    broken: AtomicBool,
    /// Whether the upload exists and is not complete.
    is_open: AtomicBool,
    has_response_ended: AtomicBool,
    /// Wakes the reader of the upload when the response has ended.
    reader: AtomicWaker,
}

/// The side that exceeded its timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimedOut {
    Client,
    Upstream,
}

impl Default for Progress {
    /// Returns the state of an upload whose body was received completely just now.
    fn default() -> Self {
        Self {
            waiting: Mutex::new(Waiting::ForUpstream(Instant::now())),
            too_large: AtomicBool::new(false),
            broken: AtomicBool::new(false),
            is_open: AtomicBool::new(false),
            has_response_ended: AtomicBool::new(false),
            reader: AtomicWaker::new(),
        }
    }
}

impl Progress {
    fn waiting(&self) -> Waiting {
        *self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, waiting: Waiting) {
        *self.waiting.lock().unwrap_or_else(PoisonError::into_inner) = waiting;
    }

    /// Returns whether the body exceeded its limit.
    pub(crate) fn is_too_large(&self) -> bool {
        self.too_large.load(Ordering::Relaxed)
    }

    /// Returns whether reading the body failed.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Relaxed)
    }

    /// Returns whether a part of the body is still to be sent to the upstream.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }

    /// Ends the upload, because the response to it has ended.
    fn end_response(&self) {
        self.has_response_ended.store(true, Ordering::Release);
        self.reader.wake();
    }

    /// Completes when the client has paused for longer than `client`, or the upstream has not responded for longer than
    /// `upstream`.
    pub(crate) async fn timed_out(&self, client: Duration, upstream: Duration) -> TimedOut {
        loop {
            let seen = self.waiting();
            let (deadline, timed_out) = match seen {
                Waiting::ForClient(since) => (since + client, TimedOut::Client),
                Waiting::ForUpstream(since) => (since + upstream, TimedOut::Upstream),
            };
            tokio::time::sleep_until(deadline).await;
            if self.waiting() == seen {
                return timed_out;
            }
        }
    }
}

/// The body exceeds its limit.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the request body is too large")]
struct TooLarge;

/// The upstream has responded before the end of the upload.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the response has ended before the request body")]
struct ResponseEnded;

/// A request body that fails when it exceeds its limit, or when the response has ended.
#[derive(Debug)]
pub(crate) struct Upload {
    inner: Body,
    left: u64,
    progress: Arc<Progress>,
}

impl Upload {
    /// Limits a body to `limit` bytes and tracks its progress.
    pub(crate) fn new(inner: Body, limit: u64) -> (Self, Arc<Progress>) {
        let progress = Arc::<Progress>::default();
        progress.is_open.store(true, Ordering::Release);
        let upload = Self {
            inner,
            left: limit,
            progress: Arc::clone(&progress),
        };
        (upload, progress)
    }

    fn count(&mut self, frame: Frame<Bytes>) -> Result<Frame<Bytes>, BoxError> {
        let length = frame
            .data_ref()
            .map_or(0, |data| u64::try_from(data.len()).unwrap_or(u64::MAX));
        match self.left.checked_sub(length) {
            Some(left) => {
                self.left = left;
                Ok(frame)
            }
            None => {
                self.progress.too_large.store(true, Ordering::Relaxed);
                Err(Box::new(TooLarge))
            }
        }
    }
}

impl http_body::Body for Upload {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let polled = Pin::new(&mut self.inner).poll_frame(cx);
        let Poll::Ready(frame) = polled else {
            self.progress.reader.register(cx.waker());
            if self.progress.has_response_ended.load(Ordering::Acquire) {
                return Poll::Ready(Some(Err(Box::new(ResponseEnded))));
            }
            if matches!(self.progress.waiting(), Waiting::ForUpstream(_)) {
                self.progress.set(Waiting::ForClient(Instant::now()));
            }
            return Poll::Pending;
        };
        self.progress.set(Waiting::ForUpstream(Instant::now()));
        if matches!(frame, Some(Err(_))) {
            self.progress.broken.store(true, Ordering::Relaxed);
        }
        Poll::Ready(frame.map(|frame| frame.and_then(|frame| self.count(frame))))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        self.progress.is_open.store(false, Ordering::Release);
    }
}

/// Ends an upload when it is dropped, because the response to it has ended.
#[derive(Debug)]
pub(crate) struct UploadEnd(pub(crate) Arc<Progress>);

impl Drop for UploadEnd {
    fn drop(&mut self) {
        self.0.end_response();
    }
}
