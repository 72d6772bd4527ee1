//! Runs the job engine on tokio: slots, heartbeats, polling, waking up, cutting off, graceful stop.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use core_domain::kernel::{Error, duration_text};
use core_domain::port::JobHints;
use core_domain::use_case::provisioning::{
    Claimed, Finished, HeldJob, LeaseState, StepEnd, StepError, StepFuture, Supervisor, TimerStats,
    Worker,
};
use futures_util::FutureExt;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::{Notify, watch};
use tokio::task::{JoinError, JoinHandle, JoinSet};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout_at};

/// How often leases are prolonged.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// Without a heartbeat for this long a step is cut off, well before its lease ends.
const SELF_FENCE: Duration = Duration::from_secs(20);

/// How long a report waits for those of attempts that were begun together with its own.
const TOGETHER: Duration = Duration::from_millis(1);

/// The least time between two hints to other processes.
const BETWEEN_HINTS: Duration = Duration::from_millis(20);

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
            // Steps mostly wait for a provider; what a slot costs is a task and now and then a connection.
            slots: 32,
            drain: Duration::from_secs(25),
            sole_user: true,
        }
    }
}

/// Wakes the worker of this process, and those of others if it has been told how.
#[derive(Clone, Debug, Default)]
pub struct WorkerWake(Arc<Wake>);

#[derive(Debug, Default)]
struct Wake {
    here: Notify,
    elsewhere: Notify,
    hints: Option<Arc<dyn JobHints>>,
}

impl WorkerWake {
    /// One that wakes the workers of other processes on the same store as well, and is woken by them.
    #[must_use]
    pub fn with_hints(hints: Arc<dyn JobHints>) -> Self {
        Self(Arc::new(Wake {
            hints: Some(hints),
            ..Wake::default()
        }))
    }

    /// There may be a job to claim.
    pub fn wake(&self) {
        self.0.here.notify_one();
        self.0.elsewhere.notify_one();
    }

