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
    /// An error without effect. Status 429 has code 10429; other statuses have no code.
    Status {
        /// The HTTP status.
        status: u16,
        /// The seconds of the `Retry-After` header; `None` omits the header.
        retry_after: Option<u64>,
    },
    /// The request takes effect, but the response is an error with this status.
    StatusAfterEffect(u16),
    /// An error of the API without effect.
    Refusal {
        /// The HTTP status.
        status: u16,
        /// The code in the envelope.
        code: u32,
    },
    /// The request takes effect twice, as if a proxy repeats it. The second response is returned.
    DuplicateRequest,
    /// The request takes effect. The headers are sent immediately, the body in pieces.
    SlowBody(Pace),
    /// No effect. The status is 200, but `success` is false.
    SuccessFalseWith200,
    /// No effect. The response is the HTML page of the firewall, with status 403 and the header `cf-mitigated`.
    HtmlBody,
    /// The request takes effect. The response is 204 without a body.
    EmptyBody204,
    /// The upload token of the request expires. This and all later requests with it are refused with 8000013.
    TokenExpired,
}

impl RandomFault for Fault {
    fn random(rng: &mut FaultRng) -> Self {
        match rng.below(9) {
            0 => Self::TimeoutAfterEffect(Silence::Close),
            1 => Self::TimeoutBeforeEffect(Silence::Close),
            2 => Self::Status {
                status: 429,
                retry_after: Some(0),
            },
            3 => Self::Status {
                status: 503,
                retry_after: None,
            },
            4 => Self::StatusAfterEffect(500),
            5 => Self::StatusAfterEffect(502),
            6 => Self::DuplicateRequest,
            7 => Self::SlowBody(Pace::Drip(Duration::from_millis(1))),
            _ => Self::HtmlBody,
        }
    }
}
