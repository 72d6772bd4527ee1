//! The state of a connection, and its deadline.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use super::ServeOptions;
use super::unread::{ConnectionUnread, UnreadBytes};

/// The phase in which the head of a request is being received.
const HEAD: u8 = 0;
/// The phase in which a request is being handled.
const BUSY: u8 = 1;
/// The idle phase between two requests.
const IDLE: u8 = 2;
/// The phase in which the connection closes to make room for another one.
const CLOSING: u8 = 3;
/// The phase after the last response, while the client still sends.
const LINGERING: u8 = 4;

/// Maximum time for which a connection lingers.
const LINGER_TIME: Duration = Duration::from_secs(2);

/// The size of the buffer for reading bytes that are discarded.
const DISCARD_BUFFER_BYTES: usize = 8 * 1024;

/// The state of a connection. Only the task of the connection writes it, except for [`Activity::close_if_waiting`].
#[derive(Debug)]
pub(super) struct Activity {
    began: Instant,
    phase: AtomicU8,
    /// The start of the phase, in microseconds since `began`.
    since: AtomicU64,
    /// The time since which writes are blocked, in microseconds since `began` plus one. 0 if they are not blocked.
    blocked: AtomicU64,
    /// Whether the connection lingers after the last response.
    lingers: AtomicBool,
    unread: ConnectionUnread,
}

impl Activity {
    /// Returns the state of a connection that was just accepted.
    pub(super) fn new(unread: Arc<UnreadBytes>) -> Self {
        Self {
            unread: ConnectionUnread::new(unread),
            began: Instant::now(),
            phase: AtomicU8::new(HEAD),
            since: AtomicU64::new(0),
            blocked: AtomicU64::new(0),
            lingers: AtomicBool::new(false),
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    fn enter(&self, phase: u8) {
        self.since.store(self.now(), Ordering::Relaxed);
        self.phase.store(phase, Ordering::Release);
    }

    fn bytes_received(&self) {
        let since = self.now();
        let begun = self
            .phase
            .compare_exchange(IDLE, HEAD, Ordering::AcqRel, Ordering::Relaxed);
        if begun.is_ok() {
            self.since.store(since, Ordering::Relaxed);
        }
    }

    /// Begins a request whose head is complete. Returns `false` if the request must not begin because the connection is
    /// closing.
    pub(super) fn begin_request(&self) -> bool {
        let begin = |phase| (phase != CLOSING).then_some(BUSY);
        let began = self
            .phase
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, begin);
        began.is_ok()
    }

    fn end_request(&self) {
        self.enter(IDLE);
    }

    /// Keeps the connection open for a short time after the last response, until the client has read it and closes. A
    /// socket that is closed with unread bytes is reset, and the client may lose the response.
    pub(super) fn linger(&self) {
        self.lingers.store(true, Ordering::Relaxed);
    }

    fn write_blocked(&self) {
        if self.blocked.load(Ordering::Relaxed) == 0 {
            self.blocked.store(self.now() + 1, Ordering::Relaxed);
            self.unread.check_limit();
        }
    }

    fn write_progress(&self, bytes: usize) {
        self.blocked.store(0, Ordering::Relaxed);
        self.unread.count_written(bytes);
    }

    /// Returns the response bytes of this connection that wait for the client.
    pub(super) const fn unread(&self) -> &ConnectionUnread {
        &self.unread
    }

    /// Returns the time since which the client has read nothing although there is data to send; `None` if it reads.
    pub(super) fn blocked_since(&self) -> Option<Instant> {
        match self.blocked.load(Ordering::Relaxed) {
            0 => None,
            blocked => self.at(blocked - 1, Duration::ZERO),
        }
    }

    /// Returns the time since which the connection has had no request: since it became idle, or since an incomplete
    /// head began. `None` if it has a request.
    pub(super) fn waiting_since(&self) -> Option<Instant> {
        let is_waiting = match self.phase.load(Ordering::Acquire) {
            HEAD => true,
            // The end of the last response may not have been sent yet.
            IDLE => self.blocked.load(Ordering::Relaxed) == 0,
            _ => false,
        };
        is_waiting.then(|| self.at(self.since.load(Ordering::Relaxed), Duration::ZERO))?
    }

    /// Moves a connection without a request to the closing phase, in which no request begins. Returns whether it had no
    /// request.
    pub(super) fn close_if_waiting(&self) -> bool {
        let close = |phase| matches!(phase, HEAD | IDLE).then_some(CLOSING);
        let closed = self
            .phase
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, close);
        closed.is_ok()
    }

