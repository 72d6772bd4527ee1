//! Counters per key and window, in a table of limited size.
//!
//! A window starts with the first request of a key and has a fixed length. Refused requests do not extend it. A client
//! can use the quota of one window at its end and that of the next one at its start. It then gets at most twice the
//! quota in a short time, which is the cost of storing only one counter per key.

use std::collections::HashMap;
use std::time::Duration;

use super::{RateKey, RatePolicy};
use crate::kernel::Timestamp;

/// The state of a window after a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Whether the request is allowed.
    pub is_allowed: bool,
    /// Number of further requests that the window allows.
    pub remaining: u32,
    /// The time until the window ends in whole seconds, rounded up. At least 1.
    pub reset_after: u64,
}

impl Usage {
    /// Returns the usage of a window that another counter stores: the time at which the window began, and the number of
    /// requests that it has counted.
    #[must_use]
    pub fn of_window(
        policy: &RatePolicy,
        began: Timestamp,
        used: u32,
        is_allowed: bool,
        now: Timestamp,
    ) -> Self {
        usage(&Window { began, used }, is_allowed, policy, now)
    }

    /// Returns the value of the `RateLimit` header, such as `"default";r=99;t=60`.
    #[must_use]
    pub fn to_header(&self, policy: &RatePolicy) -> String {
        format!(
            "\"{}\";r={};t={}",
            policy.name(),
            self.remaining,
            self.reset_after
        )
    }
}

#[derive(Clone, Copy, Debug)]
struct Window {
    began: Timestamp,
    used: u32,
}

/// The windows of many keys. Their number never exceeds the capacity of the table.
///
/// The table has two generations. A key that is used moves to the young one. When the young one is full, it becomes the
/// old one, and the former old one is dropped. The cost of a request therefore does not depend on the size of the
/// table, and idle keys are evicted first.
#[derive(Debug)]
pub struct Windows {
    young: HashMap<RateKey, Window>,
    old: HashMap<RateKey, Window>,
    generation: usize,
}

impl Windows {
    /// Creates an empty table for at most `capacity` keys. The minimum is 2.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self {
            young: HashMap::new(),
            old: HashMap::new(),
            generation: (capacity / 2).max(1),
        }
    }

    /// Returns the number of stored keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }

    /// Returns whether the table has no keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Counts a request. A refused request is not counted and does not extend the window.
    pub fn count(&mut self, key: RateKey, policy: &RatePolicy, now: Timestamp) -> Usage {
        let known = self.young.get(&key).copied();
        let known = known.or_else(|| self.old.remove(&key));
        let mut window = current_window(known, policy, now);
        let allowed = window.used < policy.quota();
        if allowed {
            window.used += 1;
        }
        self.put(key, window);
        usage(&window, allowed, policy, now)
    }

    /// Returns the usage of a key without counting a request. `allowed` states whether the next request would be
    /// allowed.
    #[must_use]
    pub fn peek(&self, key: &RateKey, policy: &RatePolicy, now: Timestamp) -> Usage {
        let known = self.young.get(key).or_else(|| self.old.get(key)).copied();
        let window = current_window(known, policy, now);
        usage(&window, window.used < policy.quota(), policy, now)
    }

    /// Marks the quota of a key as used up for the time `left`, as another counter reported it.
    pub fn exhaust(&mut self, key: RateKey, policy: &RatePolicy, left: Duration, now: Timestamp) {
        self.old.remove(&key);
        let window = Window {
            began: now.minus(policy.window().saturating_sub(left)),
            used: policy.quota(),
        };
        self.put(key, window);
    }

    /// Takes back a counted request. Returns whether the window of the key has not ended and had a counted request.
    pub fn uncount(&mut self, key: &RateKey, policy: &RatePolicy, now: Timestamp) -> bool {
        let window = self.young.get_mut(key).or_else(|| self.old.get_mut(key));
        let open = |window: &&mut Window| now.since(window.began) < policy.window();
        let Some(window) = window.filter(open) else {
            return false;
        };
        let had_one = window.used > 0;
        window.used = window.used.saturating_sub(1);
        had_one
    }

    fn put(&mut self, key: RateKey, window: Window) {
        if self.young.len() >= self.generation && !self.young.contains_key(&key) {
            std::mem::swap(&mut self.young, &mut self.old);
            self.young.clear();
        }
        self.young.insert(key, window);
    }
}