    /// Returns when somebody wakes the worker.
    pub(crate) async fn woken(&self) {
        self.0.here.notified().await;
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
        jobs: JoinSet::new(),
        fresh: 0,
        finished: Vec::new(),
        due: BinaryHeap::new(),
        timers: Arc::default(),
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

/// How the task of a job has ended.
enum Ended {
    /// An attempt is over; this is to be written together with others.
    Finished(Finished),
    /// There is nothing more to do with the job; it can go on after this time, if that is known.
    Done(Claimed, Option<Duration>),
}

struct Driver {
    worker: Worker,
    wake: WorkerWake,
    options: WorkerOptions,
    held: Arc<Held>,
    phase: watch::Sender<Phase>,
    seen: watch::Receiver<Phase>,
    jobs: JoinSet<Ended>,
    /// How many of the attempts that the last unit began have not ended.
    fresh: usize,
    finished: Vec<Finished>,
    /// When jobs of this process that wait or are to be tried again can go on.
    due: BinaryHeap<Reverse<Instant>>,
    timers: Arc<Notify>,
}

impl Driver {
    async fn run(mut self) {
        let mut background = self.background();
        if self.options.sole_user {
            self.recover().await;
        }
        while self.phase() == Phase::Running {
            self.commit().await;
            self.wait().await;
            self.gather().await;
        }
        self.drain().await;
        background.shutdown().await;
    }

    fn phase(&self) -> Phase {
        *self.seen.borrow()
    }

    async fn recover(&self) {
        if let Err(error) = self.worker.recover().await {
            tracing::error!(
                ?error,
                "jobs of a former process could not be taken back yet"
            );
        }
    }

    /// How many jobs can be taken: those that are about to be handed back leave their slots.
    fn free_slots(&self) -> usize {
        if self.phase() != Phase::Running {
            return 0;
        }
        let leaving = self.finished.iter().filter(|one| one.leaves()).count();
        let busy = self.held.lock().len().saturating_sub(leaving);
        self.options.slots.saturating_sub(busy)
    }

    /// Writes what has been reported, takes as many jobs as there are free slots, and begins or goes on with all of
    /// them: one unit of work, as a rule.
    async fn commit(&mut self) {
        let free = self.free_slots();
        if free == 0 && self.finished.is_empty() {
            return;
        }
        let finished = std::mem::take(&mut self.finished);
        let taken_at = Instant::now();
        let limit = u32::try_from(free).unwrap_or(u32::MAX);
        let committed = self.worker.commit(&finished, limit).await;
        self.fresh = 0;
        for (settled, finished) in committed.settled.into_iter().zip(finished) {
            match go_on(finished.claimed, settled) {
                Ok(next) => self.begin(next),
                Err(ended) => self.take(ended),
            }
        }
        match committed.taken {
            Ok(taken) => {
                for job in taken {
                    let (until, _) = watch::channel(taken_at + SELF_FENCE);
                    self.held.lock().insert(job.claimed.clone(), until);
                    self.begin(job);
                }
            }
            Err(error) => tracing::warn!(?error, "no jobs could be taken"),
        }
    }

    fn begin(&mut self, job: HeldJob) {
        self.fresh += 1;
        let worker = self.worker.clone();
        let supervisor = TokioSupervisor {
            held: Arc::clone(&self.held),
            phase: self.seen.clone(),
        };
        self.jobs.spawn(async move {
            let claimed = job.claimed.clone();
            let attempts = AssertUnwindSafe(attempts(&worker, job, &supervisor)).catch_unwind();
            attempts.await.unwrap_or_else(|_| {
                tracing::error!(job = %claimed.job_id, "the engine panicked");
                Ended::Done(claimed, None)
            })
        });
    }

    fn take(&mut self, ended: Ended) {
        match ended {
            Ended::Finished(finished) => self.finished.push(finished),
            Ended::Done(claimed, due) => {
                self.held.lock().remove(&claimed);
                self.due
                    .extend(due.map(|pause| Reverse(Instant::now() + pause)));
            }
        }
    }

    /// Takes how a task ended; a task that was cut off has nothing to tell.
    fn take_joined(&mut self, joined: Result<Ended, JoinError>) {
        self.fresh = self.fresh.saturating_sub(1);
        if let Ok(ended) = joined {
            self.take(ended);
        }
    }

    /// Returns when there may be something to write or to take.
    async fn wait(&mut self) {
        if !self.finished.is_empty() {
            return;
        }
        let mut seen = self.seen.clone();
        let poll = Instant::now() + self.worker.poll_pause();
        let due = self.due.peek().map_or(poll, |Reverse(due)| poll.min(*due));
        tokio::select! {
            Some(joined) = self.jobs.join_next() => self.take_joined(joined),
            () = self.wake.woken(), if self.held.lock().len() < self.options.slots => {}
            () = sleep_until(due) => {}
            _ = seen.wait_for(|phase| *phase != Phase::Running) => {}
        }
        self.forget_due();
    }

    fn forget_due(&mut self) {
        let now = Instant::now();
        let mut some = false;
        while self.due.peek().is_some_and(|Reverse(due)| *due <= now) {
            self.due.pop();
            some = true;
        }
        if some {
            self.timers.notify_one();
        }
    }

    /// Takes what else has ended. Attempts that were begun together often end together: those are given a moment, so that
    /// one unit writes them all.
    async fn gather(&mut self) {
        if self.finished.is_empty() {
            return;
        }
        let moment = Instant::now() + TOGETHER;
        loop {
            while let Some(joined) = self.jobs.try_join_next() {
                self.take_joined(joined);
            }
            if self.fresh == 0 {
                return;
            }
            match timeout_at(moment, self.jobs.join_next()).await {
                Ok(Some(joined)) => self.take_joined(joined),
                Ok(None) | Err(_) => return,
            }
        }
    }

    /// Heartbeats and timers go on until the last job has been handed back.
    fn background(&self) -> JoinSet<()> {
        let mut tasks = JoinSet::new();
        tasks.spawn(heartbeats(self.worker.clone(), Arc::clone(&self.held)));
        let (worker, wake) = (self.worker.clone(), self.wake.clone());
        tasks.spawn(timers(worker, wake, Arc::clone(&self.timers)));
        if let Some(hints) = &self.wake.0.hints {
            tasks.spawn(send_hints(self.wake.clone(), Arc::clone(hints)));
            tasks.spawn(receive_hints(self.wake.clone(), Arc::clone(hints)));
        }
        tasks
    }

    /// Lets steps that run end, and then cuts them off; every job is handed back.
    async fn drain(&mut self) {
        let end = Instant::now() + self.options.drain;
        loop {
            self.gather().await;
            self.commit().await;
            if self.jobs.is_empty() {
                return;
            }
            tokio::select! {
                Some(joined) = self.jobs.join_next() => self.take_joined(joined),
                () = sleep_until(end), if self.phase() == Phase::Stopping => {
                    self.phase.send_replace(Phase::CutOff);
                }
            }
        }
    }
}

/// Works on a job until there is something to write together with others, or nothing more to do. What the job's kind
/// writes of its own is written here, so that others need not wait for it.
async fn attempts(worker: &Worker, mut job: HeldJob, supervisor: &TokioSupervisor) -> Ended {
    loop {
        let claimed = job.claimed.clone();
        let Some(finished) = worker.attempt(&job, supervisor).await else {
            return Ended::Done(claimed, None);
        };
        if finished.in_batch() {
            return Ended::Finished(finished);
        }
        match go_on(claimed, worker.settle(&finished).await) {
            Ok(next) => job = next,
            Err(ended) => return ended,
        }
    }
}

/// The job to go on with, or how the work on it has ended.
fn go_on(claimed: Claimed, settled: Result<LeaseState, Error>) -> Result<HeldJob, Ended> {
    let state = match settled {
        Ok(state) => state,
        Err(error) => {
            tracing::warn!(job = %claimed.job_id, ?error, "the store failed a job");
            return Err(Ended::Done(claimed, None));
        }
    };
    let due = state.goes_on_after();
    state.still_held().map_err(|outcome| {
        tracing::debug!(job = %claimed.job_id, ?outcome, "job worked on");
        Ended::Done(claimed, due)
    })
}

/// Tells other processes that a job is ready, at most once in a while: what follows a hint is part of it.
async fn send_hints(wake: WorkerWake, hints: Arc<dyn JobHints>) {
    loop {
        wake.0.elsewhere.notified().await;
        hints.notify().await;
        tokio::time::sleep(BETWEEN_HINTS).await;
    }
}

async fn receive_hints(wake: WorkerWake, hints: Arc<dyn JobHints>) {
    loop {
        hints.hinted().await;
        wake.0.here.notify_one();
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

/// Looks at waits, leases and deadlines now and then, and when it is told that something is due.
async fn timers(worker: Worker, wake: WorkerWake, due: Arc<Notify>) {
    loop {
        match worker.run_timers().await {
            Ok(done) if done == TimerStats::default() => {}
            Ok(_) => wake.wake(),
            Err(error) => {
                tracing::warn!(?error, "waits, leases and deadlines could not be looked at");
            }
        }
        tokio::select! {
            () = due.notified() => {}
            () = tokio::time::sleep(worker.poll_pause()) => {}
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
