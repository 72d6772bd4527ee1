//! Bodies of requests and answers.

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

/// The body of answers and of requests inside the suite: bytes that are there already, or a stream.
#[derive(Debug)]
pub struct Body(Kind);

#[derive(Debug)]
enum Kind {
    /// Never empty; `None` once they were read.
    Whole(Option<Bytes>),
    Stream(UnsyncBoxBody<Bytes, BoxError>),
}

impl Body {
    /// Any body. One that is of this type already is taken as it is.
    pub fn new<B>(body: B) -> Self
    where
        B: http_body::Body<Data = Bytes, Error = BoxError> + Send + 'static,
    {
        Self::try_from_own(body).unwrap_or_else(|body| Self(Kind::Stream(body.boxed_unsync())))
    }

    /// As [`Self::new`], with any error.
    pub(crate) fn from_any<B>(body: B) -> Self
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        Self::try_from_own(body).unwrap_or_else(|body| Self::new(body.map_err(Into::into)))
    }

    /// As [`Self::from_any`], with frames of any buffer.
    pub(crate) fn from_buffers<B>(body: B) -> Self
    where
        B: http_body::Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
    {
        let bytes = |mut data: B::Data| data.copy_to_bytes(data.remaining());
        Self::try_from_own(body)
            .unwrap_or_else(|body| Self::from_any(body.map_frame(move |f| f.map_data(bytes))))
    }

    /// The body itself, if it is of this type already.
    pub(crate) fn try_from_own<B: 'static>(body: B) -> std::result::Result<Self, B> {
        let mut body = Some(body);
        let own = (&mut body as &mut dyn Any).downcast_mut::<Option<Self>>();
        match (own.and_then(Option::take), body) {
            (None, Some(other)) => Err(other),
            (own, _) => Ok(own.unwrap_or_else(empty_body)),
        }
    }

    /// As [`Self::from_any`]; a body that is known to be empty is dropped.
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

    /// Tells whether every byte is there already, so that no reader ever waits for one.
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

/// A body of these bytes.
#[must_use]
pub fn bytes_body(bytes: impl Into<Bytes>) -> Body {
    let bytes = bytes.into();
    Body(Kind::Whole((!bytes.is_empty()).then_some(bytes)))
}

/// A body without bytes.
#[must_use]
pub fn empty_body() -> Body {
    Body(Kind::Whole(None))
}

/// Reads a whole body of at most `limit` bytes.
///
/// # Errors
/// `PAYLOAD_TOO_LARGE` for more; `BAD_REQUEST` when the client disconnected or a [`TimedBody`](super::TimedBody) ran out of
/// time.
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

/// The time-out may be of an outer body, with its error wrapped.
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

/// Any error of a body.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A body did not arrive in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyTimeout {
    /// The sender paused for too long.
    #[error("the body paused for longer than {0:?}")]
    Idle(Duration),
    /// The whole body took too long.
    #[error("the body took longer than {0:?}")]
    Total(Duration),
}

/// The time limits of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BodyTimes {
    /// The longest pause between two frames.
    #[serde(with = "duration_text")]
    pub idle: Duration,
    /// The longest time for the whole body; [`Duration::MAX`] for no limit.
    #[serde(with = "duration_text")]
    pub total: Duration,
}

impl Default for BodyTimes {
    /// For the body of an ordinary request: pauses of 10 seconds, 30 seconds in all.
    fn default() -> Self {
        Self {
            idle: Duration::from_secs(10),
            total: Duration::from_secs(30),
        }
    }
}

/// A body that fails with [`BodyTimeout`] when it exceeds its time limits. A pause is the time for which the reader waits for
/// a frame. Needs a tokio runtime with timers unless every frame is ready at once.
#[derive(Debug)]
pub struct TimedBody<B> {
    inner: B,
    times: BodyTimes,
    began: Instant,
    /// Created at the first pause.
    timer: Option<Pin<Box<Sleep>>>,
    is_waiting: bool,
}

impl<B> TimedBody<B> {
    /// Limits a body from now on.
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
    async fn a_body_of_any_number_of_frames_is_read_whole() {
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
    async fn a_body_beyond_the_limit_is_refused_whether_or_not_it_says_its_length() {
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
    fn a_body_of_this_type_is_not_boxed_again_and_an_empty_one_has_ended() {
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
