//! Measures the time between the commit that queued a job and the start of its first step, in the same process and on
//! another node.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use core_domain::kernel::{Effect, Effects};
use core_domain::port::{AnnouncingStore, CommitListener, Store};
use core_suite::{WorkerHandle, WorkerOptions, WorkerWake, start_worker};
use serde_json::{from_value, json};

use crate::CountAt;
use crate::harness::backend::{Backend, Location, Place};
use crate::harness::cpu::Cores;
use crate::harness::process::{Process, print_message, wait_for_end};
use crate::kinds::{AppliedJobs, Order, nanoseconds, queue, worker};
use crate::plan::Plan;
use crate::report::Report;

/// The goals in milliseconds, within which 95 of 100 jobs must start.
const GOAL_SAME_PROCESS: f64 = 2.0;
const GOAL_OTHER_NODE: f64 = 20.0;

/// Times in nanoseconds, by the id of the job.
type Moments = Vec<(String, u64)>;

pub(crate) fn measure(plan: &Plan, report: &mut Report) {
    for backend in &plan.backends {
        let place = Place::new(*backend);
        let config = json!({ "location": place.location, "count": plan.starts });
        let mut process = Process::in_role("start", &config, Cores::All);
        let queued: Moments = from_value(process.wait_for("queued")).unwrap();
        let started: Moments = from_value(process.wait_for("started")).unwrap();
        process.end();
        let waits = waits(queued, &started);
        report.starts("same process", *backend, waits, GOAL_SAME_PROCESS);
        if *backend == Backend::Postgres {
            report.starts(
                "another node",
                *backend,
                on_another_node(plan),
                GOAL_OTHER_NODE,
            );
        }
    }
}

fn on_another_node(plan: &Plan) -> Vec<f64> {
    let place = Place::new(Backend::Postgres);
    let config = json!({ "location": place.location, "count": plan.starts });
    let mut node = Process::in_role("node", &config, Cores::All);
    node.wait_for("ready");
    let mut enqueuer = Process::in_role("enqueue", &config, Cores::All);
    let queued = from_value(enqueuer.wait_for("queued")).unwrap();
    enqueuer.end();
    let started: Moments = from_value(node.wait_for("started")).unwrap();
    node.end();
    waits(queued, &started)
}

/// Returns the milliseconds between commit and start, sorted.
fn waits(queued: Moments, started: &Moments) -> Vec<f64> {
    let queued: HashMap<String, u64> = queued.into_iter().collect();
    let wait = |(job, at): &(String, u64)| {
        let wait = Duration::from_nanos(at.saturating_sub(queued[job]));
        wait.as_secs_f64() * 1e3
    };
    let mut waits: Vec<f64> = started.iter().map(wait).collect();
    waits.sort_by(f64::total_cmp);
    waits
}

/// Wakes the worker of this process after commits, as a suite does.
#[derive(Debug)]
struct WakeWorker(WorkerWake);

impl CommitListener for WakeWorker {
    fn on_committed(&self, effects: &Effects) {
        if has_job(effects) {
            self.0.wake();
        }
    }

    fn on_committing(&self, effects: &Effects) {
        if has_job(effects) {
            self.0.wake_before_commit();
        }
    }
}

fn has_job(effects: &Effects) -> bool {
    effects.iter().any(|effect| *effect == Effect::JobReady)
}

async fn node(location: &Location) -> (Arc<dyn Store>, Arc<AppliedJobs>, WorkerHandle) {
    let wake = location
        .hints()
        .map(WorkerWake::with_hints)
        .unwrap_or_default();
    let listener = Arc::new(WakeWorker(wake.clone()));
    let store = AnnouncingStore::new(location.store().await, listener);
    let store: Arc<dyn Store> = Arc::new(store);
    let applied = Arc::new(AppliedJobs::default());
    let options = WorkerOptions {
        sole_user: !location.backend.is_postgres(),
        ..WorkerOptions::default()
    };
    let handle = start_worker(worker(&store, &applied), &wake, options);
    (store, applied, handle)
}

/// The role of a process that queues jobs and works on them. It queues the next job when the last one has started.
pub(crate) async fn in_one_process(config: CountAt) {
    let (store, applied, handle) = node(&config.location).await;
    let mut count = applied.count();
    let mut queued = Vec::new();
    for job in 0..config.count {
        // Each job is queued in its own task, like a request.
        let queued_one = tokio::spawn(queue_one(Arc::clone(&store), job));
        queued.push(queued_one.await.unwrap());
        count
            .wait_for(|count| *count == queued.len())
            .await
            .unwrap();
        idle(job).await;
    }
    print_message("queued", &json!(queued));
    print_message("started", &json!(applied.jobs()));
    handle.stop().await;
}

/// Queues a job. Returns its id, and the time after the commit.
async fn queue_one(store: Arc<dyn Store>, job: u32) -> (String, u64) {
    let mut ids = queue::<1>(store.as_ref(), &[Order::in_lane(job)]).await;
    (ids.remove(0), nanoseconds())
}

/// The role of the node that works on the jobs of another node.
pub(crate) async fn as_worker(config: CountAt) {
    let (_, applied, handle) = node(&config.location).await;
    print_message("ready", &json!(null));
    let jobs = config.count as usize;
    let mut count = applied.count();
    count.wait_for(|count| *count == jobs).await.unwrap();
    print_message("started", &json!(applied.jobs()));
    wait_for_end().await;
    handle.stop().await;
}

/// The role of the node that queues jobs for another node.
pub(crate) async fn as_enqueuer(config: CountAt) {
    let store = config.location.store().await;
    let hints = config.location.hints().unwrap();
    let mut queued = Vec::new();
    for job in 0..config.count {
        queued.push(queue_one(Arc::clone(&store), job).await);
        hints.notify().await;
        idle(job).await;
    }
    print_message("queued", &json!(queued));
}

/// Waits so that the worker is idle when the next job comes, each time at another phase of its polling.
async fn idle(job: u32) {
    let milliseconds = 100 + u64::from(job.wrapping_mul(7_919) % 97);
    tokio::time::sleep(Duration::from_millis(milliseconds)).await;
}
