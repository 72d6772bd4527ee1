//! The definitions of metrics.

use std::fmt;

use prometheus_client::registry::Unit;

/// The suffix of the names of counters.
const TOTAL: &str = "_total";

/// The definition of a metric with `N` labels. Its type follows from the method of [`Metrics`](super::Metrics) that
/// registers it, and its unit from its name.
#[derive(Clone, Copy, Debug)]
pub struct Definition<const N: usize> {
    /// The name of the metric as queries contain it. The name of a counter ends with `_total`, that of a duration with
    /// `_seconds`, and that of a size with `_bytes`.
    pub name: &'static str,
    /// The meaning of the metric: one or two sentences.
    pub help: &'static str,
    /// The names of the labels. Every label has few values; ids, addresses and paths with parameters are not labels.
    pub labels: [&'static str; N],
}

impl<const N: usize> Definition<N> {
    /// Returns the description of the metric as a metric of this type.
    pub(super) fn describe(&self, kind: MetricKind) -> Description {
        Description {
            name: self.name,
            help: self.help,
            kind,
            labels: self.labels.to_vec(),
        }
    }
}

/// The type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// A number that only grows while the process runs.
    Counter,
    /// A number that can grow and shrink.
    Gauge,
    /// The distribution of durations.
    Histogram,
}

impl fmt::Display for MetricKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        })
    }
}

/// The description of a registered metric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// The name of the metric, with `_total` for a counter. The series of a histogram add `_bucket`, `_sum` and
    /// `_count`.
    pub name: &'static str,
    /// The meaning of the metric.
    pub help: &'static str,
    /// The type of the metric.
    pub kind: MetricKind,
    /// The names of the labels. The buckets of a histogram also have `le`.
    pub labels: Vec<&'static str>,
}

impl Description {
    /// Returns the name of the family in the OpenMetrics format, which has no `_total`.
    pub(super) fn family(&self) -> &'static str {
        self.name.strip_suffix(TOTAL).unwrap_or(self.name)
    }

    /// Returns the unit, if the name contains one.
    pub(super) fn unit(&self) -> Option<Unit> {
        [Unit::Seconds, Unit::Bytes]
            .into_iter()
            .find(|unit| self.without(unit).is_some())
    }

    /// Returns the name of the family without its unit.
    pub(super) fn stem(&self) -> &'static str {
        let unit = self.unit();
        unit.and_then(|unit| self.without(&unit))
            .unwrap_or_else(|| self.family())
    }

    fn without(&self, unit: &Unit) -> Option<&'static str> {
        self.family().strip_suffix(unit.as_str())?.strip_suffix('_')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn family_and_unit_follow_from_the_name() {
        for (name, family, stem, unit) in [
            ("core_jobs", "core_jobs", "core_jobs", None),
            ("core_x_total", "core_x", "core_x", None),
            (
                "core_x_seconds",
                "core_x_seconds",
                "core_x",
                Some("seconds"),
            ),
            (
                "core_x_seconds_total",
                "core_x_seconds",
                "core_x",
                Some("seconds"),
            ),
            (
                "core_x_bytes_total",
                "core_x_bytes",
                "core_x",
                Some("bytes"),
            ),
        ] {
            let definition = Definition {
                name,
                help: "",
                labels: [],
            };
            let described = definition.describe(MetricKind::Counter);
            assert_eq!((described.family(), described.stem()), (family, stem));
            let found = described.unit();
            assert_eq!(found.as_ref().map(Unit::as_str), unit);
        }
    }
}
