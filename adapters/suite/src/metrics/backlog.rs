//! Gauges that need queries: open work and its age. A background task refreshes them, so that a scrape never waits for
//! the store.
//!
//! Every query uses an index and reads only open work. With several nodes, each node reports the same backlog of the
//! store: use the maximum over the nodes, not the sum.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use core_domain::kernel::{Clock, Result};
use core_domain::port::{Mode, Store};
use core_domain::use_case::billing::backlog::overdue;
use core_domain::use_case::billing::clock::BillingClock;
use core_domain::use_case::provisioning::{JobBacklog, job_backlog};
use core_domain::use_case::shared::{DeliveryBacklog, QueueBacklog, audit_lag, delivery_backlog};
use core_http::kernel::metrics::{Counter, Definition, Metrics, Sample};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::background_task::BackgroundTask;

const HEALTHY: Definition<0> = Definition {
    name: "core_store_healthy",
    help: "1 if the store answered the last health check, otherwise 0.",
    labels: [],
};

const REFRESHED: Definition<0> = Definition {
    name: "core_backlog_refreshed_timestamp_seconds",
    help: "Unix time of the last refresh of the gauges that need queries.",
    labels: [],
};

const FAILURES: Definition<1> = Definition {
    name: "core_backlog_refresh_failures_total",
    help: "Failed queries for gauges. A gauge without a current value is not shown.",
    labels: ["subject"],
};

const JOBS: Definition<1> = Definition {
    name: "core_jobs",
    help: "Jobs that have not ended, by status.",
    labels: ["status"],
};

const OLDEST_READY: Definition<0> = Definition {
    name: "core_jobs_oldest_ready_age_seconds",
    help: "Time for which a job could have been claimed: the longest among the 50 lanes that are claimed next. 0 if no job can be claimed.",
    labels: [],
};

const LANES: Definition<1> = Definition {
    name: "core_job_lanes",
    help: "Lanes with queued jobs. `ready`: the first job can be claimed now. `scheduled`: it can be claimed later.",
    labels: ["state"],
};

const DEAD_LETTERS: Definition<1> = Definition {
    name: "core_dead_letters",
    help: "Open dead letters, by status. `PENDING`: a job has stopped and needs an operator.",
    labels: ["status"],
};

const AUDIT_LAG: Definition<0> = Definition {
    name: "core_audit_seal_lag_seconds",
    help: "Age of the oldest audit entry that is not sealed. 0 if all entries are sealed.",
    labels: [],
};

const PENDING: Definition<1> = Definition {
    name: "core_deliveries_pending",
    help: "Messages of the outbox, mails and webhook messages that are not delivered.",
    labels: ["queue"],
};

const OLDEST_DELIVERY: Definition<1> = Definition {
    name: "core_deliveries_oldest_age_seconds",
    help: "Age of the oldest message that is not delivered: the highest among the 20 that are due next. 0 if there is none.",
    labels: ["queue"],
};

const OVERDUE: Definition<0> = Definition {
    name: "core_billing_oldest_due_age_seconds",
    help: "Time for which a renewal, charge or other change by time has been due. 0 if nothing is due.",
    labels: [],
};

/// The pause after a refresh, as a multiple of its duration. So refreshes need at most a twentieth of a connection.
const PAUSE_FACTOR: u32 = 20;

/// The values of the last refresh; `None` before the first one, and after a failed query.
#[derive(Debug, Default)]
struct Snapshot {
    refreshed_at: Option<f64>,
    is_healthy: Option<bool>,
    jobs: Option<JobBacklog>,
    deliveries: Option<DeliveryBacklog>,
    audit_lag: Option<Duration>,
    overdue: Option<Duration>,
}

/// The last refreshed values, which the registry reads.
#[derive(Clone, Debug, Default)]
struct Snapshots(Arc<Mutex<Snapshot>>);

impl Snapshots {
    fn lock(&self) -> MutexGuard<'_, Snapshot> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a gauge that shows a part of the last snapshot.
    fn register<const N: usize>(
        &self,
        metrics: &Metrics,
        definition: &Definition<N>,
        read: impl Fn(&Snapshot) -> Option<Vec<Sample<N>>> + Send + Sync + 'static,
    ) {
        let snapshots = self.clone();
        metrics.observe_gauge(definition, move || {
            read(&snapshots.lock()).unwrap_or_default()
        });
    }
}

/// Returns a value without labels.
fn single(value: f64) -> Vec<Sample<0>> {
    vec![Sample::new([], value)]
}

