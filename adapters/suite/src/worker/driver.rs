//! The loop of a worker: it claims jobs, starts attempts, and commits their outcomes.
//!
//! The outcomes and claims of many jobs are one unit of work. Attempts continue while it is committed. On a store with
//! several writers a second unit, with other jobs of other lanes, may be committed at the same time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use core_domain::kernel::Error;
use core_domain::use_case::provisioning::{
    AttemptReport, Claim, CommitResult, HeldJob, LeaseState, Supervisor, Worker,
};
use core_http::kernel::Tracer;
use core_http::kernel::metrics::Metrics;
use futures_util::FutureExt;
use tokio::sync::{Notify, watch};
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep_until};

use super::background::{heartbeats, receive_hints, send_hints, timers};
use super::guards::{Questions, guards};
use super::job_span;
use super::options::WorkerOptions;
use super::supervisor::{HeldJobs, Phase, TokioSupervisor, max_time_without_heartbeat};
use super::wake::WorkerWake;
use crate::background_task::Restarter;
use crate::metrics::JobMetrics;

/// How long an outcome waits for the outcomes of attempts that started together with it.
const MAX_BATCH_DELAY: Duration = Duration::from_millis(1);

/// How the task of a job has ended.
enum AttemptEnd {
    /// An attempt has ended. Its outcome is committed together with others.
    Finished(AttemptReport),
    /// The task has nothing more to do for the job. The duration is the time after which the job can continue, if
    /// known.
    Done(Claim, Option<Duration>),
}

/// A unit of work that has ended.
struct CommittedUnit {
    reported: Vec<Claim>,
    /// Maximum number of jobs that the unit could claim.
    limit: usize,
    /// The number of reported jobs that the unit releases.
    releasing: usize,
    began: Instant,
    committed: CommitResult,
}

/// The parts of a worker that outlast a restart of its loop.
#[derive(Clone)]
pub(super) struct SharedParts {
    held: Arc<HeldJobs>,
    phase: watch::Sender<Phase>,
    metrics: Arc<JobMetrics>,
    restarters: Restarters,
    tracer: Option<Arc<Tracer>>,
}

/// The restarters of the background tasks of a worker. They register their metrics before the tasks start.
#[derive(Clone)]
struct Restarters {
    guards: Restarter,
    heartbeats: Restarter,
    timers: Restarter,
    hints_sender: Restarter,
    hints_receiver: Restarter,
}

impl Restarters {
    /// Creates the restarters. The pause is so short that a panic of the heartbeats costs no lease: they follow each other
    /// after a third of it, and a step is aborted after two thirds.
    fn new(metrics: &Metrics, lease: Duration) -> Self {
        let of = |task| Restarter::new(task, metrics).with_max_pause(lease / 6);
        Self {
            guards: of("worker-guards"),
            heartbeats: of("worker-heartbeats"),
            timers: of("worker-timers"),
            hints_sender: of("worker-hints-sender"),
            hints_receiver: of("worker-hints-receiver"),
        }
    }
}

impl SharedParts {
    /// Creates the parts, and registers the metrics of a worker. With a tracer, attempts have spans.
    pub(super) fn new(
        worker: &Worker,
        options: &WorkerOptions,
        registry: &Metrics,
        tracer: Option<Arc<Tracer>>,
    ) -> Self {
        let held = Arc::<HeldJobs>::default();
        let holds = Arc::clone(&held);
        JobMetrics::register_slots(registry, options.slots, move || holds.lock().len());
        Self {
            held,
            phase: watch::channel(Phase::Running).0,
            metrics: Arc::new(JobMetrics::new(registry, worker.kinds())),
            restarters: Restarters::new(registry, worker.lease()),
            tracer,
        }
    }

    /// Returns the sender of the phase.
    pub(super) fn phase(&self) -> watch::Sender<Phase> {
        self.phase.clone()
    }
}

/// The loop of a worker.
pub(super) struct Driver {
    worker: Worker,
    wake: WorkerWake,
    options: WorkerOptions,
    held: Arc<HeldJobs>,
    phase: watch::Sender<Phase>,
    supervisor: Arc<TokioSupervisor>,
    questions: Option<Questions>,
    jobs: JoinSet<AttemptEnd>,
    units: JoinSet<CommittedUnit>,
    /// Slots reserved for the jobs that units in progress may claim.
    reserved_slots: usize,
    /// The number of jobs that units in progress release.
    leaving: usize,
    /// The number of attempts started by the last unit that have not ended yet.
    pending_starts: usize,
    finished: Vec<AttemptReport>,
    /// When the first outcome must be committed at the latest.
    write_by: Option<Instant>,
    /// True if there may be a job to claim.
    may_claim: bool,
    /// When jobs of this process that wait or are retried can continue.
    due: BinaryHeap<Reverse<Instant>>,
    timers: Arc<Notify>,
    metrics: Arc<JobMetrics>,
    restarters: Restarters,
    tracer: Option<Arc<Tracer>>,
}

