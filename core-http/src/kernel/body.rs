//! Bodies of requests and answers.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use core_domain::kernel::{Code, Error, Result};
use http_body::{Body as _, Frame};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full};

/// Any error of a body.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The body of every answer, and of requests once inside: boxed, streamed, never buffered by itself.
pub type Body = UnsyncBoxBody<Bytes, BoxError>;

/// The largest body that is no upload: 1 MiB.
pub const MAX_BODY_BYTES: usize = 1024 * 1024;

/// A body of these bytes.
#[must_use]
pub fn bytes_body(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into())
        .map_err(|never| match never {})
        .boxed_unsync()
}

/// A body without bytes.
#[must_use]
pub fn empty_body() -> Body {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}

/// Reads a whole body of at most `limit` bytes.
///
/// # Errors
/// `PAYLOAD_TOO_LARGE` for more; `BAD_REQUEST` when the client broke off.
pub async fn read_body(body: Body, limit: usize) -> Result<Bytes> {
    read_frames(body, limit, None).await
}

/// As [`read_body`], of a client that must not pause longer than this. Needs a tokio runtime with timers.
///
/// # Errors
/// As [`read_body`]; `BAD_REQUEST` when the client paused longer.
pub async fn read_lively_body(body: Body, limit: usize, pause: Duration) -> Result<Bytes> {
    read_frames(body, limit, Some(pause)).await
}

async fn read_frames(mut body: Body, limit: usize, pause: Option<Duration>) -> Result<Bytes> {
    if body.size_hint().lower() > limit as u64 {
        return Err(too_large(limit));
    }
    let mut bytes = BytesMut::new();
    while let Some(frame) = next_frame(&mut body, pause).await? {
        let frame = frame.map_err(|_| {
            Error::refused(Code::BadRequest, "The body could not be read to its end.")
        })?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if data.len() > limit - bytes.len() {
            return Err(too_large(limit));
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes.freeze())
}

async fn next_frame(
    body: &mut Body,
    pause: Option<Duration>,
) -> Result<Option<Result<Frame<Bytes>, BoxError>>> {
    let Some(pause) = pause else {
        return Ok(body.frame().await);
    };
    let frame = tokio::time::timeout(pause, body.frame()).await;
    frame.map_err(|_| Error::refused(Code::BadRequest, "The body did not arrive in time."))
}

fn too_large(limit: usize) -> Error {
    Error::refused(
        Code::PayloadTooLarge,
        format!("The body is larger than {limit} bytes."),
    )
}