/// Registers all gauges.
fn register(metrics: &Metrics, all: &Snapshots) {
    all.register(metrics, &HEALTHY, |seen| {
        seen.is_healthy
            .map(|healthy| single(f64::from(u8::from(healthy))))
    });
    all.register(metrics, &REFRESHED, |seen| seen.refreshed_at.map(single));
    all.register(metrics, &JOBS, |seen| {
        let jobs = seen.jobs.as_ref()?.jobs.iter();
        Some(
            jobs.map(|(status, number)| Sample::new([status.as_str()], *number as f64))
                .collect(),
        )
    });
    all.register(metrics, &OLDEST_READY, |seen| {
        seen.jobs
            .as_ref()
            .map(|jobs| single(jobs.oldest_ready.as_secs_f64()))
    });
    all.register(metrics, &LANES, |seen| {
        let jobs = seen.jobs.as_ref()?;
        Some(vec![
            Sample::new(["ready"], jobs.ready_lanes as f64),
            Sample::new(["scheduled"], jobs.scheduled_lanes as f64),
        ])
    });
    all.register(metrics, &DEAD_LETTERS, |seen| {
        let letters = seen.jobs.as_ref()?.dead_letters.iter();
        Some(
            letters
                .map(|(status, number)| Sample::new([status.as_str()], *number as f64))
                .collect(),
        )
    });
    all.register(metrics, &AUDIT_LAG, |seen| {
        seen.audit_lag.map(|lag| single(lag.as_secs_f64()))
    });
    all.register(metrics, &PENDING, |seen| {
        Some(of_queues(seen.deliveries.as_ref()?, |queue| {
            queue.pending as f64
        }))
    });
    all.register(metrics, &OLDEST_DELIVERY, |seen| {
        Some(of_queues(seen.deliveries.as_ref()?, |queue| {
            queue.oldest.as_secs_f64()
        }))
    });
    all.register(metrics, &OVERDUE, |seen| {
        seen.overdue.map(|age| single(age.as_secs_f64()))
    });
}

fn of_queues(all: &DeliveryBacklog, read: fn(&QueueBacklog) -> f64) -> Vec<Sample<1>> {
    let queues = [
        ("outbox", &all.outbox),
        ("mails", &all.mails),
        ("webhooks", &all.webhooks),
    ];
    queues
        .map(|(name, queue)| Sample::new([name], read(queue)))
        .into()
}

/// The failed queries of each subject.
#[derive(Debug)]
struct Failures {
    jobs: Counter,
    deliveries: Counter,
    audit: Counter,
    billing: Counter,
}

/// Refreshes the gauges that need queries.
#[derive(Debug)]
pub(crate) struct Backlog {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    billing_clock: BillingClock,
    snapshots: Snapshots,
    failures: Failures,
}

impl Backlog {
    /// Registers the gauges. They have no values before the first refresh.
    pub(crate) fn new(
        metrics: &Metrics,
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        billing_clock: BillingClock,
    ) -> Self {
        let snapshots = Snapshots::default();
        register(metrics, &snapshots);
        let failures = metrics.counters(&FAILURES);
        Self {
            store,
            clock,
            billing_clock,
            snapshots,
            failures: Failures {
                jobs: failures.with(["jobs"]),
                deliveries: failures.with(["deliveries"]),
                audit: failures.with(["audit"]),
                billing: failures.with(["billing"]),
            },
        }
    }

    /// Starts to refresh the gauges on the current tokio runtime: now, and then at the interval.
    pub(crate) fn start(self: Arc<Self>, interval: Duration, metrics: &Metrics) -> BackgroundTask {
        BackgroundTask::start("backlog", metrics, move |stopped| {
            Arc::clone(&self).run(interval, stopped)
        })
    }

    async fn run(self: Arc<Self>, interval: Duration, mut stopped: watch::Receiver<bool>) {
        loop {
            let began = Instant::now();
            tokio::select! {
                () = self.refresh() => {}
                _ = stopped.wait_for(|stopped| *stopped) => return,
            }
            let pause = interval.max(began.elapsed() * PAUSE_FACTOR);
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                _ = stopped.wait_for(|stopped| *stopped) => return,
            }
        }
    }

    /// Refreshes all gauges. If the store is not healthy, they have no values until the next refresh.
    pub(crate) async fn refresh(&self) {
        let is_healthy = self.store.check().await.is_ok();
        let mut next = Snapshot {
            is_healthy: Some(is_healthy),
            ..Snapshot::default()
        };
        if is_healthy {
            next.jobs = value_of(self.jobs().await, "jobs", &self.failures.jobs);
            let deliveries = self.deliveries().await;
            next.deliveries = value_of(deliveries, "deliveries", &self.failures.deliveries);
            next.audit_lag = value_of(self.audit_lag().await, "audit", &self.failures.audit);
            next.overdue = value_of(self.overdue().await, "billing", &self.failures.billing);
        }
        next.refreshed_at = Some(self.clock.now().millis() as f64 / 1e3);
        *self.snapshots.lock() = next;
    }

    async fn jobs(&self) -> Result<JobBacklog> {
        job_backlog(self.store.begin(Mode::Auto).await?.as_mut()).await
    }

    async fn deliveries(&self) -> Result<DeliveryBacklog> {
        delivery_backlog(self.store.begin(Mode::Auto).await?.as_mut()).await
    }

    async fn audit_lag(&self) -> Result<Duration> {
        audit_lag(self.store.begin(Mode::Auto).await?.as_mut()).await
    }

    async fn overdue(&self) -> Result<Duration> {
        overdue(
            self.store.begin(Mode::Auto).await?.as_mut(),
            self.billing_clock,
        )
        .await
    }
}

/// Returns the value of a query. A failure is counted and logged.
fn value_of<T>(queried: Result<T>, subject: &str, failures: &Counter) -> Option<T> {
    queried
        .inspect_err(|error| {
            failures.increment();
            tracing::warn!(subject, ?error, "gauges could not be refreshed");
        })
        .ok()
}
