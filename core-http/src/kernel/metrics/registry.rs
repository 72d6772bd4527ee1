//! The registry of the metrics of one suite.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Metric, Registry};

use super::classic::classic;
use super::definition::{Definition, Description, MetricKind};
use super::histogram::Buckets;
use super::instrument::{Counters, Gauges, Histograms};
use super::labels::LabelSet;

/// The metrics of one suite. Clones share their state. All services and tasks of a suite register their instruments
/// here; two suites in one process have separate metrics.
#[derive(Clone, Default)]
pub struct Metrics(Arc<Mutex<Families>>);

/// A registered metric: its description, and its family of instruments.
struct Entry {
    description: Description,
    family: Box<dyn Any + Send>,
}

#[derive(Default)]
struct Families {
    registry: Registry,
    /// The metrics by name.
    entries: BTreeMap<&'static str, Entry>,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.lock().entries.keys().copied().collect();
        f.debug_tuple("Metrics").field(&names).finish()
    }
}

/// One value of a metric that is read when the metrics are rendered.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample<const N: usize> {
    /// The values of the labels, in the order of the definition.
    pub labels: [&'static str; N],
    /// The current value.
    pub value: f64,
}

impl<const N: usize> Sample<N> {
    /// Creates a sample.
    #[must_use]
    pub const fn new(labels: [&'static str; N], value: f64) -> Self {
        Self { labels, value }
    }
}

impl Metrics {
    /// Creates a registry without metrics.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, Families> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a counter. If a counter with this name exists, returns it.
    #[must_use]
    pub fn counters<const N: usize>(&self, definition: &Definition<N>) -> Counters<N> {
        let description = definition.describe(MetricKind::Counter);
        let new = || Counters::new(definition.labels);
        self.family(description, new, |counters| counters.family.clone())
    }

    /// Registers a gauge. If a gauge with this name exists, returns it.
    #[must_use]
    pub fn gauges<const N: usize>(&self, definition: &Definition<N>) -> Gauges<N> {
        let description = definition.describe(MetricKind::Gauge);
        let new = || Gauges::new(definition.labels);
        self.family(description, new, |gauges| gauges.family.clone())
    }

    /// Registers a histogram. If a histogram with this name exists, returns it.
    #[must_use]
    pub fn histograms<const N: usize>(
        &self,
        definition: &Definition<N>,
        buckets: Buckets,
    ) -> Histograms<N> {
        let description = definition.describe(MetricKind::Histogram);
        let new = || Histograms::new(definition.labels, buckets);
        self.family(description, new, |histograms| histograms.family.clone())
    }

    /// Registers a gauge whose values are read when the metrics are rendered. `read` must be fast, must not wait, and
    /// must not use this registry. If several functions are registered under one name, all of their values are rendered.
    pub fn observe_gauge<const N: usize>(
        &self,
        definition: &Definition<N>,
        read: impl Fn() -> Vec<Sample<N>> + Send + Sync + 'static,
    ) {
        self.observe(definition, MetricKind::Gauge, Box::new(read));
    }

    /// Registers a counter whose values are read when the metrics are rendered; see [`Self::observe_gauge`].
    pub fn observe_counter<const N: usize>(
        &self,
        definition: &Definition<N>,
        read: impl Fn() -> Vec<Sample<N>> + Send + Sync + 'static,
    ) {
        self.observe(definition, MetricKind::Counter, Box::new(read));
    }

    fn observe<const N: usize>(
        &self,
        definition: &Definition<N>,
        kind: MetricKind,
        read: Box<Read<N>>,
    ) {
        let new = || Observed {
            names: definition.labels,
            kind,
            readers: Arc::default(),
        };
        let observed = self.family(definition.describe(kind), new, Observed::clone);
        observed.lock().push(read);
    }

    /// Returns the family with the name of the description, after registering a new one if there is none. A family of
    /// another type under the same name is a mistake in a definition; the new one is then not rendered.
    fn family<F, M>(
        &self,
        description: Description,
        new: impl FnOnce() -> F,
        metric: impl FnOnce(&F) -> M,
    ) -> F
    where
        F: Clone + Send + 'static,
        M: Metric,
    {
        let mut registered = self.lock();
        if let Some(entry) = registered.entries.get(description.name) {
            let known = entry.family.downcast_ref::<F>().cloned();
            return known.unwrap_or_else(new);
        }
        let family = new();
        // The encoder adds the full stop.
        let (name, help) = (description.stem(), description.help.trim_end_matches('.'));
        let registry = &mut registered.registry;
        match description.unit() {
            Some(unit) => registry.register_with_unit(name, help, unit, metric(&family)),
            None => registry.register(name, help, metric(&family)),
        }
        let entry = Entry {
            family: Box::new(family.clone()),
            description,
        };
        registered.entries.insert(entry.description.name, entry);
        family
    }

