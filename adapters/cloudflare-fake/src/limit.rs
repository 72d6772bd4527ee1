//! The rate limit of the token: so many requests a window, then nothing for as long as a window takes.

use std::time::Duration;

use tokio::time::Instant;

/// A limit of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// Requests a window.
    pub requests: u32,
    /// How long a window is, and how long a client is blocked that asked for more.
    pub window: Duration,
}

impl Default for RateLimit {
    /// Cloudflare's own: 1200 in five minutes.
    fn default() -> Self {
        Self {
            requests: 1200,
            window: Duration::from_mins(5),
        }
    }
}

/// Requests, counted.
pub(crate) struct Limiter {
    limit: RateLimit,
    since: Option<Instant>,
    count: u32,
    blocked_until: Option<Instant>,
}

/// What the limiter says of one request.
pub(crate) struct Verdict {
    /// Seconds until requests are accepted again, for a request that is not.
    pub(crate) retry_after: Option<u64>,
    /// For `Ratelimit`.
    pub(crate) remaining: u32,
    /// Seconds until the window ends.
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
                return self.blocked(until - now);
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
            return self.blocked(self.limit.window);
        }
        Verdict {
            retry_after: None,
            remaining: self.limit.requests - self.count,
            reset: seconds(self.limit.window.saturating_sub(now - since)),
        }
    }

    fn blocked(&self, rest: Duration) -> Verdict {
        Verdict {
            retry_after: Some(seconds(rest)),
            remaining: 0,
            reset: seconds(rest),
        }
    }
}

/// Whole seconds, rounded up.
const fn seconds(duration: Duration) -> u64 {
    duration.as_millis().div_ceil(1000) as u64
}
