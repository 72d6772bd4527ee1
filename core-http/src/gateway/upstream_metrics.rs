//! The metrics of services over HTTP.

use core_domain::kernel::SuiteService;
use tokio::sync::OwnedSemaphorePermit;

use crate::kernel::metrics::{Counter, Definition, Gauge, Metrics};

const RETRIES: Definition<2> = Definition {
    name: "core_gateway_upstream_retries_total",
    help: "Requests that were sent to a service a second time, because the first attempt got no response.",
    labels: ["service", "client"],
};

const REFUSALS: Definition<3> = Definition {
    name: "core_gateway_upstream_refusals_total",
    help: "Requests that were not sent to a service. `breaker`: the last requests got no response. `in_flight`: too many requests wait.",
    labels: ["service", "client", "reason"],
};

const BREAKER: Definition<2> = Definition {
    name: "core_gateway_upstream_breaker_open",
    help: "1 if requests to a service are refused because the last ones got no response, otherwise 0.",
    labels: ["service", "client"],
};

const IN_FLIGHT: Definition<2> = Definition {
    name: "core_gateway_upstream_requests_in_flight",
    help: "Requests to a service whose response has not ended.",
    labels: ["service", "client"],
};

/// The metrics of one service and one client of it. The default measures nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct UpstreamMetrics {
    pub(super) retries: Counter,
    pub(super) refused_by_breaker: Counter,
    pub(super) refused_in_flight: Counter,
    pub(super) breaker_open: Gauge,
    in_flight: Gauge,
}

impl UpstreamMetrics {
    /// Registers the metrics of a service, as this client calls it.
    pub(super) fn new(metrics: &Metrics, service: SuiteService, client: &'static str) -> Self {
        let service = service.as_str();
        let refusals = metrics.counters(&REFUSALS);
        Self {
            retries: metrics.counters(&RETRIES).with([service, client]),
            refused_by_breaker: refusals.with([service, client, "breaker"]),
            refused_in_flight: refusals.with([service, client, "in_flight"]),
            breaker_open: metrics.gauges(&BREAKER).with([service, client]),
            in_flight: metrics.gauges(&IN_FLIGHT).with([service, client]),
        }
    }

    /// Registers the metrics without a service, so that they are documented in every process.
    pub(super) fn register(metrics: &Metrics) {
        let _ = metrics.counters(&RETRIES);
        let _ = metrics.counters(&REFUSALS);
        let _ = metrics.gauges(&BREAKER);
        let _ = metrics.gauges(&IN_FLIGHT);
    }

    /// Counts a request until the returned value is dropped.
    pub(super) fn count_in_flight(&self, permit: OwnedSemaphorePermit) -> InFlightRequest {
        self.in_flight.increment();
        InFlightRequest {
            in_flight: self.in_flight.clone(),
            _permit: permit,
        }
    }
}

/// A request in flight, which releases its permit when it is dropped.
#[derive(Debug)]
pub(super) struct InFlightRequest {
    in_flight: Gauge,
    _permit: OwnedSemaphorePermit,
}

impl Drop for InFlightRequest {
    fn drop(&mut self) {
        self.in_flight.decrement();
    }
}