    /// Returns the descriptions of all metrics, sorted by name. Includes metrics that have no series yet.
    #[must_use]
    pub fn descriptions(&self) -> Vec<Description> {
        let registered = self.lock();
        let entries = registered.entries.values();
        entries.map(|entry| entry.description.clone()).collect()
    }

    /// Renders all series in the text format of OpenMetrics 1.0.
    #[must_use]
    pub fn render(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = encode(&mut text, &self.lock().registry);
        // The encoder writes braces without labels.
        text.replace("{} ", " ")
    }

    /// Renders all series in the text format of Prometheus, version 0.0.4, for scrapers that do not know OpenMetrics.
    #[must_use]
    pub fn render_classic(&self) -> String {
        classic(&self.render(), &self.descriptions())
    }
}

/// A function that returns the current values of a metric.
type Read<const N: usize> = dyn Fn() -> Vec<Sample<N>> + Send + Sync;

/// A metric whose values are read when it is rendered.
#[derive(Clone)]
struct Observed<const N: usize> {
    names: [&'static str; N],
    kind: MetricKind,
    readers: Arc<Mutex<Vec<Box<Read<N>>>>>,
}

impl<const N: usize> fmt::Debug for Observed<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observed").finish_non_exhaustive()
    }
}

impl<const N: usize> Observed<N> {
    fn lock(&self) -> MutexGuard<'_, Vec<Box<Read<N>>>> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<const N: usize> EncodeMetric for Observed<N> {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        for sample in self.lock().iter().flat_map(|read| read()) {
            let labels = LabelSet::new(self.names, sample.labels);
            let mut encoder = encoder.encode_family(&labels)?;
            match self.kind {
                MetricKind::Counter => {
                    encoder.encode_counter::<NoLabelSet, f64, f64>(&sample.value, None)?;
                }
                _ => encoder.encode_gauge(&sample.value)?,
            }
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        match self.kind {
            MetricKind::Counter => MetricType::Counter,
            _ => MetricType::Gauge,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const REQUESTS: Definition<2> = Definition {
        name: "core_requests_total",
        help: "Requests.",
        labels: ["service", "status"],
    };
    const DURATION: Definition<0> = Definition {
        name: "core_duration_seconds",
        help: "Durations.",
        labels: [],
    };
    const AGE: Definition<0> = Definition {
        name: "core_age_seconds",
        help: "An age.",
        labels: [],
    };

    fn metrics() -> Metrics {
        let metrics = Metrics::new();
        metrics.counters(&REQUESTS).with(["iam", "2xx"]).add(2);
        let again = metrics.counters(&REQUESTS);
        again.with(["iam", "2xx"]).increment();
        let durations = metrics.histograms(&DURATION, Buckets::REQUESTS).with([]);
        for millis in [1, 2, 11_000] {
            durations.record(Duration::from_millis(millis));
        }
        metrics.observe_gauge(&AGE, || vec![Sample::new([], 1.5)]);
        metrics
    }

    #[test]
    fn series_are_rendered_in_the_format_of_open_metrics() {
        let text = metrics().render();
        for line in [
            "# HELP core_requests Requests.",
            "# TYPE core_requests counter",
            "core_requests_total{service=\"iam\",status=\"2xx\"} 3",
            "# UNIT core_duration_seconds seconds",
            "core_duration_seconds_bucket{le=\"0.0005\"} 0",
            "core_duration_seconds_bucket{le=\"0.001\"} 1",
            "core_duration_seconds_bucket{le=\"0.0025\"} 2",
            "core_duration_seconds_bucket{le=\"10.0\"} 2",
            "core_duration_seconds_bucket{le=\"+Inf\"} 3",
            "core_duration_seconds_sum 11.003",
            "core_duration_seconds_count 3",
            "core_age_seconds 1.5",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
        assert!(text.ends_with("# EOF\n"));
    }

    #[test]
    fn the_classic_format_names_counters_in_full() {
        let text = metrics().render_classic();
        for line in [
            "# HELP core_requests_total Requests.",
            "# TYPE core_requests_total counter",
            "core_requests_total{service=\"iam\",status=\"2xx\"} 3",
            "# TYPE core_duration_seconds histogram",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
        assert!(!text.contains("# UNIT") && !text.contains("# EOF"));
    }

    #[test]
    fn a_name_that_is_used_for_another_type_does_not_replace_the_metric() {
        let metrics = metrics();
        let gauge = Definition {
            labels: [],
            ..DURATION
        };
        metrics.gauges(&gauge).with([]).set(7);
        let kinds = metrics.descriptions();
        let kinds: Vec<_> = kinds.iter().map(|known| known.kind).collect();
        let expected = [
            MetricKind::Gauge,
            MetricKind::Histogram,
            MetricKind::Counter,
        ];
        assert_eq!(kinds, expected);
        assert!(metrics.render().contains("core_duration_seconds_count 3"));
    }
}
