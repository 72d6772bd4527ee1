//! The concurrent calls of one worker to its bindings, and the limits of their number and memory.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::LocalError;
use crate::host::SiteBody;
use crate::limits::BindingLimits;

/// Granularity of memory reservations, in bytes.
const UNIT_BYTES: usize = 1024;

/// Maximum size of a piece of a response that is passed to the connection at once, in bytes.
const PIECE_BYTES: usize = 32 * 1024;

/// The concurrent calls of one worker.
#[derive(Debug)]
pub(super) struct Calls {
    limits: BindingLimits,
    permits: Arc<Semaphore>,
    memory: Arc<Semaphore>,
}

/// The error if no call of the worker ended in time for another call to start. Contains the maximum number of
/// concurrent calls.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error(
    "more than {0} concurrent calls to bindings; read or cancel the responses of earlier calls"
)]
pub(super) struct TooManyCalls(usize);

/// A running call. It ends when the last clone is dropped, after its response has been read.
#[derive(Clone, Debug)]
pub(super) struct Call(Arc<CallState>);

#[derive(Debug)]
struct CallState {
    _turn: OwnedSemaphorePermit,
    memory: Arc<Semaphore>,
    max_bytes: usize,
    reserved: Mutex<Reservation>,
}

#[derive(Debug, Default)]
struct Reservation {
    bytes: usize,
    units: Option<OwnedSemaphorePermit>,
}

impl Calls {
    pub(super) fn new(limits: BindingLimits) -> Self {
        let permits = |count: usize| Arc::new(Semaphore::new(count.min(Semaphore::MAX_PERMITS)));
        Self {
            limits,
            permits: permits(limits.calls),
            memory: permits(limits.memory_bytes / UNIT_BYTES),
        }
    }

    pub(super) const fn limits(&self) -> BindingLimits {
        self.limits
    }

    /// Waits until another call may start.
    ///
    /// # Errors
    /// [`TooManyCalls`] if that takes longer than [`BindingLimits::call_wait`].
    pub(super) async fn acquire(&self) -> Result<Call, TooManyCalls> {
        let turn = Arc::clone(&self.permits).acquire_owned();
        let turn = tokio::time::timeout(self.limits.call_wait, turn).await;
        let Ok(Ok(turn)) = turn else {
            return Err(TooManyCalls(self.limits.calls));
        };
        Ok(Call(Arc::new(CallState {
            _turn: turn,
            memory: Arc::clone(&self.memory),
            max_bytes: self.limits.memory_bytes,
            reserved: Mutex::default(),
        })))
    }
}

impl Call {
    /// Reserves memory for the call until it ends.
    ///
    /// # Errors
    /// [`LocalError::Limit`] if the calls of the worker would use more than [`BindingLimits::memory_bytes`].
    pub(super) fn reserve(&self, bytes: usize) -> Result<(), LocalError> {
        let call = &*self.0;
        let refused = || {
            let max_bytes = call.max_bytes;
            LocalError::Limit(format!(
                "the concurrent calls to bindings use more than {max_bytes} bytes"
            ))
        };
        let mut reserved = call.reserved.lock().unwrap_or_else(PoisonError::into_inner);
        let total = reserved.bytes.saturating_add(bytes);
        let held = reserved
            .units
            .as_ref()
            .map_or(0, OwnedSemaphorePermit::num_permits);
        let lacking = total.div_ceil(UNIT_BYTES).saturating_sub(held);
        if lacking > 0 {
            let lacking = u32::try_from(lacking).map_err(|_| refused())?;
            let units = Arc::clone(&call.memory).try_acquire_many_owned(lacking);
            let units = units.map_err(|_| refused())?;
            match &mut reserved.units {
                Some(held) => held.merge(units),
                none => *none = Some(units),
            }
        }
        reserved.bytes = total;
        Ok(())
    }

    /// Checks that the caller still waits for the call. If the given clone is the only one, the request was dropped.
    ///
    /// # Errors
    /// [`LocalError::Limit`] if the request was dropped.
    pub(super) fn ensure_awaited(&self) -> Result<(), LocalError> {
        if Arc::strong_count(&self.0) > 1 {
            return Ok(());
        }
        Err(LocalError::Limit(
            "the caller cancelled the call".to_owned(),
        ))
    }

