//! How many requests a client may make: a counter per key and window, in a table of bounded size.
//!
//! A window begins with the key's first request and lasts its whole length, whatever is refused meanwhile. A client that
//! spends one window's quota at its end and the next one's at its beginning gets twice the quota in a short time, and
//! never more; that is the price of one counter a key.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::address::rate_subject;
use super::path::normal_path;
use super::route::within;
use crate::kernel::Timestamp;

/// A policy that says nothing sensible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a rate limit needs a lower-case name, a quota above zero and a window of whole seconds")]
pub struct PolicyError;

/// How many requests in how much time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    name: String,
    quota: u32,
    window: Duration,
}

impl Policy {
    /// A policy. The name appears in the `RateLimit` headers.
    ///
    /// # Errors
    /// [`PolicyError`] unless the name is of `[a-z-]`, the quota above zero and the window a whole number of seconds
    /// between one second and one day.
    pub fn new(name: impl Into<String>, quota: u32, window: Duration) -> Result<Self, PolicyError> {
        let name = name.into();
        let named = !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-');
        let whole = window.subsec_nanos() == 0 && (1..=86_400).contains(&window.as_secs());
        if named && whole && quota > 0 {
            Ok(Self {
                name,
                quota,
                window,
            })
        } else {
            Err(PolicyError)
        }
    }

    /// For the sign-ins of a client to an address that fail: 30 in 60 seconds, which is more than anybody mistypes and far
    /// too few to find a password.
    #[must_use]
    pub fn failed_sign_ins() -> Self {
        Self {
            name: "failed-sign-ins".to_owned(),
            quota: 30,
            window: Duration::from_secs(60),
        }
    }

    /// The name in the headers.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Requests a window.
    #[must_use]
    pub fn quota(&self) -> u32 {
        self.quota
    }

    /// The length of a window.
    #[must_use]
    pub fn window(&self) -> Duration {
        self.window
    }

    /// The value of the `RateLimit-Policy` header, `"default";q=100;w=60`.
    #[must_use]
    pub fn to_header(&self) -> String {
        let Self {
            name,
            quota,
            window,
        } = self;
        format!("\"{name}\";q={quota};w={}", window.as_secs())
    }
}

/// Which policy a path has: the strict one where secrets can be guessed, the default one elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RatePlan {
    /// For every path that is not in `strict_paths`.
    pub default: Policy,
    /// For the paths in `strict_paths`.
    pub strict: Policy,
    /// The beginnings of the strict paths, whole segments each.
    pub strict_paths: Vec<String>,
}

impl Default for RatePlan {
    /// 100 requests in 60 seconds; 10 for sign-in, sign-up, magic links, device codes and tokens.
    fn default() -> Self {
        let policy = |name: &str, quota| Policy {
            name: name.to_owned(),
            quota,
            window: Duration::from_secs(60),
        };
        let strict_paths = [
            "/api/v1/iam/api/auth/sign-in",
            "/api/v1/iam/api/auth/sign-up",
            "/api/v1/iam/api/auth/magic-link",
            "/api/v1/iam/oauth/device",
            "/api/v1/iam/oauth/token",
        ];
        Self {
            default: policy("default", 100),
            strict: policy("strict", 10),
            strict_paths: strict_paths.map(str::to_owned).to_vec(),
        }
    }
}

impl RatePlan {
    /// The policy of a path, however the path is spelt.
    #[must_use]
    pub fn policy(&self, path: &str) -> &Policy {
        let normal = normal_path(path);
        let normal = String::from_utf8_lossy(&normal);
        let strict = |prefix: &String| within(&normal, prefix).is_some();
        if self.strict_paths.iter().any(strict) {
            &self.strict
        } else {
            &self.default
        }
    }
}

/// Who is counted, where: a digest, so that a key costs the same however long the path is, and so that nobody can make
/// a path that falls into another one's window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RateKey([u8; 16]);

impl RateKey {
    /// The key of a client and a path under a policy. Spellings of one path, and the addresses of one /64, are one key.
    #[must_use]
    pub fn new(policy: &Policy, client: IpAddr, path: &str) -> Self {
        let mut digest = Sha256::new();
        digest.update(policy.name.as_bytes());
        match rate_subject(client) {
            IpAddr::V4(v4) => {
                digest.update([4]);
                digest.update(v4.octets());
            }
            IpAddr::V6(v6) => {
                digest.update([6]);
                digest.update(v6.octets());
            }
        }
        digest.update(normal_path(path));
        let mut key = [0_u8; 16];
        key.copy_from_slice(&digest.finalize()[..16]);
        Self(key)
    }

