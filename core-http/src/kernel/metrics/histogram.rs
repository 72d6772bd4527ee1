//! Histograms of durations.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::{MetricType, TypedMetric};

/// The upper bounds of the buckets of a histogram.
#[derive(Clone, Copy, Debug)]
pub struct Buckets(&'static [Duration]);

/// Returns a duration in microseconds.
const fn micros(number: u64) -> Duration {
    Duration::from_micros(number)
}

/// Returns a duration in milliseconds.
const fn millis(number: u64) -> Duration {
    Duration::from_millis(number)
}

impl Buckets {
    /// Buckets for requests and units of work: from half a millisecond to ten seconds.
    pub const REQUESTS: Self = Self(&[
        micros(500),
        millis(1),
        micros(2_500),
        millis(5),
        millis(10),
        millis(25),
        millis(50),
        millis(100),
        millis(250),
        millis(500),
        millis(1_000),
        millis(2_500),
        millis(5_000),
        millis(10_000),
    ]);

    /// Buckets for work that waits for other systems: from five milliseconds to ten minutes.
    pub const BACKGROUND: Self = Self(&[
        millis(5),
        millis(25),
        millis(100),
        millis(250),
        millis(500),
        millis(1_000),
        millis(2_500),
        millis(5_000),
        millis(10_000),
        millis(30_000),
        millis(60_000),
        millis(180_000),
        millis(600_000),
    ]);
}

/// A histogram of durations. Recording a duration takes two relaxed atomic operations and no lock. The histogram of
/// `prometheus-client` takes a lock for each. Clones share their state.
#[derive(Clone, Debug)]
pub struct Histogram(Arc<State>);

#[derive(Debug)]
struct State {
    bounds: &'static [Duration],
    /// The number of durations in each bucket, and above all of them.
    counts: Box<[AtomicU64]>,
    /// The sum of all durations, in nanoseconds. It would overflow after 584 years.
    sum: AtomicU64,
}

impl Histogram {
    /// Creates an empty histogram with these buckets.
    #[must_use]
    pub fn new(buckets: Buckets) -> Self {
        let counts = (0..=buckets.0.len()).map(|_| AtomicU64::default());
        Self(Arc::new(State {
            bounds: buckets.0,
            counts: counts.collect(),
            sum: AtomicU64::default(),
        }))
    }

    /// Records a duration.
    pub fn record(&self, duration: Duration) {
        let state = &self.0;
        let bucket = state.bounds.partition_point(|bound| *bound < duration);
        if let Some(count) = state.counts.get(bucket) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        state.sum.fetch_add(nanos, Ordering::Relaxed);
    }
}

impl EncodeMetric for Histogram {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let state = &self.0;
        let bounds = state.bounds.iter().map(Duration::as_secs_f64);
        let bounds = bounds.chain([f64::INFINITY]);
        let counts = state
            .counts
            .iter()
            .map(|count| count.load(Ordering::Relaxed));
        let buckets: Vec<(f64, u64)> = bounds.zip(counts).collect();
        let count = buckets.iter().map(|(_, count)| count).sum();
        let sum = Duration::from_nanos(state.sum.load(Ordering::Relaxed));
        encoder.encode_histogram::<NoLabelSet>(sum.as_secs_f64(), count, &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

impl TypedMetric for Histogram {
    const TYPE: MetricType = MetricType::Histogram;
}
