//! The faults of the API.

use std::time::Duration;

use core_fake_kit::fault::{FaultRng, RandomFault};
pub use core_fake_kit::fault::{Matcher, Pace, Silence};

/// A fault of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The request takes effect, but there is no response.
    TimeoutAfterEffect(Silence),
    /// The request has no effect, and there is no response.
    TimeoutBeforeEffect(Silence),
    /// An error without effect, which is not stored under the idempotency key.
    Status {
        /// The HTTP status.
        status: u16,
        /// The seconds of the `Retry-After` header; `None` omits the header.
        retry_after: Option<u64>,
        /// The value of the `Stripe-Should-Retry` header; `None` omits the header.
        should_retry: Option<bool>,
    },
    /// The request takes effect, but the response is an error with this status. The effect is stored under the
    /// idempotency key, so that a repeated request succeeds.
    StatusAfterEffect(u16),
    /// The request fails with status 500 after it began. The response is stored under the idempotency key, so that every
    /// repeated request fails in the same way.
    KeptServerError {
        /// Whether the request takes effect.
        has_effect: bool,
    },
    /// An error of the API without effect.
    Refusal {
        /// The HTTP status.
        status: u16,
        /// The type of the error, for example `invalid_request_error`.
        kind: &'static str,
        /// The code of the error.
        error_code: &'static str,
    },
    /// The request takes effect twice, as if a proxy repeats it. The second response is returned.
    DuplicateRequest,
    /// The request takes effect at once. The response follows after this time, and until then other requests with the
    /// same idempotency key are refused.
    Delay(Duration),
    /// The request takes effect. The headers are sent immediately, the body in pieces.
    SlowBody(Pace),
    /// No effect. The response is the HTML page of a proxy, with status 502.
    HtmlBody,
}

impl RandomFault for Fault {
    fn random(rng: &mut FaultRng) -> Self {
        match rng.below(8) {
            0 => Self::TimeoutAfterEffect(Silence::Close),
            1 => Self::TimeoutBeforeEffect(Silence::Close),
            2 => Self::Status {
                status: 409,
                retry_after: None,
                should_retry: Some(true),
            },
            3 => Self::Status {
                status: 503,
                retry_after: None,
                should_retry: None,
            },
            4 => Self::StatusAfterEffect(502),
            5 => Self::KeptServerError {
                has_effect: rng.below(2) == 0,
            },
            6 => Self::DuplicateRequest,
            _ => Self::HtmlBody,
        }
    }
}
