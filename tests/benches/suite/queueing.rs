//! Measures how many jobs concurrent callers queue per second, each in its own unit of work.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::{from_value, json};
use tokio::task::JoinSet;

use crate::harness::backend::{Backend, Location, Place};
use crate::harness::cpu::Cores;
use crate::harness::process::{Process, print_message};
use crate::kinds::{Order, queue_counting_runs};
use crate::plan::Plan;
use crate::report::Report;

/// The number of concurrent callers.
const CALLERS: u32 = 32;

/// The goal for jobs queued per second, on Postgres.
const GOAL: f64 = 4_000.0;

/// The store, the number of lanes, and the duration.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Queueing {
    location: Location,
    /// The number of lanes that the jobs share; zero gives each job its own lane.
    lanes: u32,
    duration: Duration,
}

/// The result of queueing jobs.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct QueuedJobs {
    /// Jobs per second.
    pub(crate) per_second: f64,
    /// The average number of runs of a unit until it was committed.
    pub(crate) runs: f64,
}

pub(crate) fn measure(plan: &Plan, report: &mut Report) {
    for backend in &plan.backends {
        for lanes in [0, 1_000] {
            let place = Place::new(*backend);
            let queueing = Queueing {
                location: place.location.clone(),
                lanes,
                duration: plan.queueing,
            };
            let mut process = Process::in_role("queueing", &json!(queueing), Cores::All);
            let queued: QueuedJobs = from_value(process.wait_for("queued")).unwrap();
            process.end();
            let goal = (*backend == Backend::Postgres).then_some(GOAL);
            report.add_queued_jobs(*backend, lanes, queued, goal);
        }
    }
}

/// The role of that process.
pub(crate) async fn run(queueing: Queueing) {
    let store = queueing.location.store().await;
    let (jobs, runs) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let (since, lanes) = (Instant::now(), queueing.lanes);
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let (store, jobs, runs) = (store.clone(), jobs.clone(), runs.clone());
        callers.spawn(async move {
            while since.elapsed() < queueing.duration {
                let job = jobs.fetch_add(1, Ordering::Relaxed);
                let lane = if lanes == 0 { job } else { job % lanes };
                queue_counting_runs(store.as_ref(), &Order::in_lane(lane), &runs).await;
            }
        });
    }
    while let Some(ended) = callers.join_next().await {
        ended.unwrap();
    }
    let count = |counter: &AtomicU32| f64::from(counter.load(Ordering::Relaxed));
    let queued = QueuedJobs {
        per_second: count(&jobs) / since.elapsed().as_secs_f64(),
        runs: count(&runs) / count(&jobs),
    };
    print_message("queued", &json!(queued));
}
