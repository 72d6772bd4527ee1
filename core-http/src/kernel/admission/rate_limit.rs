//! Applies a rate plan to requests. The gateway uses it, and services for requests that do not come through a gateway.
//!
//! - [`RateLimits`] counts requests, uses of API keys and rejected credentials. [`RateDecision`] and [`ApiKeyUsage`]
//!   are the results, which also write the `RateLimit` headers.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use core_domain::gateway::{RateKey, RateKind, RatePlan, RatePolicy, RateSubject, Usage};
use core_domain::kernel::{ApiKeyId, Clock, Code, Error};
use core_domain::port::RateLimiter;
use http::header::RETRY_AFTER;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::json;

use super::limiter::{MemoryRateLimiter, SharedLimiter};
use super::rate_metrics::RateMetrics;
use crate::kernel::metrics::Metrics;
use crate::kernel::process::app::App;
use crate::kernel::request::client::own_value;

static RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
static RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// The capacity of the table of rejected credentials and of that of locked-out clients, in keys.
const REJECTED_CAPACITY: usize = 10_000;

/// The name of the policies of API keys. Each API key has a separate quota.
const API_KEY: &str = "api-key";

/// The window of the policies of API keys.
pub(crate) const API_KEY_WINDOW: Duration = Duration::from_secs(60);

/// The client address in keys of quotas that do not depend on the client.
const NO_ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// The name of the policy that counts each rejected credential once per window.
const CREDENTIAL: &str = "credential";

/// The result of counting a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RateDecision<'p> {
    /// The policy that decided: that of the subject, or of the client as a whole.
    pub(crate) policy: &'p RatePolicy,
    /// The value of `RateLimit-Policy`.
    policy_header: &'p HeaderValue,
    /// The usage of the current window.
    pub(crate) usage: Usage,
}

impl RateDecision<'_> {
    /// Returns the refusal if the request exceeds the policy.
    pub(crate) fn refusal(&self) -> Option<Error> {
        (!self.usage.is_allowed).then(|| self.error())
    }

    /// Returns the error for a request that exceeds the policy.
    pub(crate) fn error(&self) -> Error {
        rate_limited(&self.usage)
    }

    /// Adds the `RateLimit` headers, unless an inner policy that refused the request has added its own.
    pub(crate) fn write(&self, headers: &mut HeaderMap) {
        if headers.contains_key(&RATE_LIMIT) {
            return;
        }
        headers.insert(RATE_LIMIT_POLICY.clone(), self.policy_header.clone());
        let usage = own_value(self.usage.to_header(self.policy));
        headers.insert(RATE_LIMIT.clone(), usage);
        if !self.usage.is_allowed {
            headers.insert(RETRY_AFTER, HeaderValue::from(self.usage.reset_after));
        }
    }
}

/// The result of counting a use of an API key.
#[derive(Clone, Debug)]
pub(crate) struct ApiKeyUsage {
    policy: RatePolicy,
    /// The usage of the current window of the API key.
    pub(crate) usage: Usage,
}

impl ApiKeyUsage {
    /// Returns the refusal if the API key exceeds its quota.
    pub(crate) fn refusal(&self) -> Option<Error> {
        (!self.usage.is_allowed).then(|| rate_limited(&self.usage))
    }

    /// Adds the `RateLimit` headers and `Retry-After` to a refusal.
    pub(crate) fn write(&self, headers: &mut HeaderMap) {
        let policy = own_value(self.policy.to_header());
        headers.insert(RATE_LIMIT_POLICY.clone(), policy);
        let usage = own_value(self.usage.to_header(&self.policy));
        headers.insert(RATE_LIMIT.clone(), usage);
        headers.insert(RETRY_AFTER, HeaderValue::from(self.usage.reset_after));
    }
}

/// Returns the error `RATE_LIMITED`, with the seconds until the window ends in `details.retryAfter`.
fn rate_limited(usage: &Usage) -> Error {
    Error::Refused {
        code: Code::RateLimited,
        message: "Too many requests; try again later.".to_owned(),
        details: json!({ "retryAfter": usage.reset_after }),
    }
}

/// Counts requests, uses of API keys and rejected credentials by a rate plan. Never fails: if the limiter fails, it
/// counts in memory.
#[derive(Debug)]
pub(crate) struct RateLimits {
    plan: RatePlan,
    /// The values of `RateLimit-Policy`, by kind.
    policy_headers: [HeaderValue; RateKind::ALL.len()],
    limiter: SharedLimiter,
    /// The clients that are locked out, and the rejected credentials that were already counted.
    rejected: MemoryRateLimiter,
    clock: Arc<dyn Clock>,
    /// The time at which the last lockout ends, in milliseconds of the clock.
    last_lockout_ends: AtomicI64,
    metrics: RateMetrics,
}

