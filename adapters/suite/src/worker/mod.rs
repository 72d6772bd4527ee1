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

use driver::Driver;
use supervisor::Phase;

/// A running worker. Dropping the handle aborts it; other workers can claim its jobs when their leases expire.
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
        // A worker that panicked has also stopped.
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
    let (phase, _) = watch::channel(Phase::Running);
    let driver = Driver::new(worker, wake.clone(), options, phase.clone(), metrics);
    let driver = driver.with_tracer(tracer);
    WorkerHandle {
        phase,
        task: tokio::spawn(driver.run()),
    }
}
