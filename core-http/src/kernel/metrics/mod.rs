//! Metrics: instruments, the registry that renders them, and their definitions.
//!
//! - `definition`: the name, help text and labels of a metric, which are written only once.
//! - `labels`: the label sets of series.
//! - `histogram`: a histogram of durations without locks.
//! - `instrument`: counters, gauges, histograms, and their families.
//! - `registry`: [`Metrics`], the registry of one suite. There is no global state.
//! - `classic`: the text format of older scrapers.
//!
//! An instrument is resolved once, when the part that it measures is built. After that, counting takes one or two
//! relaxed atomic operations, no lock and no allocation.

mod classic;
mod definition;
mod histogram;
mod instrument;
mod labels;
mod registry;

pub use definition::{Definition, Description, MetricKind};
pub use histogram::{Buckets, Histogram};
pub use instrument::{Counter, Counters, Gauge, Gauges, Histograms};
pub use registry::{Metrics, Sample};
