//! The metrics of the worker.

use std::collections::HashMap;
use std::sync::OnceLock;
use std::time::Duration;

use core_domain::provisioning::{FailureKind, Job, JobStatus};
use core_domain::use_case::provisioning::{LeaseState, TimerStats};
use core_http::kernel::metrics::{
    Buckets, Counter, Counters, Definition, Histogram, Histograms, Metrics, Sample,
};

const CLAIMED: Definition<1> = Definition {
    name: "core_jobs_claimed_total",
    help: "Jobs that the worker of this process has claimed. A job that is retried or waits is claimed again.",
    labels: ["kind"],
};

const ENDED: Definition<2> = Definition {
    name: "core_jobs_ended_total",
    help: "Ends of the work on claimed jobs. `retried`: the job is queued again. `waiting`: it waits for an event.",
    labels: ["kind", "outcome"],
};

const LOST_LEASES: Definition<0> = Definition {
    name: "core_job_leases_lost_total",
    help: "Jobs that were taken from the worker of this process because its lease had ended.",
    labels: [],
};

const RENEWED_LEASES: Definition<0> = Definition {
    name: "core_job_lease_renewals_total",
    help: "Leases of jobs that the worker of this process has extended. Each job that it holds counts three times per lease.",
    labels: [],
};

const STEP_DURATION: Definition<1> = Definition {
    name: "core_job_step_duration_seconds",
    help: "Duration of an attempt of a step of a job.",
    labels: ["kind"],
};

const TIMERS: Definition<1> = Definition {
    name: "core_job_timers_total",
    help: "Jobs that the timers of this process have changed. `woken`: the wait has ended. `recovered`: the lease of the worker has expired. `overdue`: the deadline has passed.",
    labels: ["event"],
};

const SLOTS: Definition<1> = Definition {
    name: "core_worker_slots",
    help: "Slots of the worker of this process. Each one holds a job.",
    labels: ["state"],
};

/// How the work on a claimed job has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClaimEnd {
    Completed,
    Failed,
    Canceled,
    Retried,
    Waiting,
}

/// The values of the label `outcome`, in the order of [`ClaimEnd`].
const OUTCOMES: [&str; 5] = ["completed", "failed", "canceled", "retried", "waiting"];

impl ClaimEnd {
    /// Returns how the work has ended; `None` if the worker still holds the job.
    fn of(job: &Job) -> Option<Self> {
        match (job.status, job.failure_kind) {
            (JobStatus::Running, _) => None,
            (JobStatus::Queued, _) => Some(Self::Retried),
            (JobStatus::Waiting, _) => Some(Self::Waiting),
            (JobStatus::Completed, _) => Some(Self::Completed),
            (JobStatus::Failed, Some(FailureKind::Cancelled)) => Some(Self::Canceled),
            (JobStatus::Failed, _) => Some(Self::Failed),
        }
    }
}

/// The series of a kind of job.
#[derive(Debug)]
struct KindSeries {
    claimed: Counter,
    ended: [Counter; OUTCOMES.len()],
    step: Histogram,
}

/// The families of which every kind of job has series.
#[derive(Debug)]
struct KindFamilies {
    claimed: Counters<1>,
    ended: Counters<2>,
    step: Histograms<1>,
}

impl KindFamilies {
    fn series(&self, kind: &str) -> KindSeries {
        KindSeries {
            claimed: self.claimed.with([kind]),
            ended: OUTCOMES.map(|outcome| self.ended.with([kind, outcome])),
            step: self.step.with([kind]),
        }
    }
}

/// The metrics of a worker.
#[derive(Debug)]
pub(crate) struct JobMetrics {
    families: KindFamilies,
    /// The registered kinds. The series of a kind are created when it is first claimed.
    kinds: HashMap<String, OnceLock<KindSeries>>,
    other: OnceLock<KindSeries>,
    lost_leases: Counter,
    renewed_leases: Counter,
    woken: Counter,
    recovered: Counter,
    overdue: Counter,
}

impl JobMetrics {
    /// Registers the metrics of a worker with these kinds of jobs.
    pub(crate) fn new(metrics: &Metrics, kinds: Vec<String>) -> Self {
        let timers = metrics.counters(&TIMERS);
        Self {
            families: KindFamilies {
                claimed: metrics.counters(&CLAIMED),
                ended: metrics.counters(&ENDED),
                step: metrics.histograms(&STEP_DURATION, Buckets::BACKGROUND),
            },
            kinds: kinds
                .into_iter()
                .map(|kind| (kind, OnceLock::new()))
                .collect(),
            other: OnceLock::new(),
            lost_leases: metrics.counters(&LOST_LEASES).with([]),
            renewed_leases: metrics.counters(&RENEWED_LEASES).with([]),
            woken: timers.with(["woken"]),
            recovered: timers.with(["recovered"]),
            overdue: timers.with(["overdue"]),
        }
    }

    /// Registers the gauge of the worker's slots. `held` returns the number of jobs that the worker holds.
    pub(crate) fn register_slots(
        metrics: &Metrics,
        slots: usize,
        held: impl Fn() -> usize + Send + Sync + 'static,
    ) {
        metrics.observe_gauge(&SLOTS, move || {
            let in_use = held();
            let free = slots.saturating_sub(in_use);
            vec![
                Sample::new(["in-use"], in_use as f64),
                Sample::new(["free"], free as f64),
            ]
        });
    }

    fn series(&self, kind: &str) -> &KindSeries {
        match self.kinds.get(kind) {
            Some(series) => series.get_or_init(|| self.families.series(kind)),
            None => self.other.get_or_init(|| self.families.series("other")),
        }
    }

    /// Counts a claim of a job.
    pub(crate) fn count_claim(&self, kind: &str) {
        self.series(kind).claimed.increment();
    }

    /// Records an attempt of a step.
    pub(crate) fn record_step(&self, kind: &str, took: Duration) {
        self.series(kind).step.record(took);
    }

    /// Counts the end of the work on a claimed job, unless the worker still holds the job.
    pub(crate) fn count_state(&self, state: &LeaseState) {
        match state {
            LeaseState::Held(job) => {
                if let Some(end) = ClaimEnd::of(job) {
                    self.series(&job.kind).ended[end as usize].increment();
                }
            }
            LeaseState::Lost => self.count_lost_lease(),
        }
    }

    /// Counts a job that was taken from this process.
    pub(crate) fn count_lost_lease(&self) {
        self.lost_leases.increment();
    }

    /// Counts leases that were extended.
    pub(crate) fn count_renewals(&self, count: usize) {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        self.renewed_leases.add(count);
    }

    /// Counts the jobs that the timers have changed.
    pub(crate) fn count_timers(&self, stats: &TimerStats) {
        let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        self.woken.add(number(stats.woken));
        self.recovered.add(number(stats.reaped));
        self.overdue.add(number(stats.overdue));
    }
}
