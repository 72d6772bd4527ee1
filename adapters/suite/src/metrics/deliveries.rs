//! The metrics of attempts to deliver messages of the outbox, mails and webhooks.

use std::time::Duration;

use core_http::kernel::metrics::{Buckets, Counters, Definition, Gauge, Histogram, Metrics};

const ATTEMPTS: Definition<2> = Definition {
    name: "core_delivery_attempts_total",
    help: "Attempts to deliver a message of the outbox, a mail or a webhook message. `delayed`: the attempt failed and is repeated later. `refused`: the receiver refused a mail for good. `expired`: a mail could not be sent in time. `released`: the process stopped.",
    labels: ["queue", "outcome"],
};

const DURATION: Definition<1> = Definition {
    name: "core_delivery_duration_seconds",
    help: "Duration of an attempt to deliver a message.",
    labels: ["queue"],
};

const IN_PROGRESS: Definition<1> = Definition {
    name: "core_deliveries_in_progress",
    help: "Attempts to deliver a message that are in progress.",
    labels: ["queue"],
};

/// The metrics of a queue.
#[derive(Clone, Debug)]
pub(crate) struct DeliveryMetrics {
    queue: &'static str,
    attempts: Counters<2>,
    duration: Histogram,
    in_progress: Gauge,
}

/// An attempt in progress. It ends when this value is dropped.
pub(crate) struct InProgress(Gauge);

impl Drop for InProgress {
    fn drop(&mut self) {
        self.0.decrement();
    }
}

impl DeliveryMetrics {
    /// Registers the metrics of a queue whose attempts have these outcomes.
    pub(crate) fn new(
        metrics: &Metrics,
        queue: &'static str,
        outcomes: &'static [&'static str],
    ) -> Self {
        let attempts = metrics.counters(&ATTEMPTS);
        for outcome in outcomes {
            // Creates the series, so that it is rendered before its first event.
            let _ = attempts.with([queue, outcome]);
        }
        Self {
            queue,
            attempts,
            duration: metrics
                .histograms(&DURATION, Buckets::BACKGROUND)
                .with([queue]),
            in_progress: metrics.gauges(&IN_PROGRESS).with([queue]),
        }
    }

    /// Counts an attempt as in progress.
    pub(crate) fn begin(&self) -> InProgress {
        self.in_progress.increment();
        InProgress(self.in_progress.clone())
    }

    /// Counts an attempt that has ended.
    pub(crate) fn count(&self, outcome: &'static str, took: Duration) {
        self.attempts.with([self.queue, outcome]).increment();
        self.duration.record(took);
    }
}
