//! A body with time limits.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use core_domain::kernel::duration_text;
use http_body::{Body, Frame, SizeHint};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, Sleep};

use super::body_error::{BodyTimeout, BoxError};

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

impl<B> Body for TimedBody<B>
where
    B: Body + Unpin,
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