    /// The digest; evenly spread, so its first byte will do to choose one of several tables.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

/// What a request did to its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Whether the request may go on.
    pub allowed: bool,
    /// How many more requests the window has.
    pub remaining: u32,
    /// Whole seconds until the window ends, rounded up, at least 1.
    pub reset_after: u64,
}

impl Usage {
    /// The value of the `RateLimit` header, `"default";r=99;t=60`.
    #[must_use]
    pub fn to_header(&self, policy: &Policy) -> String {
        format!(
            "\"{}\";r={};t={}",
            policy.name, self.remaining, self.reset_after
        )
    }
}

#[derive(Clone, Copy, Debug)]
struct Window {
    began: Timestamp,
    used: u32,
}

/// The windows of many keys, never more than the table's capacity.
///
/// Two generations: keys in use move to the young one; when that is full it becomes the old one, and the old one, in
/// which nothing was used for a whole generation, is forgotten. So a request costs the same at any size, and a flood
/// of new keys drives out idle keys first.
#[derive(Debug)]
pub struct Windows {
    young: HashMap<RateKey, Window>,
    old: HashMap<RateKey, Window>,
    generation: usize,
}

impl Windows {
    /// An empty table of at most `capacity` keys (at least 2).
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self {
            young: HashMap::new(),
            old: HashMap::new(),
            generation: (capacity / 2).max(1),
        }
    }

    /// How many keys are held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }

    /// Tells whether no key is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Counts a request. A refused one is not counted and does not prolong the window.
    pub fn take(&mut self, key: RateKey, policy: &Policy, now: Timestamp) -> Usage {
        let known = self.young.get(&key).copied();
        let known = known.or_else(|| self.old.remove(&key));
        let mut window = current(known, policy, now);
        let allowed = window.used < policy.quota;
        if allowed {
            window.used += 1;
        }
        self.put(key, window);
        let left = policy.window.saturating_sub(now.since(window.began));
        Usage {
            allowed,
            remaining: policy.quota.saturating_sub(window.used),
            reset_after: u64::try_from(left.as_millis().div_ceil(1_000))
                .unwrap_or(u64::MAX)
                .max(1),
        }
    }

    /// Takes a counted request back, as long as its window is remembered.
    pub fn give_back(&mut self, key: &RateKey) {
        let window = self.young.get_mut(key).or_else(|| self.old.get_mut(key));
        if let Some(window) = window {
            window.used = window.used.saturating_sub(1);
        }
    }

    fn put(&mut self, key: RateKey, window: Window) {
        if self.young.len() >= self.generation && !self.young.contains_key(&key) {
            std::mem::swap(&mut self.young, &mut self.old);
            self.young.clear();
        }
        self.young.insert(key, window);
    }
}