impl RateLimits {
    /// Creates the limits of a service or the gateway. They count with `limiter`, and in memory if it fails or takes
    /// longer than `timeout`.
    pub(crate) fn new(
        plan: RatePlan,
        limiter: Arc<dyn RateLimiter>,
        timeout: Duration,
        clock: Arc<dyn Clock>,
        (metrics, service): (&Metrics, &str),
    ) -> Self {
        let policy_header = |kind| own_value(plan.policy(kind).to_header());
        Self {
            policy_headers: std::array::from_fn(|kind| policy_header(RateKind::ALL[kind])),
            plan,
            limiter: SharedLimiter::new(limiter, timeout, Arc::clone(&clock), metrics),
            rejected: MemoryRateLimiter::with_capacity(REJECTED_CAPACITY),
            clock,
            last_lockout_ends: AtomicI64::new(0),
            metrics: RateMetrics::new(metrics, service),
        }
    }

    /// Creates the limits of a service with the plan and the limiter of an app.
    pub(crate) fn of(app: &App, service: &str) -> Self {
        let options = &app.options;
        let limiter = Arc::clone(&app.limiter);
        let clock = Arc::clone(&app.clock);
        Self::new(
            options.rates.clone(),
            limiter,
            options.limiter_timeout,
            clock,
            (&app.metrics, service),
        )
    }

    /// Counts a request for the overall limit of the client, and then for the policy of its subject. A client above its
    /// overall limit creates no further keys.
    pub(crate) async fn count(
        &self,
        client: IpAddr,
        kind: RateKind,
        subject: RateSubject<'_>,
    ) -> RateDecision<'_> {
        let all = self
            .take(RateKind::Client, client, RateSubject::Everything)
            .await;
        if !all.usage.is_allowed {
            return all;
        }
        self.take(kind, client, subject).await
    }

    /// Counts a request for the policy of its subject only.
    pub(crate) async fn take(
        &self,
        kind: RateKind,
        client: IpAddr,
        subject: RateSubject<'_>,
    ) -> RateDecision<'_> {
        let policy = self.plan.policy(kind);
        let key = RateKey::new(policy, client, subject);
        let usage = self.limiter.take(key, policy).await;
        if !usage.is_allowed {
            self.metrics.count_refusal(kind);
        }
        self.decision(kind, usage)
    }

    /// Counts a use of an API key for the quota of the key, independent of the client's address.
    pub(crate) async fn use_api_key(&self, key: &ApiKeyId, per_minute: u32) -> ApiKeyUsage {
        let policy = RatePolicy::new(API_KEY, per_minute, API_KEY_WINDOW);
        // No API key has a quota of zero. If one had, it would get one request per window.
        let policy = policy.unwrap_or_else(|_| {
            let any = self.plan.policy(RateKind::Default);
            any.once_per_window(API_KEY)
        });
        let subject = RateSubject::Text(key.as_str());
        let key = RateKey::new(&policy, NO_ADDRESS, subject);
        let usage = self.limiter.take(key, &policy).await;
        if !usage.is_allowed {
            self.metrics.count_refused_key();
        }
        ApiKeyUsage { policy, usage }
    }

    /// Returns the current lockout of a client, of which too many credentials were rejected. Counts nothing.
    pub(crate) fn lockout(&self, client: IpAddr) -> Option<RateDecision<'_>> {
        let now = self.clock.now();
        // The key is not computed while no client is locked out.
        if now.millis() >= self.last_lockout_ends.load(Ordering::Relaxed) {
            return None;
        }
        let policy = self.plan.policy(RateKind::FailedAuthentications);
        let key = RateKey::new(policy, client, RateSubject::Everything);
        let usage = self.rejected.peek(&key, policy, now);
        if usage.is_allowed {
            return None;
        }
        let kind = RateKind::FailedAuthentications;
        self.metrics.count_refusal(kind);
        Some(self.decision(kind, usage))
    }

    fn decision(&self, kind: RateKind, usage: Usage) -> RateDecision<'_> {
        RateDecision {
            policy: self.plan.policy(kind),
            policy_header: &self.policy_headers[kind as usize],
            usage,
        }
    }

    /// Counts a rejected credential. The same credential is counted once per window, because repeating it is not
    /// another guess. A client that reaches the quota is locked out until the window ends.
    pub(crate) async fn count_rejected_credential(&self, client: IpAddr, credential: &str) {
        let policy = self.plan.policy(RateKind::FailedAuthentications);
        let once = policy.once_per_window(CREDENTIAL);
        let shown = RateKey::new(&once, client, RateSubject::Text(credential));
        let now = self.clock.now();
        if !self.rejected.count(shown, &once, now).is_allowed {
            return;
        }
        let key = RateKey::new(policy, client, RateSubject::Everything);
        let usage = self.limiter.take(key, policy).await;
        if usage.remaining == 0 {
            let left = Duration::from_secs(usage.reset_after);
            self.rejected.exhaust(key, policy, left, now);
            let end = now.plus(left).millis();
            self.last_lockout_ends.fetch_max(end, Ordering::Relaxed);
        }
    }
}
