//! The metrics of rate limits.

use core_domain::gateway::RateKind;

use crate::kernel::metrics::{Counter, Definition, Metrics};

const LIMITED: Definition<2> = Definition {
    name: "core_rate_limited_requests_total",
    help: "Requests that were refused because the client exceeded the quota of a policy.",
    labels: ["service", "policy"],
};

const FALLBACKS: Definition<0> = Definition {
    name: "core_rate_limiter_fallbacks_total",
    help: "Calls that were counted in the memory of this process because the rate limiter failed or was too slow.",
    labels: [],
};

/// The value of the label `policy` for the quotas of API keys.
const API_KEY: &str = "api-key";

/// The counters of refused requests at a service or the gateway.
#[derive(Debug)]
pub(crate) struct RateMetrics {
    by_kind: [Counter; RateKind::ALL.len()],
    api_key: Counter,
}

impl RateMetrics {
    /// Registers the counters of a service, or of the gateway.
    pub(crate) fn new(metrics: &Metrics, service: &str) -> Self {
        let limited = metrics.counters(&LIMITED);
        let of_kind = |kind: usize| limited.with([service, RateKind::ALL[kind].as_str()]);
        Self {
            by_kind: std::array::from_fn(of_kind),
            api_key: limited.with([service, API_KEY]),
        }
    }

    /// Counts a request that a policy of this kind refuses.
    pub(crate) fn count_refusal(&self, kind: RateKind) {
        let at = RateKind::ALL.iter().position(|known| *known == kind);
        if let Some(counter) = at.and_then(|at| self.by_kind.get(at)) {
            counter.increment();
        }
    }

    /// Counts a request that the quota of its API key refuses.
    pub(crate) fn count_refused_key(&self) {
        self.api_key.increment();
    }
}

/// Registers the counter of calls for which the limiter failed.
pub(crate) fn fallbacks(metrics: &Metrics) -> Counter {
    metrics.counters(&FALLBACKS).with([])
}
