//! Bodies of requests and responses: the body type of the suite, reading a body with a size limit, and time limits.

use std::any::Any;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use core_domain::kernel::{Code, Error, Result, duration_text};
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, Sleep};

/// The body of requests and responses inside the suite: bytes in memory, or a stream.
#[derive(Debug)]
pub struct Body(Kind);

#[derive(Debug)]
enum Kind {
    /// Bytes in memory, never empty. `None` if the body is empty or has been read.
    Whole(Option<Bytes>),
    Stream(UnsyncBoxBody<Bytes, BoxError>),
}

impl Body {
    /// Creates a body from any other body. A [`Body`] is not boxed again.
    pub fn new<B>(body: B) -> Self
    where
        B: http_body::Body<Data = Bytes, Error = BoxError> + Send + 'static,
    {
        Self::try_from_own(body).unwrap_or_else(|body| Self(Kind::Stream(body.boxed_unsync())))
    }

    /// Like [`Self::new`], for bodies with any error type.
    pub(crate) fn from_any<B>(body: B) -> Self
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        Self::try_from_own(body).unwrap_or_else(|body| Self::new(body.map_err(Into::into)))
    }

    /// Like [`Self::from_any`], for bodies with any buffer type.
    pub(crate) fn from_buffers<B>(body: B) -> Self
    where
        B: http_body::Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
    {
        let bytes = |mut data: B::Data| data.copy_to_bytes(data.remaining());
        Self::try_from_own(body)
            .unwrap_or_else(|body| Self::from_any(body.map_frame(move |f| f.map_data(bytes))))
    }

    /// Returns the body itself if it is a [`Body`], otherwise gives it back as the error.
    pub(crate) fn try_from_own<B: 'static>(body: B) -> std::result::Result<Self, B> {
        let mut body = Some(body);
        let own = (&mut body as &mut dyn Any).downcast_mut::<Option<Self>>();
        match (own.and_then(Option::take), body) {
            (None, Some(other)) => Err(other),
            (own, _) => Ok(own.unwrap_or_else(empty_body)),
        }
    }

    /// Like [`Self::from_any`], but drops a body that is known to be empty.
    pub(crate) fn unless_empty<B>(body: B) -> Self
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        if body.is_end_stream() {
            return empty_body();
        }
        Self::from_any(body)
    }

    /// Returns whether the whole body is in memory, so that reading it never waits.
    pub(crate) const fn is_whole(&self) -> bool {
        matches!(self.0, Kind::Whole(_))
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut self.0 {
            Kind::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Kind::Stream(body) => Pin::new(body).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Whole(bytes) => bytes.is_none(),
            Kind::Stream(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, length)),
            Kind::Stream(body) => body.size_hint(),
        }
    }
}

fn length(bytes: &Bytes) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

/// Creates a body of these bytes.
#[must_use]
pub fn bytes_body(bytes: impl Into<Bytes>) -> Body {
    let bytes = bytes.into();
    Body(Kind::Whole((!bytes.is_empty()).then_some(bytes)))
}

/// Creates an empty body.
#[must_use]
pub fn empty_body() -> Body {
    Body(Kind::Whole(None))
}

/// Reads a whole body of at most `limit` bytes.
///
/// # Errors
/// - `PAYLOAD_TOO_LARGE` if the body has more than `limit` bytes.
/// - `BAD_REQUEST` if the client disconnects, or a [`TimedBody`] exceeds its time limits.
pub async fn read_body(mut body: Body, limit: usize) -> Result<Bytes> {
    if body.size_hint().lower() > limit as u64 {
        return Err(too_large(limit));
    }
    let mut first: Option<Bytes> = None;
    let mut all: Option<BytesMut> = None;
    let mut length = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| unreadable(error.as_ref()))?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if data.len() > limit - length {
            return Err(too_large(limit));
        }
        length += data.len();
        match (&mut all, &first) {
            (Some(all), _) => all.extend_from_slice(&data),
            (None, Some(first)) => all
                .insert(BytesMut::from(first.as_ref()))
                .extend_from_slice(&data),
            // Most bodies are one frame, which need not be copied.
            (None, None) => first = Some(data),
        }
    }
    Ok(all.map_or_else(|| first.unwrap_or_default(), BytesMut::freeze))
}

/// Converts the error of a body. A timeout is recognized also if it is the cause of another error.
fn unreadable(error: &(dyn std::error::Error + 'static)) -> Error {
    let mut causes = std::iter::successors(Some(error), |error| error.source());
    let message = if causes.any(|cause| cause.is::<BodyTimeout>()) {
        "The body did not arrive in time."
    } else {
        "The body could not be read to its end."
    };
    Error::refused(Code::BadRequest, message)
}

fn too_large(limit: usize) -> Error {
    Error::refused(
        Code::PayloadTooLarge,
        format!("The body is larger than {limit} bytes."),
    )
}

/// An error of a body, of any type.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The time limit that a body has exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyTimeout {
    /// A pause between two frames was longer than this.
    #[error("the body paused for longer than {0:?}")]
    Idle(Duration),
    /// The whole body took longer than this.
    #[error("the body took longer than {0:?}")]
    Total(Duration),
}

