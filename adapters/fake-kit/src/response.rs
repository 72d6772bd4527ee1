//! The response to a request, and the time and pace at which it is sent.

use std::borrow::Cow;
use std::convert::Infallible;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http::Response;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;

use crate::fault::{Pace, Silence};

/// Number of pieces of a slow body.
const PIECES: usize = 8;

/// The body of a response.
pub type Body = UnsyncBoxBody<Bytes, Infallible>;

/// A response that is ready to be sent.
pub struct RenderedResponse {
    /// The HTTP status.
    pub status: u16,
    /// The headers except for the content type.
    pub headers: Vec<(&'static str, String)>,
    /// The content type. If it is empty, the header is omitted.
    pub content_type: Cow<'static, str>,
    /// The complete body, which may contain secrets.
    pub body: Bytes,
}

impl std::fmt::Debug for RenderedResponse {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = formatter.debug_struct("RenderedResponse");
        shown.field("status", &self.status).finish_non_exhaustive()
    }
}

impl RenderedResponse {
    /// Creates a response without further headers.
    pub fn new(
        status: u16,
        content_type: impl Into<Cow<'static, str>>,
        body: impl Into<Bytes>,
    ) -> Self {
        Self {
            status,
            headers: Vec::new(),
            content_type: content_type.into(),
            body: body.into(),
        }
    }

    /// Creates a response with an HTML page.
    #[must_use]
    pub fn html(status: u16, page: &'static str) -> Self {
        Self::new(status, "text/html; charset=UTF-8", page)
    }

    /// Adds a header if it has a value.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: Option<impl ToString>) -> Self {
        let value = value.map(|value| (name, value.to_string()));
        self.headers.extend(value);
        self
    }

    fn into_http(self, pace: Option<Pace>) -> io::Result<Response<Body>> {
        let mut response = Response::builder().status(self.status);
        if !self.content_type.is_empty() {
            response = response.header("content-type", &*self.content_type);
        }
        for (name, value) in self.headers {
            response = response.header(name, value);
        }
        let body = match pace {
            None => complete_body(self.body),
            Some(Pace::Drip(pause)) => paced_body(self.body, PIECES, PIECES, pause),
            Some(Pace::Stall) => paced_body(self.body, 2, 1, Duration::ZERO),
        };
        response.body(body).map_err(io::Error::other)
    }
}

/// The time of a response.
#[derive(Clone, Copy, Debug)]
pub enum Timing {
    /// The response is sent at once.
    AtOnce,
    /// The response is sent after this time.
    After(Duration),
    /// The headers are sent at once, the body at this pace.
    Paced(Pace),
}

/// The action for a request.
#[derive(Debug)]
pub enum Outcome {
    /// A response is sent.
    Send(RenderedResponse, Timing),
    /// No response is sent.
    Silent(Silence),
}

impl Outcome {
    /// Returns the response; `None` if none is sent.
    #[must_use]
    pub const fn response(&self) -> Option<&RenderedResponse> {
        match self {
            Self::Send(rendered, _) => Some(rendered),
            Self::Silent(_) => None,
        }
    }

    /// Returns the response at the time at which it is sent. Without a response, it fails or never returns.
    ///
    /// # Errors
    /// [`io::Error`] if a fault closes the connection, or if a header is invalid.
    pub async fn into_http(self) -> io::Result<Response<Body>> {
        match self {
            Self::Send(rendered, Timing::AtOnce) => rendered.into_http(None),
            Self::Send(rendered, Timing::After(delay)) => {
                tokio::time::sleep(delay).await;
                rendered.into_http(None)
            }
            Self::Send(rendered, Timing::Paced(pace)) => rendered.into_http(Some(pace)),
            Self::Silent(Silence::Close) => Err(io::Error::other("closed by a fault")),
            Self::Silent(Silence::Hang) => std::future::pending().await,
        }
    }
}

/// Returns a body that is sent at once.
#[must_use]
pub fn complete_body(body: Bytes) -> Body {
    Full::new(body).boxed_unsync()
}

/// Returns a body in pieces, with a pause before each. After `sent` pieces the body stalls.
fn paced_body(body: Bytes, pieces: usize, sent: usize, pause: Duration) -> Body {
    let size = body.len().div_ceil(pieces).max(1);
    let start = (body, 0);
    let frames = stream::unfold(start, move |(mut rest, at)| async move {
        if rest.is_empty() {
            return None;
        }
        if at == sent {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(pause).await;
        let piece = rest.split_to(size.min(rest.len()));
        Some((Ok(Frame::data(piece)), (rest, at + 1)))
    });
    StreamBody::new(frames).boxed_unsync()
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    const PAUSE: Duration = Duration::from_secs(1);

    fn outcome(timing: Timing) -> Outcome {
        let rendered = RenderedResponse::new(200, "text/plain", "0123456789abcdef");
        Outcome::Send(rendered.header("retry-after", Some(3)), timing)
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_body_has_a_pause_before_each_of_eight_pieces() {
        let start = tokio::time::Instant::now();
        let paced = outcome(Timing::Paced(Pace::Drip(PAUSE)));
        let mut body = paced.into_http().await.unwrap().into_body();
        let mut pieces = Vec::new();
        while let Some(frame) = body.frame().await {
            pieces.push(frame.unwrap().into_data().unwrap());
        }
        assert_eq!(pieces.len(), PIECES);
        assert_eq!(pieces.concat(), b"0123456789abcdef");
        assert_eq!(start.elapsed(), PAUSE * 8);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stalled_body_stops_after_its_first_half() {
        let paced = outcome(Timing::Paced(Pace::Stall));
        let mut body = paced.into_http().await.unwrap().into_body();
        let first = body.frame().await.unwrap().unwrap();
        assert_eq!(&first.into_data().unwrap()[..], b"01234567");
        assert!(tokio::time::timeout(PAUSE, body.frame()).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_delayed_response_is_complete() {
        let start = tokio::time::Instant::now();
        let response = outcome(Timing::After(PAUSE)).into_http().await.unwrap();
        assert_eq!(start.elapsed(), PAUSE);
        assert_eq!(response.headers()["content-type"], "text/plain");
        assert_eq!(response.headers()["retry-after"], "3");
        let body = response.into_body().collect().await.unwrap();
        assert_eq!(body.to_bytes().len(), 16);
    }

    #[tokio::test]
    async fn an_empty_content_type_and_an_absent_header_are_omitted() {
        let rendered = RenderedResponse::new(204, "", "").header("retry-after", None::<u64>);
        let sent = Outcome::Send(rendered, Timing::AtOnce).into_http();
        assert!(sent.await.unwrap().headers().is_empty());
    }

    #[tokio::test]
    async fn silence_closes_the_connection_or_never_returns() {
        assert!(Outcome::Silent(Silence::Close).into_http().await.is_err());
        let hanging = Outcome::Silent(Silence::Hang).into_http();
        assert!(hanging.now_or_never().is_none());
    }
}