impl Driver {
    /// Creates a loop without jobs. The jobs of an earlier loop of this worker are claimed again when their leases
    /// expire, or by the recovery if no other process uses the store.
    pub(super) fn new(
        worker: Worker,
        wake: WorkerWake,
        options: WorkerOptions,
        shared: SharedParts,
    ) -> Self {
        let SharedParts {
            held,
            phase,
            metrics,
            restarters,
            tracer,
        } = shared;
        held.lock().clear();
        let (guards, questions) = match options.sole_user {
            true => (None, None),
            false => Some(guards()).unzip(),
        };
        let supervisor = TokioSupervisor {
            held: Arc::clone(&held),
            phase: phase.subscribe(),
            guards,
        };
        Self {
            worker,
            wake,
            options,
            held,
            phase,
            supervisor: Arc::new(supervisor),
            questions,
            jobs: JoinSet::new(),
            units: JoinSet::new(),
            reserved_slots: 0,
            leaving: 0,
            pending_starts: 0,
            finished: Vec::new(),
            write_by: None,
            may_claim: true,
            due: BinaryHeap::new(),
            timers: Arc::default(),
            metrics,
            restarters,
            tracer,
        }
    }

    pub(super) async fn run(mut self) {
        let mut background = self.background();
        if self.options.sole_user {
            self.recover().await;
        }
        while self.phase() == Phase::Running {
            while self.should_commit() {
                self.start_unit();
            }
            self.wait().await;
        }
        self.drain().await;
        background.shutdown().await;
    }

    fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    async fn recover(&self) {
        if let Err(error) = self.worker.recover().await {
            tracing::error!(
                ?error,
                "jobs of a previous process could not be recovered yet"
            );
        }
    }

    /// Maximum number of concurrent units. It is 1 if no other process uses the store, because such a store has one
    /// writer.
    const fn max_units(&self) -> usize {
        if self.options.sole_user { 1 } else { 2 }
    }

    /// Maximum number of jobs that a unit commits and claims. While it is committed, the other jobs can be worked on.
    const fn unit_size(&self) -> usize {
        self.options.slots.div_ceil(self.max_units())
    }

    /// Returns how many jobs can be claimed if `handed_back` jobs are released: slots that are neither in use nor
    /// reserved.
    fn free_slots(&self, handed_back: usize) -> usize {
        if self.phase() != Phase::Running {
            return 0;
        }
        let held = self.held.lock().len();
        let busy = held.saturating_sub(self.leaving + handed_back) + self.reserved_slots;
        self.options.slots.saturating_sub(busy)
    }

    fn should_commit(&self) -> bool {
        if self.units.len() >= self.max_units() {
            return false;
        }
        match self.write_by {
            Some(moment) => {
                let is_full = self.finished.len() >= self.unit_size();
                is_full || self.pending_starts == 0 || moment <= Instant::now()
            }
            None => self.may_claim && self.free_slots(0) > 0,
        }
    }

    /// Starts a unit of work that commits the reported outcomes and claims as many jobs as there are free slots.
    fn start_unit(&mut self) {
        let size = self.unit_size();
        let rest = self.finished.split_off(size.min(self.finished.len()));
        let finished = std::mem::replace(&mut self.finished, rest);
        if self.finished.is_empty() {
            self.write_by = None;
        }
        let leaving = finished.iter().filter(|one| one.leaves()).count();
        let limit = self.free_slots(leaving).min(size);
        self.may_claim = false;
        self.reserved_slots += limit;
        self.leaving += leaving;
        let (worker, began) = (self.worker.clone(), Instant::now());
        self.units.spawn(async move {
            CommittedUnit {
                committed: commit(&worker, &finished, limit).await,
                reported: finished.into_iter().map(|one| one.claimed).collect(),
                limit,
                releasing: leaving,
                began,
            }
        });
    }

