//! The metrics of a service: requests, errors and durations of each endpoint.

use std::sync::OnceLock;

use core_domain::kernel::Code;
use http::StatusCode;
use tokio::time::Instant;

use super::definition::Endpoint;
use super::service_span::ServiceSpan;
use crate::kernel::metrics::{
    Buckets, Counter, Counters, Definition, Gauge, Histogram, Histograms, Metrics,
};

const REQUESTS: Definition<4> = Definition {
    name: "core_http_requests_total",
    help: "Requests to a service, by endpoint and class of the response status. `canceled`: the client disconnected before the response.",
    labels: ["service", "endpoint", "method", "status"],
};

const DURATION: Definition<2> = Definition {
    name: "core_http_request_duration_seconds",
    help: "Time from the arrival of a request at a service to the head of its response.",
    labels: ["service", "endpoint"],
};

const ERRORS: Definition<2> = Definition {
    name: "core_http_errors_total",
    help: "Error responses of a service, by error code.",
    labels: ["service", "code"],
};

const IN_FLIGHT: Definition<1> = Definition {
    name: "core_http_requests_in_flight",
    help: "Requests that a service is processing.",
    labels: ["service"],
};

/// The values of the label `status`.
pub(crate) const STATUS_CLASSES: [&str; 6] = ["1xx", "2xx", "3xx", "4xx", "5xx", "canceled"];

/// The label of requests without a response.
const CANCELED: usize = 5;

/// Returns the index of a status in [`STATUS_CLASSES`]. `None` stands for a request without a response.
pub(crate) fn status_class(status: Option<StatusCode>) -> usize {
    let class = status.map(|status| usize::from(status.as_u16() / 100));
    // Statuses from 600 to 999 have no class. They count as failures of the server.
    class.map_or(CANCELED, |class| class.clamp(1, CANCELED) - 1)
}

/// The counters of one metric for every error code. A series is created when its code first occurs.
#[derive(Debug)]
pub(crate) struct CodeCounters<const N: usize> {
    counters: Counters<N>,
    by_code: Box<[OnceLock<Counter>]>,
}

impl<const N: usize> CodeCounters<N> {
    pub(crate) fn new(counters: Counters<N>) -> Self {
        let by_code = Code::ALL.iter().map(|_| OnceLock::new());
        Self {
            counters,
            by_code: by_code.collect(),
        }
    }

    /// Counts an error. `labels` returns the values of the series of a code.
    pub(crate) fn count(&self, code: Code, labels: impl FnOnce(&'static str) -> [&'static str; N]) {
        let position = Code::ALL.iter().position(|known| *known == code);
        let series = position.and_then(|at| self.by_code.get(at));
        if let Some(series) = series {
            series
                .get_or_init(|| self.counters.with(labels(code.as_str())))
                .increment();
        }
    }
}

/// The series of an endpoint.
#[derive(Debug)]
struct Series {
    requests: [Counter; STATUS_CLASSES.len()],
    duration: Histogram,
}

/// The labels of an endpoint, and its series after its first request.
#[derive(Debug)]
struct MeasuredEndpoint {
    name: &'static str,
    method: String,
    /// The path of the row; `None` for requests without a row.
    path: Option<&'static str>,
    series: OnceLock<Series>,
}

impl MeasuredEndpoint {
    fn new(name: &'static str, method: &str, path: Option<&'static str>) -> Self {
        Self {
            name,
            method: method.to_owned(),
            path,
            series: OnceLock::new(),
        }
    }
}

/// The endpoint that a request belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// The row with this index.
    Row(usize),
    /// A path that every service has without a row.
    BuiltIn,
    /// A path or a method without an endpoint, or a preflight request.
    Unknown,
}

/// The metrics of a service.
#[derive(Debug)]
pub(crate) struct ServiceMetrics {
    service: &'static str,
    requests: Counters<4>,
    durations: Histograms<2>,
    errors: CodeCounters<2>,
    in_flight: Gauge,
    /// By the index of the row.
    rows: Vec<MeasuredEndpoint>,
    built_in: MeasuredEndpoint,
    unknown: MeasuredEndpoint,
}

