//! The role of a process that queues jobs and drains them with the worker of `core-suite`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use core_domain::access::authorize_operator;
use core_domain::port::{Mode, Store};
use core_domain::provisioning::{Job, JobQuery, JobStatus};
use core_suite::{WorkerOptions, WorkerWake, start_worker};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::harness::backend::Location;
use crate::harness::cpu;
use crate::harness::process::print_message;
use crate::kinds::{AppliedJobs, Order, operator, queue, worker};

/// The number of jobs that are queued in one unit of work.
const UNIT: usize = 200;

/// The jobs to drain.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Drain {
    pub(crate) location: Location,
    pub(crate) jobs: u32,
    pub(crate) lanes: u32,
    /// The number of recorded steps of each job: one or three.
    pub(crate) steps: usize,
    /// Maximum duration of the measurement.
    pub(crate) limit: Duration,
}

/// The result of draining jobs.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct DrainResult {
    /// Jobs per second.
    pub(crate) per_second: f64,
    /// Processor time of the process per job, in microseconds.
    pub(crate) cpu_us: f64,
    /// True if all jobs were drained within the limit.
    pub(crate) all: bool,
}

/// Queues the jobs, drains them, and reports the result.
pub(crate) async fn run(drain: Drain) {
    let store = drain.location.store().await;
    let orders: Vec<Order> = (0..drain.jobs)
        .map(|job| Order::in_lane(job % drain.lanes))
        .collect();
    for orders in orders.chunks(UNIT) {
        match drain.steps {
            1 => queue::<1>(store.as_ref(), orders).await,
            _ => queue::<3>(store.as_ref(), orders).await,
        };
    }
    let applied = Arc::new(AppliedJobs::default());
    let worker = worker(&store, &applied);
    let options = WorkerOptions {
        sole_user: !drain.location.backend.is_postgres(),
        ..WorkerOptions::default()
    };
    let process = std::process::id();
    let (since, cpu) = (Instant::now(), cpu::time_of(process));
    let handle = start_worker(worker, &WorkerWake::default(), options);
    let mut count = applied.count();
    let jobs = drain.jobs as usize;
    let all = tokio::time::timeout(drain.limit, count.wait_for(|count| *count >= jobs));
    let all = all.await.is_ok();
    while all && count_completed_jobs(store.as_ref()).await < u64::from(drain.jobs) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let seconds = since.elapsed().as_secs_f64();
    let used = cpu::time_of(process).saturating_sub(cpu).as_secs_f64();
    let drained = f64::from(u32::try_from(applied.jobs().len().clamp(1, jobs)).unwrap());
    let drained = DrainResult {
        per_second: drained / seconds,
        cpu_us: used * 1e6 / drained,
        all,
    };
    print_message("drained", &json!(drained));
    drop(handle);
}

async fn count_completed_jobs(store: &dyn Store) -> u64 {
    let cx = operator();
    let scope = authorize_operator(&cx).unwrap();
    let query = JobQuery::Of {
        platform_id: None,
        status: Some(JobStatus::Completed),
    };
    let mut uow = store.begin(Mode::Read).await.unwrap();
    let jobs = scope.records::<Job>(uow.as_mut());
    jobs.count(&query).await.unwrap()
}
