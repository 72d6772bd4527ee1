//! Bodies of requests and answers.

use bytes::{Bytes, BytesMut};
use core_domain::kernel::{Code, Error, Result};
use http_body::Body as _;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full};

use super::body_error::{BodyTimeout, BoxError};

/// The body of answers and of requests inside the suite: boxed and streamed.
pub type Body = UnsyncBoxBody<Bytes, BoxError>;

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
/// `PAYLOAD_TOO_LARGE` for more; `BAD_REQUEST` when the client disconnected or a [`TimedBody`](super::TimedBody) ran out of
/// time.
pub async fn read_body(mut body: Body, limit: usize) -> Result<Bytes> {
    if body.size_hint().lower() > limit as u64 {
        return Err(too_large(limit));
    }
    let mut bytes = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| unreadable(error.as_ref()))?;
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