impl ServiceMetrics {
    /// Registers the metrics of a service with these rows.
    pub(crate) fn new(metrics: &Metrics, service: &'static str, rows: &[Endpoint]) -> Self {
        let measured = |row: &Endpoint| {
            MeasuredEndpoint::new(row.operation(), row.method().as_str(), Some(row.path()))
        };
        Self {
            service,
            requests: metrics.counters(&REQUESTS),
            durations: metrics.histograms(&DURATION, Buckets::REQUESTS),
            errors: CodeCounters::new(metrics.counters(&ERRORS)),
            in_flight: metrics.gauges(&IN_FLIGHT).with([service]),
            rows: rows.iter().map(measured).collect(),
            // The method of such requests is any text of the client.
            built_in: MeasuredEndpoint::new("built-in", "*", None),
            unknown: MeasuredEndpoint::new("unknown", "*", None),
        }
    }

    /// Begins to measure a request, with its span if it is traced.
    pub(crate) fn begin(&self, span: Option<ServiceSpan>) -> Measurement<'_> {
        self.in_flight.increment();
        Measurement {
            metrics: self,
            began: Instant::now(),
            target: Target::Unknown,
            status: None,
            span,
        }
    }

    fn endpoint(&self, target: Target) -> &MeasuredEndpoint {
        match target {
            Target::Row(row) => self.rows.get(row).unwrap_or(&self.unknown),
            Target::BuiltIn => &self.built_in,
            Target::Unknown => &self.unknown,
        }
    }

    fn series(&self, target: Target) -> &Series {
        let endpoint = self.endpoint(target);
        let (service, name, method) = (self.service, endpoint.name, endpoint.method.as_str());
        endpoint.series.get_or_init(|| Series {
            requests: STATUS_CLASSES
                .map(|status| self.requests.with([service, name, method, status])),
            duration: self.durations.with([service, name]),
        })
    }
}

/// A request that is measured. It is counted when this value is dropped.
#[derive(Debug)]
pub(crate) struct Measurement<'s> {
    metrics: &'s ServiceMetrics,
    began: Instant,
    target: Target,
    status: Option<StatusCode>,
    span: Option<ServiceSpan>,
}

impl Measurement<'_> {
    /// Sets the endpoint of the request.
    pub(crate) const fn set_target(&mut self, target: Target) {
        self.target = target;
    }

    /// Sets the status of the response.
    pub(crate) const fn set_status(&mut self, status: StatusCode) {
        self.status = Some(status);
    }

    /// Returns the span of the request; `None` if it is not traced.
    pub(crate) const fn span(&mut self) -> Option<&mut ServiceSpan> {
        self.span.as_mut()
    }

    /// Counts the error of the response.
    pub(crate) fn count_error(&mut self, code: Code) {
        if let Some(span) = &mut self.span {
            span.set_error(code);
        }
        let service = self.metrics.service;
        self.metrics.errors.count(code, |code| [service, code]);
    }
}

impl Drop for Measurement<'_> {
    fn drop(&mut self) {
        let series = self.metrics.series(self.target);
        series.requests[status_class(self.status)].increment();
        if self.status.is_some() {
            series.duration.record(self.began.elapsed());
        }
        self.metrics.in_flight.decrement();
        if let Some(span) = self.span.take() {
            span.end(self.metrics.endpoint(self.target).path, self.status);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_a_class() {
        for (status, class) in [
            (100, "1xx"),
            (204, "2xx"),
            (304, "3xx"),
            (404, "4xx"),
            (599, "5xx"),
        ] {
            let status = StatusCode::from_u16(status).ok();
            assert_eq!(STATUS_CLASSES[status_class(status)], class);
        }
        for odd in [600, 999] {
            let status = StatusCode::from_u16(odd).ok();
            assert_eq!(STATUS_CLASSES[status_class(status)], "5xx");
        }
        assert_eq!(STATUS_CLASSES[status_class(None)], "canceled");
    }
}
