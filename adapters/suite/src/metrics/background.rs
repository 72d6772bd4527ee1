//! The metrics of the background tasks: panics of all tasks, the sealer, the archives of the audit log, and the billing
//! ticker.

use core_domain::use_case::billing::advance_job::DueCustomers;
use core_http::kernel::metrics::{Counter, Definition, Gauge, Metrics};

const PANICS: Definition<1> = Definition {
    name: "core_background_task_panics_total",
    help: "Panics of a background task of this process. The task is started again after at most a second.",
    labels: ["task"],
};

const SEALED: Definition<0> = Definition {
    name: "core_audit_entries_sealed_total",
    help: "Audit entries that this process has linked and hashed.",
    labels: [],
};

const SEAL_FAILURES: Definition<0> = Definition {
    name: "core_audit_seal_failures_total",
    help: "Failed attempts to seal audit entries.",
    labels: [],
};

const ARCHIVE_FAILURES: Definition<0> = Definition {
    name: "core_audit_archive_failures_total",
    help: "Failed attempts to archive a month of the audit log.",
    labels: [],
};

const DUE_CUSTOMERS: Definition<1> = Definition {
    name: "core_billing_customers_due",
    help: "Customers for whom something is due, at the last tick of billing. `waiting`: their job waits for the payment provider, or has failed.",
    labels: ["state"],
};

const TICK_FAILURES: Definition<0> = Definition {
    name: "core_billing_tick_failures_total",
    help: "Failures to find or queue due work of billing.",
    labels: [],
};

/// Returns the counter of the panics of a background task.
pub(crate) fn task_panics(metrics: &Metrics, task: &str) -> Counter {
    metrics.counters(&PANICS).with([task])
}

/// The metrics of the sealer.
#[derive(Clone, Debug, Default)]
pub(crate) struct SealerMetrics {
    sealed: Counter,
    failures: Counter,
}

impl SealerMetrics {
    pub(crate) fn new(metrics: &Metrics) -> Self {
        Self {
            sealed: metrics.counters(&SEALED).with([]),
            failures: metrics.counters(&SEAL_FAILURES).with([]),
        }
    }

    /// Counts sealed entries.
    pub(crate) fn count_sealed(&self, entries: usize) {
        self.sealed.add(u64::try_from(entries).unwrap_or(u64::MAX));
    }

    /// Counts a failed attempt.
    pub(crate) fn count_failure(&self) {
        self.failures.increment();
    }
}

/// The metrics of the archives of the audit log.
#[derive(Clone, Debug, Default)]
pub(crate) struct ArchiveMetrics {
    failures: Counter,
}

impl ArchiveMetrics {
    pub(crate) fn new(metrics: &Metrics) -> Self {
        Self {
            failures: metrics.counters(&ARCHIVE_FAILURES).with([]),
        }
    }

    /// Counts a failed attempt.
    pub(crate) fn count_failure(&self) {
        self.failures.increment();
    }
}

/// The metrics of the billing ticker.
#[derive(Clone, Debug, Default)]
pub(crate) struct BillingMetrics {
    running: Gauge,
    waiting: Gauge,
    failures: Counter,
}

impl BillingMetrics {
    pub(crate) fn new(metrics: &Metrics) -> Self {
        let customers = metrics.gauges(&DUE_CUSTOMERS);
        Self {
            running: customers.with(["running"]),
            waiting: customers.with(["waiting"]),
            failures: metrics.counters(&TICK_FAILURES).with([]),
        }
    }

    /// Sets the numbers of customers for whom something is due.
    pub(crate) fn set_due(&self, due: &DueCustomers) {
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.running.set(number(due.running));
        self.waiting.set(number(due.waiting));
    }

    /// Counts a failure.
    pub(crate) fn count_failure(&self) {
        self.failures.increment();
    }
}