/// The time limits of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BodyTimes {
    /// Maximum pause between two frames.
    #[serde(with = "duration_text")]
    pub idle: Duration,
    /// Maximum time for the whole body; [`Duration::MAX`] for no limit.
    #[serde(with = "duration_text")]
    pub total: Duration,
}

impl Default for BodyTimes {
    /// Returns the limits for a request that is not an upload: 10 seconds per pause and 30 seconds in total.
    fn default() -> Self {
        Self {
            idle: Duration::from_secs(10),
            total: Duration::from_secs(30),
        }
    }
}

/// A body that fails with [`BodyTimeout`] when it exceeds its time limits. A pause is the time for which the reader
/// waits for a frame. Needs a tokio runtime with timers, unless every frame is ready at once.
#[derive(Debug)]
pub struct TimedBody<B> {
    inner: B,
    times: BodyTimes,
    began: Instant,
    /// The timer of the current pause. `None` before the first pause, and without limits.
    timer: Option<Pin<Box<Sleep>>>,
    is_waiting: bool,
}

impl<B> TimedBody<B> {
    /// Limits a body. The total time starts now.
    pub fn new(inner: B, times: BodyTimes) -> Self {
        Self {
            inner,
            times,
            began: Instant::now(),
            timer: None,
            is_waiting: false,
        }
    }

    /// Starts the timer for a pause.
    fn arm(&mut self) {
        let now = Instant::now();
        let left = self
            .times
            .total
            .saturating_sub(now.duration_since(self.began));
        let pause = self.times.idle.min(left);
        let Some(deadline) = now.checked_add(pause) else {
            self.timer = None;
            return;
        };
        match &mut self.timer {
            Some(timer) => timer.as_mut().reset(deadline),
            None => self.timer = Some(Box::pin(tokio::time::sleep_until(deadline))),
        }
    }

    /// Returns which limit was exceeded.
    fn timeout(&self) -> BodyTimeout {
        if self.began.elapsed() >= self.times.total {
            BodyTimeout::Total(self.times.total)
        } else {
            BodyTimeout::Idle(self.times.idle)
        }
    }
}

impl<B> http_body::Body for TimedBody<B>
where
    B: http_body::Body + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = B::Data;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, BoxError>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.inner).poll_frame(cx) {
            self.is_waiting = false;
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        if !self.is_waiting {
            self.is_waiting = true;
            self.arm();
        }
        let Some(timer) = &mut self.timer else {
            return Poll::Pending;
        };
        match timer.as_mut().poll(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(()) => Poll::Ready(Some(Err(self.timeout().into()))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;
    use http_body_util::StreamBody;

    use super::*;

    fn pieces(pieces: &'static [&'static str]) -> Body {
        let frames = pieces
            .iter()
            .map(|piece| Ok(Frame::data(Bytes::from_static(piece.as_bytes()))));
        Body::new(StreamBody::new(stream::iter(frames)))
    }

    #[tokio::test]
    async fn bodies_are_read_completely_whatever_their_number_of_frames() {
        for (body, text) in [
            (empty_body(), ""),
            (bytes_body(""), ""),
            (bytes_body("one"), "one"),
            (pieces(&[]), ""),
            (pieces(&["one"]), "one"),
            (pieces(&["", "one", "", "two", "three"]), "onetwothree"),
        ] {
            assert_eq!(read_body(body, 11).await.unwrap(), text);
        }
    }

    #[tokio::test]
    async fn bodies_above_the_limit_are_refused_with_and_without_a_known_length() {
        for body in [
            bytes_body("123456"),
            pieces(&["123", "456"]),
            pieces(&["123456"]),
        ] {
            let refused = read_body(body, 5).await.unwrap_err();
            assert_eq!(refused.code(), Code::PayloadTooLarge);
        }
    }

    #[test]
    fn own_bodies_are_not_boxed_again_and_empty_ones_have_ended() {
        assert!(Body::new(Body::new(bytes_body("x"))).is_whole());
        assert!(!Body::new(pieces(&["x"])).is_whole());
        for body in [
            empty_body(),
            bytes_body(""),
            Body::unless_empty(http_body_util::Empty::new()),
        ] {
            assert!(body.is_end_stream() && body.size_hint().exact() == Some(0) && body.is_whole());
        }
        assert_eq!(bytes_body("four").size_hint().exact(), Some(4));
    }
}
