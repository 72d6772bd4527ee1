//! Runs the job engine on tokio: slots, heartbeats, polling, waking up, cutting off, graceful stop.

mod background;
mod driver;
mod guards;
mod options;
mod supervisor;
mod wake;

use core_domain::use_case::provisioning::Worker;
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub use options::WorkerOptions;
pub use wake::WorkerWake;

use driver::Driver;
use supervisor::Phase;

/// A worker that runs until it is stopped. Dropping the handle cuts it off; its jobs come back when their leases end.
#[derive(Debug)]
pub struct WorkerHandle {
    phase: watch::Sender<Phase>,
    task: JoinHandle<()>,
}

impl WorkerHandle {
    /// Claims no more jobs from now on. Running steps may end for as long as the options allow; then their jobs are handed
    /// back, and no attempt is counted.
    pub fn stop_claiming(&self) {
        self.phase.send_if_modified(|phase| {
            let is_running = *phase == Phase::Running;
            if is_running {
                *phase = Phase::Stopping;
            }
            is_running
        });
    }

    /// Stops as [`Self::stop_claiming`] does, and returns when all jobs have been handed back.
    pub async fn stop(mut self) {
        self.stop_claiming();
        // A worker that panicked has stopped as well.
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
    let (phase, _) = watch::channel(Phase::Running);
    let driver = Driver::new(worker, wake.clone(), options, phase.clone());
    WorkerHandle {
        phase,
        task: tokio::spawn(driver.run()),
    }
}
