//! Supervises a step: its time limit, the lease of its job, and the stop of the process.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use core_domain::kernel::Result;
use core_domain::use_case::provisioning::{
    Claim, StepEnd, StepError, StepFuture, Supervisor, Worker,
};
use futures_util::FutureExt;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::guards::Guards;

/// Returns how long a step may run without a heartbeat before it is aborted: two thirds of the lease.
pub(super) fn max_time_without_heartbeat(worker: &Worker) -> Duration {
    worker.lease() * 2 / 3
}

/// The phases of a worker's stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    Running,
    /// No new step is started.
    Stopping,
    /// Running steps are aborted.
    CutOff,
}

/// The jobs that this process holds, and the time until which it can rely on each lease.
#[derive(Debug, Default)]
pub(super) struct HeldJobs(Mutex<HashMap<Claim, watch::Sender<Instant>>>);

impl HeldJobs {
    pub(super) fn lock(&self) -> MutexGuard<'_, HashMap<Claim, watch::Sender<Instant>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs steps with a time limit, aborts them when the lease is lost, and catches panics.
pub(super) struct TokioSupervisor {
    pub(super) held: Arc<HeldJobs>,
    pub(super) phase: watch::Receiver<Phase>,
    /// Batches the lease checks where a read costs a round trip; with `None` each check reads the store directly.
    pub(super) guards: Option<Guards>,
}

#[async_trait]
impl Supervisor for TokioSupervisor {
    async fn attempt(&self, job: &Claim, limit: Duration, work: StepFuture<'_>) -> StepEnd {
        let Some(until) = self.held.lock().get(job).map(watch::Sender::subscribe) else {
            return StepEnd::LeaseLost;
        };
        let mut phase = self.phase.clone();
        tokio::select! {
            biased;
            ended = AssertUnwindSafe(work).catch_unwind() => match ended {
                Ok(result) => {
                    log_cause(job, &result);
                    StepEnd::Finished(result)
                }
                Err(_) => StepEnd::Panicked,
            },
            () = lease_ends(until) => StepEnd::LeaseLost,
            _ = phase.wait_for(|phase| *phase == Phase::CutOff) => StepEnd::Stopping,
            () = tokio::time::sleep(limit) => StepEnd::TimedOut,
        }
    }

    async fn is_held(&self, worker: &Worker, job: &Claim) -> Result<bool> {
        match &self.guards {
            Some(guards) => guards.is_held(job).await,
            None => worker.is_held(job).await,
        }
    }

    fn is_stopping(&self) -> bool {
        *self.phase.borrow() != Phase::Running
    }
}

/// Logs the cause of a failed step, which is not shown in the job.
fn log_cause(job: &Claim, result: &Result<Value, StepError>) {
    let Err(error) = result else { return };
    if let Some(cause) = error.cause() {
        tracing::warn!(job = %job.job_id, %cause, "a step failed");
    }
}

/// Waits until the job's lease can no longer be relied on. Every heartbeat moves that time.
async fn lease_ends(mut until: watch::Receiver<Instant>) {
    loop {
        let moment = *until.borrow_and_update();
        tokio::select! {
            () = sleep_until(moment) => return,
            changed = until.changed() => if changed.is_err() { return },
        }
    }
}
