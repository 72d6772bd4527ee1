//! The metrics of the export of traces.

use std::sync::Arc;

use core_domain::port::{SpanCounts, SpanSink};
use core_http::kernel::metrics::{Definition, Metrics, Sample};

const EXPORTED: Definition<0> = Definition {
    name: "core_trace_spans_exported_total",
    help: "Spans that the receiver of traces has accepted.",
    labels: [],
};

const DROPPED: Definition<1> = Definition {
    name: "core_trace_spans_dropped_total",
    help: "Spans that were not exported. `queue-full`: too many were waiting. `receiver`: the receiver refused them, or could not be reached for too long.",
    labels: ["reason"],
};

/// Registers the numbers of exported and dropped spans. Without a sink they are 0.
pub(crate) fn register_spans(metrics: &Metrics, sink: Option<&Arc<dyn SpanSink>>) {
    let sink = sink.cloned();
    let counts = move || {
        let sink = sink.as_ref();
        sink.map_or_else(SpanCounts::default, |sink| sink.counts())
    };
    let exported = counts.clone();
    metrics.observe_counter(&EXPORTED, move || {
        vec![Sample::new([], exported().exported as f64)]
    });
    metrics.observe_counter(&DROPPED, move || {
        let counts = counts();
        vec![
            Sample::new(["queue-full"], counts.dropped_by_queue as f64),
            Sample::new(["receiver"], counts.dropped_by_receiver as f64),
        ]
    });
}
