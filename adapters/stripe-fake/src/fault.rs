//! Faults: scripted for matching requests, or random.

use std::collections::VecDeque;
use std::time::Duration;

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

/// The kind of a missing response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// The connection is closed.
    Close,
    /// The connection stays open without any response.
    Hang,
}

/// The speed of a response body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// The body is sent in eight pieces, with this pause before each.
    Drip(Duration),
    /// The first half is sent, then nothing more.
    Stall,
}

/// Selects the requests of a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matcher {
    method: Option<String>,
    path: Option<Vec<String>>,
}

impl Matcher {
    /// Matches every request.
    #[must_use]
    pub const fn any() -> Self {
        Self {
            method: None,
            path: None,
        }
    }

    /// Matches requests with a method and a path. `*` matches one segment, and `**` at the end matches any remaining
    /// segments.
    #[must_use]
    pub fn new(method: &str, path: &str) -> Self {
        Self {
            method: Some(method.to_owned()),
            path: Some(path.split('/').skip(1).map(str::to_owned).collect()),
        }
    }

    /// Returns whether the matcher matches a request.
    #[must_use]
    pub fn matches(&self, method: &str, path: &str) -> bool {
        let method_matches = self.method.as_deref().is_none_or(|own| own == method);
        let path_matches = self.path.as_deref().is_none_or(|pattern| {
            let segments: Vec<_> = path.split('/').skip(1).collect();
            let (pattern, open) = match pattern.split_last() {
                Some((last, start)) if last == "**" => (start, true),
                _ => (pattern, false),
            };
            let lengths_fit =
                segments.len() == pattern.len() || open && segments.len() > pattern.len();
            let mut pairs = pattern.iter().zip(segments);
            lengths_fit && pairs.all(|(own, segment)| own == "*" || own == segment)
        });
        method_matches && path_matches
    }
}

/// The pending faults.
#[derive(Default)]
pub(crate) struct FaultQueue {
    /// Chains of faults. Only the first fault of each chain can match a request.
    waiting: Vec<VecDeque<(Matcher, Fault)>>,
    random: Option<(FaultRng, u32)>,
}

impl FaultQueue {
    pub(crate) fn push(&mut self, chain: impl IntoIterator<Item = (Matcher, Fault)>) {
        self.waiting.push(chain.into_iter().collect());
    }

    pub(crate) fn set_random(&mut self, seed: u64, percent: u32) {
        self.random = Some((FaultRng::new(seed), percent));
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Returns the number of pending scripted faults.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.iter().map(VecDeque::len).sum()
    }

    /// Returns the fault of a request: the first matching scripted one, otherwise a random one.
    pub(crate) fn next(&mut self, method: &str, path: &str) -> Option<Fault> {
        let is_for = |(matcher, _): &(Matcher, Fault)| matcher.matches(method, path);
        let mut waiting = self.waiting.iter_mut();
        if let Some(chain) = waiting.find(|chain| chain.front().is_some_and(is_for)) {
            return chain.pop_front().map(|(_, fault)| fault);
        }
        let (rng, percent) = self.random.as_mut()?;
        rng.fault(*percent)
    }
}

/// A random number generator with a seed: a linear congruential generator (Knuth's MMIX) of which the high bits are
/// used.
struct FaultRng(u64);

impl FaultRng {
    const fn new(seed: u64) -> Self {
        Self(seed ^ 0x9E37_79B9_7F4A_7C15)
    }

    const fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    /// Returns a random fault. Connections are closed instead of left open, so that no client needs a timeout.
    fn fault(&mut self, percent: u32) -> Option<Fault> {
        if self.below(100) >= u64::from(percent) {
            return None;
        }
        Some(match self.below(8) {
            0 => Fault::TimeoutAfterEffect(Silence::Close),
            1 => Fault::TimeoutBeforeEffect(Silence::Close),
            2 => Fault::Status {
                status: 409,
                retry_after: None,
                should_retry: Some(true),
            },
            3 => Fault::Status {
                status: 503,
                retry_after: None,
                should_retry: None,
            },
            4 => Fault::StatusAfterEffect(502),
            5 => Fault::KeptServerError {
                has_effect: self.below(2) == 0,
            },
            6 => Fault::DuplicateRequest,
            _ => Fault::HtmlBody,
        })
    }
}