    /// Returns a body that keeps the call running until it has been read.
    pub(super) fn attach_to_body(self, body: SiteBody) -> SiteBody {
        let held = CallBody {
            body,
            pending: Bytes::new(),
            _call: self,
        };
        held.boxed()
    }
}

/// A body that keeps its call running.
///
/// It is passed on in pieces. A connection takes only what fits into its buffer; with one large frame, the call would
/// end as soon as the connection has that frame.
struct CallBody {
    body: SiteBody,
    /// The part of the last frame that was not passed to the connection yet.
    pending: Bytes,
    _call: Call,
}

impl Body for CallBody {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if self.pending.is_empty() {
            let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
            match frame.map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(data))) if data.len() > PIECE_BYTES => self.pending = data,
                Some(Ok(Ok(data))) => return Poll::Ready(Some(Ok(Frame::data(data)))),
                Some(Ok(Err(frame))) => return Poll::Ready(Some(Ok(frame))),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
        let length = self.pending.len().min(PIECE_BYTES);
        // Copies the piece: a slice would keep the whole frame in memory after the call.
        let piece = Bytes::copy_from_slice(&self.pending.split_to(length));
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.pending.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (rest, body) = (self.pending.len() as u64, self.body.size_hint());
        let mut hint = SizeHint::new();
        hint.set_lower(rest + body.lower());
        if let Some(upper) = body.upper() {
            hint.set_upper(rest + upper);
        }
        hint
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn calls() -> Calls {
        Calls::new(BindingLimits {
            calls: 2,
            call_wait: Duration::from_millis(1),
            memory_bytes: 4 * UNIT_BYTES,
            ..BindingLimits::default()
        })
    }

    #[tokio::test]
    async fn excess_call_fails_until_another_ends() {
        let calls = calls();
        let (first, _second) = (
            calls.acquire().await.unwrap(),
            calls.acquire().await.unwrap(),
        );
        let TooManyCalls(at_a_time) = calls.acquire().await.unwrap_err();
        assert_eq!(at_a_time, 2);
        let body = first
            .clone()
            .attach_to_body(super::super::reply::full("unread"));
        drop(first);
        assert!(calls.acquire().await.is_err(), "its response is not read");
        drop(body);
        calls.acquire().await.unwrap();
    }

    #[tokio::test]
    async fn ensure_awaited_fails_after_the_request_was_dropped() {
        let calls = calls();
        let call = calls.acquire().await.unwrap();
        let of_thread = call.clone();
        of_thread.ensure_awaited().unwrap();
        let body = call.attach_to_body(super::super::reply::full("unread"));
        of_thread.ensure_awaited().unwrap();
        drop(body);
        assert!(of_thread.ensure_awaited().is_err());
    }

    #[tokio::test]
    async fn response_is_passed_on_completely_in_pieces() {
        let calls = calls();
        let content: Vec<u8> = (0..3 * PIECE_BYTES + 1)
            .map(|at| (at % 251) as u8)
            .collect();
        let body = super::super::reply::full(content.clone());
        let mut body = calls.acquire().await.unwrap().attach_to_body(body);
        let mut read = Vec::new();
        while !body.is_end_stream() {
            let left = (content.len() - read.len()) as u64;
            assert_eq!(body.size_hint().exact(), Some(left));
            let piece = body.frame().await.unwrap().unwrap().into_data().unwrap();
            assert!(piece.len() <= PIECE_BYTES);
            read.extend_from_slice(&piece);
        }
        assert_eq!(read, content);
    }

    #[tokio::test]
    async fn memory_of_all_calls_is_bounded_and_released() {
        let calls = calls();
        let (first, second) = (
            calls.acquire().await.unwrap(),
            calls.acquire().await.unwrap(),
        );
        for _ in 0..UNIT_BYTES {
            first.reserve(2).unwrap();
        }
        second.reserve(2 * UNIT_BYTES).unwrap();
        for call in [&first, &second] {
            let refused = call.reserve(1).unwrap_err();
            assert!(matches!(refused, LocalError::Limit(_)), "{refused}");
            assert!(call.reserve(usize::MAX).is_err());
        }
        drop(second);
        first.reserve(2 * UNIT_BYTES).unwrap();
    }
}
