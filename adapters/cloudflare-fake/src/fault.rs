//! Faults: what is scripted for matching requests, and what chance brings.

use std::collections::VecDeque;
use std::time::Duration;

/// What goes wrong with one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The request is carried out, and no answer comes.
    TimeoutAfterEffect(Silence),
    /// The request is not carried out, and no answer comes.
    TimeoutBeforeEffect(Silence),
    /// An error without effect: 429 is code 10429, another status has no code.
    Status {
        /// The HTTP status.
        status: u16,
        /// Seconds for a `Retry-After`.
        retry_after: Option<u64>,
    },
    /// The request is carried out, and an error with this status is answered.
    StatusAfterEffect(u16),
    /// An error of the API without effect.
    Refusal {
        /// The HTTP status.
        status: u16,
        /// The code in the envelope.
        code: u32,
    },
    /// The request is carried out twice, as by a proxy that repeats it; the second answer is given.
    DuplicateRequest,
    /// The request is carried out; the headers come at once, the body in pieces.
    SlowBody(Pace),
    /// Without effect: status 200, and `success` is false.
    SuccessFalseWith200,
    /// Without effect: the page of the firewall, HTML with status 403 and `cf-mitigated`.
    HtmlBody,
    /// The request is carried out; 204 without a body is answered.
    EmptyBody204,
    /// The upload token the request comes with expires: it is answered with 8000013, now and from now on.
    TokenExpired,
}

/// How no answer comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// The connection is closed.
    Close,
    /// The connection stays open and nothing comes.
    Hang,
}

/// How a body comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// In eight pieces, with such a pause before each.
    Drip(Duration),
    /// The first half, and then nothing.
    Stall,
}

/// Which requests a fault is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matcher {
    method: Option<String>,
    path: Option<Vec<String>>,
}

impl Matcher {
    /// Every request.
    #[must_use]
    pub const fn any() -> Self {
        Self {
            method: None,
            path: None,
        }
    }

    /// Requests of a method to a path. In the path `*` stands for one segment, `**` at its end for any rest.
    #[must_use]
    pub fn new(method: &str, path: &str) -> Self {
        Self {
            method: Some(method.to_owned()),
            path: Some(path.split('/').skip(1).map(str::to_owned).collect()),
        }
    }

    /// Tells whether it is for a request.
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

/// The faults that wait for their requests.
#[derive(Default)]
pub(crate) struct FaultQueue {
    /// Chains: only the first fault of each waits for a request.
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

    /// How many scripted faults still wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.iter().map(VecDeque::len).sum()
    }

    /// The fault of a request: the first scripted one that is for it, else what chance brings.
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

/// Draws the same faults for the same seed: a linear congruential generator (Knuth's MMIX) whose high bits are used.
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

    /// Closes connections rather than leave them open, so that no client needs a time-out to go on.
    fn fault(&mut self, percent: u32) -> Option<Fault> {
        if self.below(100) >= u64::from(percent) {
            return None;
        }
        Some(match self.below(9) {
            0 => Fault::TimeoutAfterEffect(Silence::Close),
            1 => Fault::TimeoutBeforeEffect(Silence::Close),
            2 => Fault::Status {
                status: 429,
                retry_after: Some(0),
            },
            3 => Fault::Status {
                status: 503,
                retry_after: None,
            },
            4 => Fault::StatusAfterEffect(500),
            5 => Fault::StatusAfterEffect(502),
            6 => Fault::DuplicateRequest,
            7 => Fault::SlowBody(Pace::Drip(Duration::from_millis(1))),
            _ => Fault::HtmlBody,
        })
    }
}
