//! The metrics of reported usage.

use core_domain::billing::usage::IngestedUsage;

use crate::kernel::metrics::{Counter, Definition, Metrics};

const EVENTS: Definition<1> = Definition {
    name: "core_usage_events_total",
    help: "Reported events of metered usage, by outcome. `duplicate`: the event was stored before.",
    labels: ["outcome"],
};

/// The counters of reported usage.
#[derive(Clone, Debug)]
pub struct UsageMetrics {
    accepted: Counter,
    duplicates: Counter,
    rejected: Counter,
}

impl UsageMetrics {
    /// Registers the counters.
    #[must_use]
    pub fn new(metrics: &Metrics) -> Self {
        let events = metrics.counters(&EVENTS);
        Self {
            accepted: events.with(["accepted"]),
            duplicates: events.with(["duplicate"]),
            rejected: events.with(["rejected"]),
        }
    }

    /// Counts the events of a batch.
    pub fn count(&self, usage: &IngestedUsage) {
        self.accepted.add(usage.accepted.into());
        self.duplicates.add(usage.duplicates.into());
        self.rejected.add(usage.rejected.into());
    }
}