/// The window a request falls into. A clock that was set back moves the window's beginning, never its count.
fn current(known: Option<Window>, policy: &Policy, now: Timestamp) -> Window {
    match known {
        Some(window) if window.began > now => Window {
            began: now,
            ..window
        },
        Some(window) if now.since(window.began) < policy.window => window,
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

    fn policy(quota: u32) -> Policy {
        Policy::new("test", quota, Duration::from_secs(60)).unwrap()
    }

    fn key(path: &str) -> RateKey {
        RateKey::new(&policy(1), "1.2.3.4".parse().unwrap(), path)
    }

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(1_000_000 + millis)
    }

    #[test]
    fn the_quota_is_allowed_and_no_more_until_the_window_ends() {
        let mut windows = Windows::new(10);
        let policy = policy(2);
        let first = windows.take(key("/a"), &policy, at(0));
        assert_eq!(
            first,
            Usage {
                allowed: true,
                remaining: 1,
                reset_after: 60
            }
        );
        assert!(windows.take(key("/a"), &policy, at(59_000)).allowed);
        let third = windows.take(key("/a"), &policy, at(59_001));
        assert_eq!(
            third,
            Usage {
                allowed: false,
                remaining: 0,
                reset_after: 1
            }
        );
        assert!(windows.take(key("/a"), &policy, at(60_000)).allowed);
    }

    #[test]
    fn what_is_given_back_does_not_count() {
        let mut windows = Windows::new(10);
        let policy = policy(1);
        for _ in 0..5 {
            assert!(windows.take(key("/a"), &policy, at(0)).allowed);
            windows.give_back(&key("/a"));
        }
        assert!(windows.take(key("/a"), &policy, at(0)).allowed);
        windows.give_back(&key("/b"));
        assert!(!windows.take(key("/a"), &policy, at(0)).allowed);
    }

    #[test]
    fn refused_requests_do_not_prolong_the_penalty() {
        let mut windows = Windows::new(10);
        let policy = policy(1);
        for millis in 0..60_000 / 500 {
            windows.take(key("/a"), &policy, at(millis * 500));
        }
        assert!(windows.take(key("/a"), &policy, at(60_000)).allowed);
    }

    #[test]
    fn spellings_of_one_path_share_a_window_and_other_paths_do_not() {
        assert_eq!(key("/a/b"), key("/a/%62/"));
        assert_ne!(key("/a/b"), key("/a/c"));
        let other = RateKey::new(&policy(1), "1.2.3.5".parse().unwrap(), "/a/b");
        assert_ne!(key("/a/b"), other);
    }

    #[test]
    fn a_million_keys_stay_within_the_capacity_and_a_busy_key_stays_counted() {
        let mut windows = Windows::new(1_000);
        let policy = policy(5);
        let mut allowed = 0;
        for n in 0_u64..1_000_000 {
            let mut bytes = [0_u8; 16];
            bytes[..8].copy_from_slice(&n.to_le_bytes());
            bytes[15] = 1;
            windows.take(RateKey(bytes), &policy, at(0));
            if n % 100 == 0 {
                allowed += u32::from(windows.take(key("/busy"), &policy, at(0)).allowed);
            }
        }
        assert!(windows.len() <= 1_000);
        assert_eq!(allowed, 5);
    }

    #[test]
    fn the_headers_are_structured_fields() {
        let plan = RatePlan::default();
        let usage = Windows::new(10).take(key("/a"), &plan.default, at(0));
        assert_eq!(plan.default.to_header(), "\"default\";q=100;w=60");
        assert_eq!(usage.to_header(&plan.default), "\"default\";r=99;t=60");
    }

    #[test]
    fn routes_where_secrets_can_be_guessed_are_strict_in_every_spelling() {
        let plan = RatePlan::default();
        for path in [
            "/api/v1/iam/api/auth/sign-in/email",
            "/api/v1/iam/api/auth/sign-in/magic-link",
            "/api/v1/iam/api/auth/sign-%75p/email",
            "/api/v1/iam/oauth/token",
            "/api/v1/iam/oauth/device/token/",
        ] {
            assert_eq!(plan.policy(path).quota(), 10, "{path}");
        }
        for path in ["/api/v1/iam/api/auth/sign-out", "/api/v1/platforms", "/"] {
            assert_eq!(plan.policy(path).quota(), 100, "{path}");
        }
    }

    #[test]
    fn a_policy_says_something_sensible() {
        let minute = Duration::from_secs(60);
        assert!(Policy::new("a", 0, minute).is_err());
        assert!(Policy::new("", 1, minute).is_err());
        assert!(Policy::new("a\"", 1, minute).is_err());
        assert!(Policy::new("a", 1, Duration::from_millis(1_500)).is_err());
        assert!(Policy::new("a", 1, Duration::ZERO).is_err());
    }

    proptest! {
        #[test]
        fn no_window_lets_more_through_than_its_quota_however_the_clock_jumps(
            quota in 1_u32..5,
            steps in proptest::collection::vec(-90_000_i64..90_000, 1..60),
        ) {
            let policy = policy(quota);
            let mut windows = Windows::new(10);
            let mut now = 10_000_000_i64;
            let mut allowed_since_reset = 0_u32;
            for step in steps {
                now = (now + step).max(0);
                let usage = windows.take(key("/a"), &policy, at(now));
                prop_assert!((1..=60).contains(&usage.reset_after));
                if usage.allowed && usage.remaining + 1 == quota {
                    allowed_since_reset = 0;
                }
                allowed_since_reset += u32::from(usage.allowed);
                prop_assert!(allowed_since_reset <= quota);
                prop_assert_eq!(usage.remaining, quota - allowed_since_reset.min(quota));
            }
        }

        #[test]
        fn waiting_as_long_as_told_always_helps(spent in 1_u32..20, wait_ms in 0_i64..59_999) {
            let policy = policy(3);
            let mut windows = Windows::new(10);
            for _ in 0..spent {
                windows.take(key("/a"), &policy, at(0));
            }
            let usage = windows.take(key("/a"), &policy, at(wait_ms));
            let retry_at = wait_ms + i64::try_from(usage.reset_after).unwrap() * 1_000;
            prop_assert!(windows.take(key("/a"), &policy, at(retry_at)).allowed);
        }
    }
}
