//! The rate limit of the token: a number of requests in each window. A client that exceeds it is blocked for one
//! window.

use std::time::Duration;

use tokio::time::Instant;

/// A limit of the number of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// Maximum number of requests in one window.
    pub requests: u32,
    /// The length of a window, and of the block after too many requests.
    pub window: Duration,
}

impl Default for RateLimit {
    /// Returns the limit of Cloudflare: 1200 requests in five minutes.
    fn default() -> Self {
        Self {
            requests: 1200,
            window: Duration::from_mins(5),
        }
    }
}

/// The counter of requests.
pub(crate) struct Limiter {
    limit: RateLimit,
    since: Option<Instant>,
    count: u32,
    blocked_until: Option<Instant>,
}

/// The decision about one request.
pub(crate) struct Verdict {
    /// The seconds until requests are accepted again; `None` if this request is accepted.
    pub(crate) retry_after: Option<u64>,
    /// The number of remaining requests, for the header `Ratelimit`.
    pub(crate) remaining: u32,
    /// The seconds until the window ends.
    pub(crate) reset: u64,
}

impl Limiter {
    pub(crate) const fn new(limit: RateLimit) -> Self {
        Self {
            limit,
            since: None,
            count: 0,
            blocked_until: None,
        }
    }

    pub(crate) const fn limit(&self) -> RateLimit {
        self.limit
    }

    pub(crate) fn count(&mut self, now: Instant) -> Verdict {
        if let Some(until) = self.blocked_until {
            if now < until {
                return self.rejection(until - now);
            }
            *self = Self::new(self.limit);
        }
        let since = self.since.filter(|since| now < *since + self.limit.window);
        if since.is_none() {
            self.count = 0;
        }
        let since = *self.since.insert(since.unwrap_or(now));
        self.count += 1;
        if self.count > self.limit.requests {
            self.blocked_until = Some(now + self.limit.window);
            return self.rejection(self.limit.window);
        }
        Verdict {
            retry_after: None,
            remaining: self.limit.requests - self.count,
            reset: seconds(self.limit.window.saturating_sub(now - since)),
        }
    }

    fn rejection(&self, rest: Duration) -> Verdict {
        Verdict {
            retry_after: Some(seconds(rest)),
            remaining: 0,
            reset: seconds(rest),
        }
    }
}

/// Returns whole seconds, rounded up.
const fn seconds(duration: Duration) -> u64 {
    duration.as_millis().div_ceil(1000) as u64
}