    /// Starts or continues the jobs of a committed unit.
    fn handle_unit(&mut self, unit: CommittedUnit) {
        self.reserved_slots = self.reserved_slots.saturating_sub(unit.limit);
        self.leaving = self.leaving.saturating_sub(unit.releasing);
        self.pending_starts = 0;
        for (claimed, settled) in unit.reported.into_iter().zip(unit.committed.results) {
            match next_or_end(claimed, settled, &self.metrics) {
                Ok(next) => self.spawn_attempts(next),
                Err(ended) => self.handle_ended(ended),
            }
        }
        if let Err(error) = unit.committed.overdue {
            tracing::warn!(?error, "a job could not be failed at its deadline");
        }
        match unit.committed.claimed {
            Ok(taken) => {
                // If the limit was reached, there may be more jobs.
                self.may_claim |= taken.len() == unit.limit;
                for job in taken {
                    self.metrics.count_claim(job.kind());
                    let (until, _) =
                        watch::channel(unit.began + max_time_without_heartbeat(&self.worker));
                    self.held.lock().insert(job.claimed.clone(), until);
                    self.spawn_attempts(job);
                }
            }
            Err(error) => tracing::warn!(?error, "no jobs could be claimed"),
        }
    }

    fn spawn_attempts(&mut self, job: HeldJob) {
        self.pending_starts += 1;
        let (worker, supervisor) = (self.worker.clone(), Arc::clone(&self.supervisor));
        let metrics = Arc::clone(&self.metrics);
        let tracer = self.tracer.clone();
        self.jobs.spawn(async move {
            let claimed = job.claimed.clone();
            let attempts = attempts(&worker, job, supervisor.as_ref(), &metrics, tracer.as_ref());
            let ended = AssertUnwindSafe(attempts).catch_unwind().await;
            ended.unwrap_or_else(|_| {
                tracing::error!(job = %claimed.job_id, "the engine panicked");
                AttemptEnd::Done(claimed, None)
            })
        });
    }

    fn handle_ended(&mut self, ended: AttemptEnd) {
        match ended {
            AttemptEnd::Finished(finished) => {
                self.finished.push(finished);
                self.write_by
                    .get_or_insert_with(|| Instant::now() + MAX_BATCH_DELAY);
            }
            AttemptEnd::Done(claimed, due) => {
                self.held.lock().remove(&claimed);
                self.may_claim = true;
                self.due
                    .extend(due.map(|pause| Reverse(Instant::now() + pause)));
            }
        }
    }

    /// Processes the end of a task, and of all other tasks that have ended by now. An aborted task has no result.
    fn handle_joined(&mut self, first: Result<AttemptEnd, JoinError>) {
        let mut joined = Some(first);
        while let Some(ended) = joined {
            self.pending_starts = self.pending_starts.saturating_sub(1);
            if let Ok(ended) = ended {
                self.handle_ended(ended);
            }
            joined = self.jobs.try_join_next();
        }
    }

    /// Waits until there may be an outcome to commit or a job to claim.
    async fn wait(&mut self) {
        let mut phase = self.supervisor.phase.clone();
        let poll = Instant::now() + self.worker.poll_pause();
        let due = self.due.peek().map_or(poll, |Reverse(due)| poll.min(*due));
        let can_write = self.units.len() < self.max_units();
        let write_by = self.write_by.filter(|_| can_write);
        let has_slots = self.held.lock().len() < self.options.slots;
        tokio::select! {
            Some(joined) = self.jobs.join_next() => self.handle_joined(joined),
            Some(Ok(unit)) = self.units.join_next() => self.handle_unit(unit),
            () = self.wake.wait(), if has_slots => self.may_claim = true,
            () = sleep_until(write_by.unwrap_or(due)), if write_by.is_some() => {}
            () = sleep_until(due) => self.may_claim = true,
            _ = phase.wait_for(|phase| *phase != Phase::Running) => {}
        }
        self.remove_due();
    }