    fn at(&self, micros: u64, later: Duration) -> Option<Instant> {
        let since = self.began.checked_add(Duration::from_micros(micros))?;
        since.checked_add(later)
    }

    /// Returns the time at which the connection exceeds a time limit unless its state changes.
    pub(super) fn deadline(&self, options: &ServeOptions) -> Option<Instant> {
        let since = self.since.load(Ordering::Relaxed);
        let waiting = match self.phase.load(Ordering::Relaxed) {
            HEAD => self.at(since, options.header_timeout),
            IDLE => self.at(since, options.keep_alive_timeout),
            LINGERING => self.at(since, LINGER_TIME),
            _ => None,
        };
        let blocked = match self.blocked.load(Ordering::Relaxed) {
            0 => None,
            blocked => self.at(blocked - 1, options.write_idle_timeout),
        };
        match (waiting, blocked) {
            (Some(waiting), Some(blocked)) => Some(waiting.min(blocked)),
            (waiting, blocked) => waiting.or(blocked),
        }
    }
}

/// Releases the bytes that wait for a client when its connection ends.
#[derive(Debug)]
pub(super) struct UnreadGuard(pub(super) Arc<Activity>);

impl Drop for UnreadGuard {
    fn drop(&mut self) {
        self.0.unread.release();
    }
}

/// Marks the connection as idle when the body of its response is dropped.
#[derive(Debug)]
pub(super) struct AnswerGuard(pub(super) Arc<Activity>);

impl Drop for AnswerGuard {
    fn drop(&mut self) {
        self.0.end_request();
    }
}

/// A stream that reports reads and writes to an [`Activity`].
#[derive(Debug)]
pub(super) struct Observed<T> {
    inner: T,
    activity: Arc<Activity>,
    is_lingering: bool,
}

impl<T> Observed<T> {
    pub(super) fn new(inner: T, activity: Arc<Activity>) -> Self {
        Self {
            inner,
            activity,
            is_lingering: false,
        }
    }

    fn record_write(&self, outcome: Poll<std::io::Result<usize>>) -> Poll<std::io::Result<usize>> {
        match &outcome {
            Poll::Pending => self.activity.write_blocked(),
            Poll::Ready(written) => {
                let bytes = written.as_ref().copied().unwrap_or_default();
                self.activity.write_progress(bytes);
            }
        }
        outcome
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Observed<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        let outcome = Pin::new(&mut self.inner).poll_read(cx, buffer);
        if buffer.filled().len() > before {
            self.activity.bytes_received();
        }
        outcome
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Observed<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        let outcome = Pin::new(&mut self.inner).poll_write(cx, bytes);
        self.record_write(outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        let outcome = Pin::new(&mut self.inner).poll_write_vectored(cx, bytes);
        self.record_write(outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        if !self.is_lingering {
            ready!(Pin::new(&mut self.inner).poll_shutdown(cx))?;
            if !self.activity.lingers.load(Ordering::Relaxed) {
                return Poll::Ready(Ok(()));
            }
            self.is_lingering = true;
            self.activity.enter(LINGERING);
        }
        loop {
            let mut bytes = [0; DISCARD_BUFFER_BYTES];
            let mut buffer = ReadBuf::new(&mut bytes);
            ready!(Pin::new(&mut self.inner).poll_read(cx, &mut buffer))?;
            if buffer.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
        }
    }
}
