//! Runs the job engine on tokio: slots, heartbeats, polling, waking up, cutting off, graceful stop.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use core_domain::kernel::duration_text;
use core_domain::use_case::provisioning::{
    Claimed, StepEnd, StepError, StepFuture, Supervisor, Worker,
};
use futures_util::FutureExt;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::{Notify, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout};

/// How often leases are prolonged.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// Without a heartbeat for this long a step is cut off, well before its lease ends.
const SELF_FENCE: Duration = Duration::from_secs(20);

/// How often waits, leases and deadlines are looked at.
const TIMERS: Duration = Duration::from_secs(1);

/// How often the queue is looked at when nobody calls.
const POLL: Duration = Duration::from_secs(1);

/// How the worker of a process runs.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WorkerOptions {
    /// How many jobs at a time.
    pub slots: usize,
    /// How long steps may go on after a stop was asked for, before they are cut off.
    #[serde(with = "duration_text")]
    pub drain: Duration,
    /// Whether no other process uses the store: jobs that a former process left running are taken back at once.
    #[serde(skip)]
    pub sole_user: bool,
}

impl Default for WorkerOptions {
    fn default() -> Self {
        Self {
            slots: 4,
            drain: Duration::from_secs(25),
            sole_user: true,
        }
    }
}

/// Wakes the worker of this process.
#[derive(Clone, Debug, Default)]
pub struct WorkerWake(Arc<Notify>);

impl WorkerWake {
    /// There may be a job to claim.
    pub fn wake(&self) {
        self.0.notify_one();
    }

    /// Returns when somebody wakes the worker.
    pub(crate) async fn woken(&self) {
        self.0.notified().await;
    }
}

/// A worker that runs until it is stopped. Dropping the handle cuts it off; its jobs come back when their leases end.
#[derive(Debug)]
pub struct WorkerHandle {
    phase: watch::Sender<Phase>,
    task: JoinHandle<()>,
}

impl WorkerHandle {
    /// Takes no more jobs, lets running steps end for as long as the options allow, hands their jobs back, and returns
    /// when all is done. No attempt is counted.
    pub async fn stop(mut self) {
        self.phase.send_replace(Phase::Stopping);
        // A worker that panicked has stopped as well.
        let _ = (&mut self.task).await;
    }
}

impl Drop for WorkerHandle {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Running,
    /// No new step.
    Stopping,
    /// Steps are cut off.
    CutOff,
}

/// Starts the worker on the current tokio runtime.
#[must_use]
pub fn start_worker(worker: Worker, wake: &WorkerWake, options: WorkerOptions) -> WorkerHandle {
    let (phase, seen) = watch::channel(Phase::Running);
    let driver = Driver {
        worker,
        wake: wake.clone(),
        options,
        held: Arc::default(),
        phase: phase.clone(),
        seen,
    };
    WorkerHandle {
        phase,
        task: tokio::spawn(driver.run()),
    }
}

/// The jobs this process holds, and until when it may believe so.
#[derive(Debug, Default)]
struct Held(Mutex<HashMap<Claimed, watch::Sender<Instant>>>);

impl Held {
    fn lock(&self) -> MutexGuard<'_, HashMap<Claimed, watch::Sender<Instant>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Driver {
    worker: Worker,
    wake: WorkerWake,
    options: WorkerOptions,
    held: Arc<Held>,
    phase: watch::Sender<Phase>,
    seen: watch::Receiver<Phase>,
}

impl Driver {
    async fn run(self) {
        let mut background = self.background();
        if self.options.sole_user {
            self.recover().await;
        }
        let mut jobs = JoinSet::new();
        while *self.seen.borrow() == Phase::Running {
            self.fill(&mut jobs).await;
            let mut seen = self.seen.clone();
            tokio::select! {
                _ = jobs.join_next(), if !jobs.is_empty() => {}
                () = self.wake.woken(), if jobs.len() < self.options.slots => {}
                () = tokio::time::sleep(POLL) => {}
                _ = seen.wait_for(|phase| *phase != Phase::Running) => {}
            }
        }
        self.drain(jobs).await;
        background.shutdown().await;
    }

    async fn recover(&self) {
        if let Err(error) = self.worker.recover().await {
            tracing::error!(
                ?error,
                "jobs of a former process could not be taken back yet"
            );
        }
    }

