//! Runs the job engine on tokio: slots, heartbeats, polling, wake-ups, time limits, graceful stop.

mod background;
mod driver;
mod guards;
mod job_span;
mod options;
mod supervisor;
mod wake;

use std::sync::Arc;

use core_domain::use_case::provisioning::Worker;
use core_http::kernel::Tracer;
use core_http::kernel::metrics::Metrics;
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub use options::WorkerOptions;
pub use wake::WorkerWake;

use driver::{Driver, SharedParts};
use supervisor::Phase;

use crate::background_task::Restarter;

/// A running worker. A part of it that panics is started again. Dropping the handle aborts the worker; other workers
/// can claim its jobs when their leases expire.
#[derive(Debug)]
pub struct WorkerHandle {
    phase: watch::Sender<Phase>,
    task: JoinHandle<()>,
}

impl WorkerHandle {
    /// Stops claiming jobs. Running steps may continue for the time that the options allow. Then their jobs are
    /// released without counting the attempt.
    pub fn stop_claiming(&self) {
        self.phase.send_if_modified(|phase| {
            let is_running = *phase == Phase::Running;
            if is_running {
                *phase = Phase::Stopping;
            }
            is_running
        });
    }

    /// Stops as [`Self::stop_claiming`] does, and waits until all jobs have been released.
    pub async fn stop(mut self) {
        self.stop_claiming();
        // A worker that was aborted has also stopped.
        let _ = (&mut self.task).await;
    }
}

impl Drop for WorkerHandle {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Starts the worker on the current tokio runtime.
#[must_use]
pub fn start_worker(worker: Worker, wake: &WorkerWake, options: WorkerOptions) -> WorkerHandle {
    start_metered_worker(worker, wake, options, &Metrics::new(), None)
}

/// Starts a worker like [`start_worker`], and registers its metrics. With a tracer, attempts have spans.
pub(crate) fn start_metered_worker(
    worker: Worker,
    wake: &WorkerWake,
    options: WorkerOptions,
    metrics: &Metrics,
    tracer: Option<Arc<Tracer>>,
) -> WorkerHandle {
    let shared = SharedParts::new(&worker, &options, metrics, tracer);
    let (phase, wake) = (shared.phase(), wake.clone());
    let start = move || {
        let (worker, wake) = (worker.clone(), wake.clone());
        Driver::new(worker, wake, options, shared.clone()).run()
    };
    let restarter = Restarter::new("worker", metrics);
    let is_stop = |phase: &Phase| *phase != Phase::Running;
    WorkerHandle {
        task: tokio::spawn(restarter.run(phase.subscribe(), is_stop, start)),
        phase,
    }
}

#[cfg(test)]
mod tests;
