//! The metrics of the gateway.

use std::sync::OnceLock;

use core_domain::gateway::CredentialError;
use core_domain::kernel::{Code, SuiteService};
use http::StatusCode;

use crate::gateway::exchange::Exchange;
use crate::kernel::endpoint::measurement::{CodeCounters, STATUS_CLASSES, status_class};
use crate::kernel::metrics::{
    Buckets, Counter, Counters, Definition, Gauge, Histogram, Histograms, Metrics,
};

const REQUESTS: Definition<2> = Definition {
    name: "core_gateway_requests_total",
    help: "Requests to the gateway, by route and class of the response status. `canceled`: the client disconnected before the response.",
    labels: ["route", "status"],
};

const DURATION: Definition<1> = Definition {
    name: "core_gateway_request_duration_seconds",
    help: "Time from the arrival of a request at the gateway to the head of its response.",
    labels: ["route"],
};

const UPSTREAM_DURATION: Definition<1> = Definition {
    name: "core_gateway_upstream_duration_seconds",
    help: "Time from the forwarding of a request to the head of the service's response.",
    labels: ["route"],
};

const OWN_DURATION: Definition<1> = Definition {
    name: "core_gateway_own_duration_seconds",
    help: "Time that the gateway itself needed for a request, without the service.",
    labels: ["route"],
};

const RESPONSE_BYTES: Definition<1> = Definition {
    name: "core_gateway_response_body_bytes_total",
    help: "Bytes of response bodies that the gateway forwarded.",
    labels: ["route"],
};

const ERRORS: Definition<1> = Definition {
    name: "core_gateway_errors_total",
    help: "Requests that the gateway itself refused or could not forward, by error code.",
    labels: ["code"],
};

const AUTHENTICATION_FAILURES: Definition<1> = Definition {
    name: "core_gateway_authentication_failures_total",
    help: "Requests whose caller the gateway could not authenticate, by reason.",
    labels: ["reason"],
};

const IN_FLIGHT: Definition<0> = Definition {
    name: "core_gateway_requests_in_flight",
    help: "Requests at the gateway whose response has not ended. Includes open event streams.",
    labels: [],
};

/// Maximum number of routes that have series of their own. The gateway has about fifteen.
const MAX_ROUTES: usize = 32;

/// The value of the label `route` for further routes.
const OTHER_ROUTE: &str = "other";

/// The series of a route.
#[derive(Debug)]
struct RouteSeries {
    requests: [Counter; STATUS_CLASSES.len()],
    duration: Histogram,
    upstream: Histogram,
    own: Histogram,
    bytes: Counter,
}

/// The families of which every route has series.
#[derive(Debug)]
struct RouteFamilies {
    requests: Counters<2>,
    duration: Histograms<1>,
    upstream: Histograms<1>,
    own: Histograms<1>,
    bytes: Counters<1>,
}

impl RouteFamilies {
    fn series(&self, route: &str) -> RouteSeries {
        RouteSeries {
            requests: STATUS_CLASSES.map(|status| self.requests.with([route, status])),
            duration: self.duration.with([route]),
            upstream: self.upstream.with([route]),
            own: self.own.with([route]),
            bytes: self.bytes.with([route]),
        }
    }
}