    fn remove_due(&mut self) {
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

    /// Starts the background tasks. Guards, heartbeats and timers run until the last job has been released.
    fn background(&mut self) -> JoinSet<()> {
        let mut tasks = JoinSet::new();
        let restarters = self.restarters.clone();
        if let Some(questions) = self.questions.take() {
            let worker = self.worker.clone();
            self.spawn_background(&mut tasks, restarters.guards, move || {
                questions.clone().answer(worker.clone())
            });
        }
        let (worker, held) = (self.worker.clone(), Arc::clone(&self.held));
        let metrics = Arc::clone(&self.metrics);
        self.spawn_background(&mut tasks, restarters.heartbeats, move || {
            heartbeats(worker.clone(), Arc::clone(&held), Arc::clone(&metrics))
        });
        let (worker, wake) = (self.worker.clone(), self.wake.clone());
        let (due, metrics) = (Arc::clone(&self.timers), Arc::clone(&self.metrics));
        self.spawn_background(&mut tasks, restarters.timers, move || {
            timers(
                worker.clone(),
                wake.clone(),
                Arc::clone(&due),
                Arc::clone(&metrics),
            )
        });
        if let Some(hints) = &self.wake.0.hints {
            let (wake, channel) = (self.wake.clone(), Arc::clone(hints));
            self.spawn_background(&mut tasks, restarters.hints_sender, move || {
                send_hints(wake.clone(), Arc::clone(&channel))
            });
            let (wake, channel) = (self.wake.clone(), Arc::clone(hints));
            self.spawn_background(&mut tasks, restarters.hints_receiver, move || {
                receive_hints(wake.clone(), Arc::clone(&channel))
            });
        }
        tasks
    }

    /// Starts a background task that is started again if it panics.
    fn spawn_background<F>(
        &self,
        tasks: &mut JoinSet<()>,
        restarter: Restarter,
        start: impl FnMut() -> F + Send + 'static,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        // The end of the loop aborts the task, whatever its phase is.
        tasks.spawn(restarter.run(self.phase.subscribe(), |_| false, start));
    }

    /// Waits for running steps until the drain time has passed, and then aborts them. Every job is released.
    async fn drain(&mut self) {
        let end = Instant::now() + self.options.drain;
        loop {
            while self.write_by.is_some() && self.should_commit() {
                self.start_unit();
            }
            let is_done = self.jobs.is_empty() && self.units.is_empty();
            if is_done && self.finished.is_empty() {
                return;
            }
            let write_by = self.write_by.unwrap_or(end);
            tokio::select! {
                Some(joined) = self.jobs.join_next() => self.handle_joined(joined),
                Some(Ok(unit)) = self.units.join_next() => self.handle_unit(unit),
                () = sleep_until(write_by), if self.units.is_empty() && self.write_by.is_some() => {}
                () = sleep_until(end), if self.phase() == Phase::Stopping => {
                    self.phase.send_replace(Phase::CutOff);
                }
            }
        }
    }
}

/// Commits outcomes and claims jobs. A panic costs each job of the unit an attempt, but does not stop the worker.
async fn commit(worker: &Worker, finished: &[AttemptReport], limit: usize) -> CommitResult {
    let limit = u32::try_from(limit).unwrap_or(u32::MAX);
    let committed = AssertUnwindSafe(worker.commit(finished, limit)).catch_unwind();
    committed.await.unwrap_or_else(|_| {
        let panicked = || Error::Internal("the engine panicked".to_owned());
        CommitResult {
            results: finished.iter().map(|_| Err(panicked())).collect(),
            claimed: Err(panicked()),
            overdue: Ok(()),
        }
    })
}

/// Works on a job until an outcome can be committed together with others, or until the work ends. An outcome for which
/// the job kind writes its own records is committed here, so that it does not delay others.
async fn attempts(
    worker: &Worker,
    mut job: HeldJob,
    supervisor: &dyn Supervisor,
    metrics: &JobMetrics,
    tracer: Option<&Arc<Tracer>>,
) -> AttemptEnd {
    loop {
        let (claimed, began) = (job.claimed.clone(), Instant::now());
        let span = job_span::start(tracer, &job);
        let finished = worker.attempt(&job, supervisor).await;
        job_span::end(span, finished.as_ref());
        metrics.record_step(job.kind(), began.elapsed());
        let Some(finished) = finished else {
            metrics.count_lost_lease();
            return AttemptEnd::Done(claimed, None);
        };
        if finished.in_batch() {
            return AttemptEnd::Finished(finished);
        }
        let reported = worker.report_attempt(&finished).await;
        match next_or_end(claimed, reported, metrics) {
            Ok(next) => job = next,
            Err(ended) => return ended,
        }
    }
}

/// Returns the job to continue with, or how the work on it has ended.
fn next_or_end(
    claimed: Claim,
    settled: Result<LeaseState, Error>,
    metrics: &JobMetrics,
) -> Result<HeldJob, AttemptEnd> {
    let state = match settled {
        Ok(state) => state,
        Err(error) => {
            tracing::warn!(job = %claimed.job_id, ?error, "the store failed while a job's outcome was committed");
            return Err(AttemptEnd::Done(claimed, None));
        }
    };
    metrics.count_state(&state);
    let due = state.resume_delay();
    state.into_held().map_err(|outcome| {
        tracing::debug!(job = %claimed.job_id, ?outcome, "the work on a job has ended");
        AttemptEnd::Done(claimed, due)
    })
}
