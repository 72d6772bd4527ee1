//! Step 2: turns refusals and panics into error envelopes. Responses of services pass unchanged, including errors.

use std::future::Future;
use std::panic::AssertUnwindSafe;

use core_domain::kernel::Error;
use futures_util::FutureExt;
use http::header::CONTENT_LENGTH;
use http::{HeaderValue, Method, Response};
use http_body::Body as _;

use crate::gateway::exchange::Outcome;
use crate::gateway::refusal::Refusal;
use crate::kernel::{Body, ErrorStyle, empty_body, error_response};

/// Runs work that may panic. A panic becomes an internal error of this one request.
pub(crate) async fn catch_panic(work: impl Future<Output = Outcome>) -> Outcome {
    AssertUnwindSafe(work)
        .catch_unwind()
        .await
        .unwrap_or_else(|_| Err(Error::Internal("a handler panicked".to_owned()).into()))
}

/// Returns the envelope of a refusal, with the headers of the refusal.
pub(super) fn envelope(method: &Method, request_id: &str, refusal: Refusal) -> Response<Body> {
    let mut response = error_response(&refusal.error, request_id, ErrorStyle::Envelope, None);
    response.headers_mut().extend(*refusal.headers);
    if *method != Method::HEAD {
        return response;
    }
    // The response to HEAD has the same head as that to GET, but no body.
    if let Some(length) = response.body().size_hint().exact() {
        let length = HeaderValue::from(length);
        response.headers_mut().insert(CONTENT_LENGTH, length);
    }
    response.map(|_| empty_body())
}