/// A route that has received a request, and its series.
type MeasuredRoute = OnceLock<(&'static str, RouteSeries)>;

/// The metrics of the gateway.
#[derive(Debug)]
pub(crate) struct GatewayMetrics {
    families: RouteFamilies,
    /// The routes in the order of their first requests.
    routes: [MeasuredRoute; MAX_ROUTES],
    other: OnceLock<RouteSeries>,
    errors: CodeCounters<1>,
    in_flight: Gauge,
    no_credential: Counter,
    repeated_credential: Counter,
    malformed_credential: Counter,
    rejected_credential: Counter,
    locked_out: Counter,
    authority_unavailable: Counter,
}

impl GatewayMetrics {
    /// The value of the label `service` in metrics that services have as well.
    pub(crate) const SERVICE: &'static str = SuiteService::Gateway.as_str();

    /// Registers the metrics of a gateway.
    pub(crate) fn new(metrics: &Metrics) -> Self {
        let failures = metrics.counters(&AUTHENTICATION_FAILURES);
        Self {
            families: RouteFamilies {
                requests: metrics.counters(&REQUESTS),
                duration: metrics.histograms(&DURATION, Buckets::REQUESTS),
                upstream: metrics.histograms(&UPSTREAM_DURATION, Buckets::REQUESTS),
                own: metrics.histograms(&OWN_DURATION, Buckets::REQUESTS),
                bytes: metrics.counters(&RESPONSE_BYTES),
            },
            routes: [const { OnceLock::new() }; MAX_ROUTES],
            other: OnceLock::new(),
            errors: CodeCounters::new(metrics.counters(&ERRORS)),
            in_flight: metrics.gauges(&IN_FLIGHT).with([]),
            no_credential: failures.with(["missing"]),
            repeated_credential: failures.with(["repeated"]),
            malformed_credential: failures.with(["malformed"]),
            rejected_credential: failures.with(["rejected"]),
            locked_out: failures.with(["locked-out"]),
            authority_unavailable: failures.with(["unavailable"]),
        }
    }

    /// Counts a request that has just arrived.
    pub(super) fn begin(&self) {
        self.in_flight.increment();
    }

    /// Counts a request whose response has ended, or whose client has disconnected.
    pub(super) fn end(&self, exchange: &Exchange, status: Option<StatusCode>, bytes: u64) {
        self.in_flight.decrement();
        let series = self.series(exchange.route_name());
        series.requests[status_class(status)].increment();
        series.bytes.add(bytes);
        let Some(head) = exchange.head_time else {
            return;
        };
        series.duration.record(head);
        let upstream = exchange.upstream_time.get().copied();
        if let Some(upstream) = upstream {
            series.upstream.record(upstream);
        }
        series
            .own
            .record(head.saturating_sub(upstream.unwrap_or_default()));
    }

    /// Returns the series of a route. The first request of a route takes the first free place.
    fn series(&self, route: &'static str) -> &RouteSeries {
        for place in &self.routes {
            let (known, series) = place.get_or_init(|| (route, self.families.series(route)));
            if *known == route {
                return series;
            }
        }
        self.other.get_or_init(|| self.families.series(OTHER_ROUTE))
    }

    /// Counts a request that the gateway refuses, or that it could not forward.
    pub(super) fn count_error(&self, code: Code) {
        self.errors.count(code, |code| [code]);
    }

    /// Counts a request without a credential.
    pub(super) fn count_missing_credential(&self) {
        self.no_credential.increment();
    }

    /// Counts a request whose credential cannot be read.
    pub(super) fn count_unreadable_credential(&self, error: &CredentialError) {
        match error {
            CredentialError::Repeated => self.repeated_credential.increment(),
            CredentialError::Malformed => self.malformed_credential.increment(),
        }
    }

    /// Counts a request whose credential is unknown, expired or revoked.
    pub(super) fn count_rejected_credential(&self) {
        self.rejected_credential.increment();
    }

    /// Counts a request of a client of which too many credentials were rejected.
    pub(super) fn count_lockout(&self) {
        self.locked_out.increment();
    }

    /// Counts a request whose credential could not be checked, because IAM did not answer.
    pub(super) fn count_unavailable_authority(&self) {
        self.authority_unavailable.increment();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_of_routes_has_a_bounded_number_of_series() {
        let metrics = Metrics::new();
        let gateway = GatewayMetrics::new(&metrics);
        for route in 0..100 {
            let name: &'static str = Box::leak(format!("/{route}").into_boxed_str());
            for _ in 0..2 {
                gateway.series(name).requests[1].increment();
            }
        }
        let text = metrics.render();
        let counted = |line: &&str| line.starts_with("core_gateway_requests_total");
        let lines: Vec<_> = text.lines().filter(counted).collect();
        assert_eq!(lines.len(), (MAX_ROUTES + 1) * STATUS_CLASSES.len());
        let other = "core_gateway_requests_total{route=\"other\",status=\"2xx\"} 136";
        assert!(lines.contains(&other), "{text}");
    }
}
