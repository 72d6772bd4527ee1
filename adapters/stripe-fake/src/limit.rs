//! The rate limits: token buckets of one second for the account and for each endpoint.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

/// The limits of the number of requests in one second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// Maximum number of requests of the account.
    pub account: u32,
    /// Maximum number of requests of each endpoint.
    pub endpoint: u32,
}

impl Default for RateLimit {
    /// Returns the limits of Stripe: 100 requests of an account, 25 of an endpoint.
    fn default() -> Self {
        Self {
            account: 100,
            endpoint: 25,
        }
    }
}

/// A bucket that is full after one second without requests.
struct Bucket {
    size: u32,
    /// The time at which the bucket is full again.
    full_at: Instant,
}

impl Bucket {
    const fn new(size: u32, now: Instant) -> Self {
        Self { size, full_at: now }
    }

    fn take(&mut self, now: Instant) -> bool {
        let step = Duration::from_secs(1) / self.size.max(1);
        let full_at = self.full_at.max(now) + step;
        let has_room = full_at <= now + Duration::from_secs(1) + step / 2;
        if has_room {
            self.full_at = full_at;
        }
        has_room
    }
}

/// The counter of requests.
pub(crate) struct Limiter {
    limit: Option<RateLimit>,
    buckets: BTreeMap<String, Bucket>,
}

impl Limiter {
    pub(crate) const fn new(limit: Option<RateLimit>) -> Self {
        Self {
            limit,
            buckets: BTreeMap::new(),
        }
    }

    /// Counts a request. Returns the limit that it exceeds.
    pub(crate) fn count(&mut self, endpoint: &str, now: Instant) -> Option<&'static str> {
        let limit = self.limit?;
        let mut take = |name: &str, size| {
            let bucket = self.buckets.entry(name.to_owned());
            bucket.or_insert_with(|| Bucket::new(size, now)).take(now)
        };
        if !take("", limit.account) {
            return Some("global-rate");
        }
        (!take(endpoint, limit.endpoint)).then_some("endpoint-rate")
    }
}