fn usage(window: &Window, allowed: bool, policy: &RatePolicy, now: Timestamp) -> Usage {
    let left = policy.window().saturating_sub(now.since(window.began));
    Usage {
        is_allowed: allowed,
        remaining: policy.quota().saturating_sub(window.used),
        reset_after: u64::try_from(left.as_millis().div_ceil(1_000))
            .unwrap_or(u64::MAX)
            .max(1),
    }
}

/// Returns the window that a request belongs to. If the clock was set back, the window starts now but keeps its count.
fn current_window(known: Option<Window>, policy: &RatePolicy, now: Timestamp) -> Window {
    match known {
        Some(window) if window.began > now => Window {
            began: now,
            ..window
        },
        Some(window) if now.since(window.began) < policy.window() => window,
        Some(_) | None => Window {
            began: now,
            used: 0,
        },
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::gateway::{RateKind, RatePlan, RateSubject};

    fn policy(quota: u32) -> RatePolicy {
        RatePolicy::new("test", quota, Duration::from_secs(60)).unwrap()
    }

    fn key(path: &str) -> RateKey {
        let subject = RateSubject::Path(path);
        RateKey::new(&policy(1), "1.2.3.4".parse().unwrap(), subject)
    }

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(1_000_000 + millis)
    }

    #[test]
    fn no_more_than_the_quota_is_allowed_until_the_window_ends() {
        let mut windows = Windows::new(10);
        let policy = policy(2);
        let first = windows.count(key("/a"), &policy, at(0));
        assert_eq!(
            first,
            Usage {
                is_allowed: true,
                remaining: 1,
                reset_after: 60
            }
        );
        assert!(windows.count(key("/a"), &policy, at(59_000)).is_allowed);
        let third = windows.count(key("/a"), &policy, at(59_001));
        assert_eq!(
            third,
            Usage {
                is_allowed: false,
                remaining: 0,
                reset_after: 1
            }
        );
        assert!(windows.count(key("/a"), &policy, at(60_000)).is_allowed);
    }

    #[test]
    fn requests_that_are_taken_back_do_not_count() {
        let mut windows = Windows::new(10);
        let policy = policy(1);
        for _ in 0..5 {
            assert!(windows.count(key("/a"), &policy, at(0)).is_allowed);
            assert!(windows.uncount(&key("/a"), &policy, at(0)));
            assert!(!windows.uncount(&key("/a"), &policy, at(0)));
        }
        assert!(windows.count(key("/a"), &policy, at(0)).is_allowed);
        assert!(!windows.uncount(&key("/b"), &policy, at(0)));
        assert!(!windows.count(key("/a"), &policy, at(0)).is_allowed);
        assert!(!windows.uncount(&key("/a"), &policy, at(60_000)));
    }

    #[test]
    fn line_15_refused_requests_do_not_extend_the_window() {
        let mut windows = Windows::new(10);
        let policy = policy(1);
        for millis in 0..60_000 / 500 {
            windows.count(key("/a"), &policy, at(millis * 500));
        }
        assert!(windows.count(key("/a"), &policy, at(60_000)).is_allowed);
    }

    #[test]
    fn a_window_in_the_future_starts_now_after_the_clock_was_set_back() {
        let mut windows = Windows::new(10);
        let policy = policy(1);
        windows.count(key("/a"), &policy, at(3_600_000));
        assert!(!windows.count(key("/a"), &policy, at(0)).is_allowed);
        assert!(windows.count(key("/a"), &policy, at(60_000)).is_allowed);
    }

    #[test]
    fn line_12_a_million_keys_stay_within_the_capacity_and_busy_keys_are_not_evicted() {
        let mut windows = Windows::new(1_000);
        let policy = policy(5);
        let mut allowed = 0;
        for n in 0_u64..1_000_000 {
            let mut bytes = [0_u8; 16];
            bytes[..8].copy_from_slice(&n.to_le_bytes());
            bytes[15] = 1;
            windows.count(RateKey::from_bytes(bytes), &policy, at(0));
            if n % 100 == 0 {
                allowed += u32::from(windows.count(key("/busy"), &policy, at(0)).is_allowed);
            }
        }
        assert!(windows.len() <= 1_000);
        assert_eq!(allowed, 5);
    }

    #[test]
    fn line_14_the_headers_are_structured_fields() {
        let plan = RatePlan::default();
        let policy = plan.policy(RateKind::Default);
        let usage = Windows::new(10).count(key("/a"), policy, at(0));
        assert_eq!(policy.to_header(), "\"default\";q=100;w=60");
        assert_eq!(usage.to_header(policy), "\"default\";r=99;t=60");
    }

    #[test]
    fn peek_returns_the_usage_without_counting() {
        let mut windows = Windows::new(10);
        let policy = policy(1);
        for _ in 0..3 {
            assert!(windows.peek(&key("/a"), &policy, at(0)).is_allowed);
        }
        assert!(windows.is_empty());
        windows.count(key("/a"), &policy, at(0));
        let usage = windows.peek(&key("/a"), &policy, at(10_000));
        assert_eq!((usage.is_allowed, usage.reset_after), (false, 50));
        assert!(windows.peek(&key("/a"), &policy, at(60_000)).is_allowed);
    }

    #[test]
    fn an_exhausted_key_is_refused_until_the_reported_time_has_passed() {
        let mut windows = Windows::new(10);
        let policy = policy(3);
        windows.count(key("/a"), &policy, at(0));
        windows.exhaust(key("/a"), &policy, Duration::from_secs(5), at(30_000));
        assert!(!windows.peek(&key("/a"), &policy, at(34_999)).is_allowed);
        assert!(windows.peek(&key("/a"), &policy, at(35_000)).is_allowed);
    }

    proptest! {
        #[test]
        fn no_window_allows_more_than_its_quota_even_if_the_clock_jumps(
            quota in 1_u32..5,
            steps in proptest::collection::vec(-90_000_i64..90_000, 1..60),
        ) {
            let policy = policy(quota);
            let mut windows = Windows::new(10);
            let mut now = 10_000_000_i64;
            let mut allowed_since_reset = 0_u32;
            for step in steps {
                now = (now + step).max(0);
                let usage = windows.count(key("/a"), &policy, at(now));
                prop_assert!((1..=60).contains(&usage.reset_after));
                if usage.is_allowed && usage.remaining + 1 == quota {
                    allowed_since_reset = 0;
                }
                allowed_since_reset += u32::from(usage.is_allowed);
                prop_assert!(allowed_since_reset <= quota);
                prop_assert_eq!(usage.remaining, quota - allowed_since_reset.min(quota));
            }
        }

        #[test]
        fn line_14_a_request_after_the_reset_time_is_always_allowed(spent in 1_u32..20, wait_ms in 0_i64..59_999) {
            let policy = policy(3);
            let mut windows = Windows::new(10);
            for _ in 0..spent {
                windows.count(key("/a"), &policy, at(0));
            }
            let usage = windows.count(key("/a"), &policy, at(wait_ms));
            let retry_at = wait_ms + i64::try_from(usage.reset_after).unwrap() * 1_000;
            prop_assert!(windows.count(key("/a"), &policy, at(retry_at)).is_allowed);
        }
    }
}
