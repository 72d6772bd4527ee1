//! Step 6: so many requests for each client and path. Before authentication, so that guessing is counted too.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use core_domain::gateway::{Policy, RateKey, Usage};
use core_domain::kernel::{Clock, Code};
use http::header::RETRY_AFTER;
use http::{HeaderMap, HeaderName, HeaderValue};
use tower::ServiceExt;

use super::{Next, Step};
use crate::gateway::config::Settings;
use crate::gateway::exchange::{Exchange, Inbound, Outcome, headers_of};
use crate::gateway::limiter::{Limiter, MemoryLimiter};
use crate::gateway::refusal::Refusal;

/// Whom requests are counted for that came over no connection.
const NO_ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

#[derive(Clone, Debug)]
pub(crate) struct RateLimit {
    pub(crate) settings: Arc<Settings>,
    pub(crate) limiter: Arc<dyn Limiter>,
    pub(crate) fallback: Arc<MemoryLimiter>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Step for RateLimit {
    async fn run<S: Next>(&self, inbound: Inbound, next: S) -> Outcome {
        if inbound.exchange.is_health() {
            return next.oneshot(inbound).await;
        }
        let path = counted_path(&inbound);
        let policy = self.settings.rates.policy(path);
        let usage = self.take(path, policy, &inbound.exchange).await;
        let mut outcome = if usage.allowed {
            next.oneshot(inbound).await
        } else {
            Err(Refusal::new(
                Code::RateLimited,
                "Too many requests; try again later.",
            ))
        };
        self.tell(headers_of(&mut outcome), policy, usage);
        outcome
    }
}

/// All paths that are refused are counted as one, or each new bad path would be a new window.
fn counted_path(inbound: &Inbound) -> &str {
    if inbound.exchange.destination.is_ok() {
        inbound.request.uri().path()
    } else {
        ""
    }
}

fn insert(headers: &mut HeaderMap, name: &'static str, text: String) {
    if let Ok(value) = HeaderValue::try_from(text) {
        headers.insert(HeaderName::from_static(name), value);
    }
}

impl RateLimit {
    async fn take(&self, path: &str, policy: &Policy, exchange: &Exchange) -> Usage {
        let key = RateKey::new(policy, exchange.client.unwrap_or(NO_ADDRESS), path);
        let now = self.clock.now();
        match self.limiter.take(key, policy, now).await {
            Ok(usage) => usage,
            Err(error) => {
                tracing::warn!(target: "core::gateway", %error, "counting in memory instead");
                self.fallback.count(key, policy, now)
            }
        }
    }

    fn tell(&self, headers: &mut HeaderMap, policy: &Policy, usage: Usage) {
        insert(headers, "ratelimit-policy", policy.to_header());
        insert(headers, "ratelimit", usage.to_header(policy));
        if self.settings.older_rate_headers {
            insert(headers, "ratelimit-limit", policy.quota().to_string());
            insert(headers, "ratelimit-remaining", usage.remaining.to_string());
            insert(headers, "ratelimit-reset", usage.reset_after.to_string());
        }
        if !usage.allowed {
            headers.insert(RETRY_AFTER, HeaderValue::from(usage.reset_after));
        }
    }
}
