//! Instruments: counters and gauges, and the families that create instruments for label values.

use std::fmt;

use prometheus_client::metrics::counter::Counter as CounterValue;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge as GaugeValue;

use super::histogram::{Buckets, Histogram};
use super::labels::LabelSet;

/// A number that only grows. Clones share their state. The default one is not registered, so it is never rendered.
#[derive(Clone, Debug, Default)]
pub struct Counter(pub(super) CounterValue);

impl Counter {
    /// Counts one more event.
    pub fn increment(&self) {
        self.0.inc();
    }

    /// Counts several more events.
    pub fn add(&self, number: u64) {
        self.0.inc_by(number);
    }
}

/// A number that can grow and shrink. Clones share their state. The default one is not registered, so it is never
/// rendered.
#[derive(Clone, Debug, Default)]
pub struct Gauge(pub(super) GaugeValue);

impl Gauge {
    /// Increases the number by one.
    pub fn increment(&self) {
        self.0.inc();
    }

    /// Decreases the number by one.
    pub fn decrement(&self) {
        self.0.dec();
    }

    /// Sets the number.
    pub fn set(&self, number: i64) {
        self.0.set(number);
    }
}

/// The series of a counter with `N` labels.
#[derive(Clone, Debug)]
pub struct Counters<const N: usize> {
    pub(super) names: [&'static str; N],
    pub(super) family: Family<LabelSet<N>, CounterValue>,
}

impl<const N: usize> Counters<N> {
    pub(super) fn new(names: [&'static str; N]) -> Self {
        Self {
            names,
            family: Family::default(),
        }
    }

    /// Returns the counter for these label values, in the order of the definition. The first call creates the series.
    /// It takes a lock, so keep the counter.
    #[must_use]
    pub fn with(&self, values: [&str; N]) -> Counter {
        let labels = LabelSet::new(self.names, values);
        Counter(self.family.get_or_create_owned(&labels))
    }
}

/// The series of a gauge with `N` labels.
#[derive(Clone, Debug)]
pub struct Gauges<const N: usize> {
    pub(super) names: [&'static str; N],
    pub(super) family: Family<LabelSet<N>, GaugeValue>,
}

impl<const N: usize> Gauges<N> {
    pub(super) fn new(names: [&'static str; N]) -> Self {
        Self {
            names,
            family: Family::default(),
        }
    }

    /// Returns the gauge for these label values, in the order of the definition. The first call creates the series. It
    /// takes a lock, so keep the gauge.
    #[must_use]
    pub fn with(&self, values: [&str; N]) -> Gauge {
        let labels = LabelSet::new(self.names, values);
        Gauge(self.family.get_or_create_owned(&labels))
    }
}

/// Creates the histograms of a family.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewHistogram(Buckets);

impl MetricConstructor<Histogram> for NewHistogram {
    fn new_metric(&self) -> Histogram {
        Histogram::new(self.0)
    }
}

/// The series of a histogram with `N` labels.
#[derive(Clone)]
pub struct Histograms<const N: usize> {
    pub(super) names: [&'static str; N],
    pub(super) family: Family<LabelSet<N>, Histogram, NewHistogram>,
}

impl<const N: usize> fmt::Debug for Histograms<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Histograms")
            .field("names", &self.names)
            .finish_non_exhaustive()
    }
}

impl<const N: usize> Histograms<N> {
    pub(super) fn new(names: [&'static str; N], buckets: Buckets) -> Self {
        Self {
            names,
            family: Family::new_with_constructor(NewHistogram(buckets)),
        }
    }

    /// Returns the histogram for these label values, in the order of the definition. The first call creates the series.
    /// It takes a lock, so keep the histogram.
    #[must_use]
    pub fn with(&self, values: [&str; N]) -> Histogram {
        let labels = LabelSet::new(self.names, values);
        self.family.get_or_create_owned(&labels)
    }
}