    /// Takes as many jobs as there are free slots.
    async fn fill(&self, jobs: &mut JoinSet<()>) {
        let free = self.options.slots.saturating_sub(jobs.len());
        if free == 0 {
            return;
        }
        let taken_at = Instant::now();
        match self
            .worker
            .claim(u32::try_from(free).unwrap_or(u32::MAX))
            .await
        {
            Ok(claimed) => {
                for job in claimed {
                    self.begin(jobs, job, taken_at);
                }
            }
            Err(error) => tracing::warn!(?error, "no jobs could be taken"),
        }
    }

    fn begin(&self, jobs: &mut JoinSet<()>, job: Claimed, taken_at: Instant) {
        let (until, _) = watch::channel(taken_at + SELF_FENCE);
        self.held.lock().insert(job.clone(), until);
        let (worker, held) = (self.worker.clone(), Arc::clone(&self.held));
        let supervisor = TokioSupervisor {
            held: Arc::clone(&held),
            phase: self.seen.clone(),
        };
        jobs.spawn(async move {
            let run = AssertUnwindSafe(worker.run(&job, &supervisor)).catch_unwind();
            match run.await {
                Ok(Ok(outcome)) => tracing::debug!(job = %job.job_id, ?outcome, "job worked on"),
                Ok(Err(error)) => {
                    tracing::warn!(job = %job.job_id, ?error, "the store failed a job")
                }
                Err(_) => tracing::error!(job = %job.job_id, "the engine panicked"),
            }
            held.lock().remove(&job);
        });
    }

    /// Heartbeats and timers go on until the last job has been handed back.
    fn background(&self) -> JoinSet<()> {
        let mut tasks = JoinSet::new();
        tasks.spawn(heartbeats(self.worker.clone(), Arc::clone(&self.held)));
        tasks.spawn(timers(self.worker.clone()));
        tasks
    }

    async fn drain(&self, mut jobs: JoinSet<()>) {
        let all = async { while jobs.join_next().await.is_some() {} };
        if timeout(self.options.drain, all).await.is_ok() {
            return;
        }
        self.phase.send_replace(Phase::CutOff);
        while jobs.join_next().await.is_some() {}
    }
}

async fn heartbeats(worker: Worker, held: Arc<Held>) {
    let mut ticks = interval(HEARTBEAT);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let jobs: Vec<Claimed> = held.lock().keys().cloned().collect();
        if jobs.is_empty() {
            continue;
        }
        let sent_at = Instant::now();
        match worker.heartbeat(&jobs).await {
            Ok(lost) => {
                let held = held.lock();
                for job in &jobs {
                    let until = if lost.contains(job) {
                        sent_at
                    } else {
                        sent_at + SELF_FENCE
                    };
                    if let Some(sender) = held.get(job) {
                        sender.send_replace(until);
                    }
                }
            }
            Err(error) => tracing::warn!(?error, "leases could not be prolonged"),
        }
    }
}

async fn timers(worker: Worker) {
    let mut ticks = interval(TIMERS);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if let Err(error) = worker.run_timers().await {
            tracing::warn!(?error, "waits, leases and deadlines could not be looked at");
        }
    }
}

/// Limits in time, cuts off what is no longer ours, catches panics.
struct TokioSupervisor {
    held: Arc<Held>,
    phase: watch::Receiver<Phase>,
}

#[async_trait]
impl Supervisor for TokioSupervisor {
    async fn attempt(&self, job: &Claimed, limit: Duration, work: StepFuture<'_>) -> StepEnd {
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

    fn is_stopping(&self) -> bool {
        *self.phase.borrow() != Phase::Running
    }
}

/// Tells the log what the job's readers are not told.
fn log_cause(job: &Claimed, result: &Result<Value, StepError>) {
    let Err(error) = result else { return };
    if let Some(cause) = error.cause() {
        tracing::warn!(job = %job.job_id, %cause, "a step failed");
    }
}

/// Returns when the job may no longer be believed ours; every heartbeat moves that moment.
async fn lease_ends(mut until: watch::Receiver<Instant>) {
    loop {
        let moment = *until.borrow_and_update();
        tokio::select! {
            () = sleep_until(moment) => return,
            changed = until.changed() => if changed.is_err() { return },
        }
    }
}
