//! The loop of a worker: it takes jobs, begins attempts, and writes what they report.
//!
//! Reports and claims of many jobs are one unit of work. While one is under way, attempts go on; on a store with several
//! writers a second one may be under way beside it, with other jobs of other lanes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use core_domain::kernel::Error;
use core_domain::use_case::provisioning::{
    Claimed, Committed, Finished, HeldJob, LeaseState, Supervisor, Worker,
};
use futures_util::FutureExt;
use tokio::sync::{Notify, watch};
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep_until};

use super::background::{heartbeats, receive_hints, send_hints, timers};
use super::guards::{Questions, guards};
use super::options::WorkerOptions;
use super::supervisor::{Held, Phase, TokioSupervisor, self_fence};
use super::wake::WorkerWake;

/// How long a report waits for those of attempts that were begun together with its own.
const TOGETHER: Duration = Duration::from_millis(1);

/// How the task of a job has ended.
enum Ended {
    /// An attempt is over; this is to be written together with others.
    Finished(Finished),
    /// There is nothing more to do with the job; it can go on after this time, if that is known.
    Done(Claimed, Option<Duration>),
}

/// A unit of work that has ended.
struct Unit {
    reported: Vec<Claimed>,
    /// How many jobs it could take.
    limit: usize,
    /// How many of the reported jobs it was to hand back.
    leaving: usize,
    began: Instant,
    committed: Committed,
}

/// The loop of a worker.
pub(super) struct Driver {
    worker: Worker,
    wake: WorkerWake,
    options: WorkerOptions,
    held: Arc<Held>,
    phase: watch::Sender<Phase>,
    supervisor: Arc<TokioSupervisor>,
    questions: Option<Questions>,
    jobs: JoinSet<Ended>,
    units: JoinSet<Unit>,
    /// Slots that units under way may fill.
    promised: usize,
    /// Jobs that units under way hand back.
    leaving: usize,
    /// How many of the attempts that were begun last have not ended.
    fresh: usize,
    finished: Vec<Finished>,
    /// When the first of them is to be written at the latest.
    write_by: Option<Instant>,
    /// Whether there may be a job to claim.
    may_claim: bool,
    /// When jobs of this process that wait or are to be tried again can go on.
    due: BinaryHeap<Reverse<Instant>>,
    timers: Arc<Notify>,
}

impl Driver {
    pub(super) fn new(
        worker: Worker,
        wake: WorkerWake,
        options: WorkerOptions,
        phase: watch::Sender<Phase>,
    ) -> Self {
        let held = Arc::<Held>::default();
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
            promised: 0,
            leaving: 0,
            fresh: 0,
            finished: Vec::new(),
            write_by: None,
            may_claim: true,
            due: BinaryHeap::new(),
            timers: Arc::default(),
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
                "jobs of a former process could not be taken back yet"
            );
        }
    }

    /// How many units may be under way at once. Where nobody else writes, the store has one writer.
    const fn most_units(&self) -> usize {
        if self.options.sole_user { 1 } else { 2 }
    }

    /// How many jobs a unit reports and takes at most: while it is under way, there are others to work on.
    const fn unit_size(&self) -> usize {
        self.options.slots.div_ceil(self.most_units())
    }

    /// How many jobs can be taken when so many are handed back: slots that are neither in use nor promised.
    fn free_slots(&self, handed_back: usize) -> usize {
        if self.phase() != Phase::Running {
            return 0;
        }
        let held = self.held.lock().len();
        let busy = held.saturating_sub(self.leaving + handed_back) + self.promised;
        self.options.slots.saturating_sub(busy)
    }

    fn should_commit(&self) -> bool {
        if self.units.len() >= self.most_units() {
            return false;
        }
        match self.write_by {
            Some(moment) => {
                let is_full = self.finished.len() >= self.unit_size();
                is_full || self.fresh == 0 || moment <= Instant::now()
            }
            None => self.may_claim && self.free_slots(0) > 0,
        }
    }

    /// Begins a unit of work that writes what has been reported and takes as many jobs as there are free slots.
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
        self.promised += limit;
        self.leaving += leaving;
        let (worker, began) = (self.worker.clone(), Instant::now());
        self.units.spawn(async move {
            Unit {
                committed: commit(&worker, &finished, limit).await,
                reported: finished.into_iter().map(|one| one.claimed).collect(),
                limit,
                leaving,
                began,
            }
        });
    }

    /// Begins or goes on with the jobs of a unit that was written.
    fn take_unit(&mut self, unit: Unit) {
        self.promised = self.promised.saturating_sub(unit.limit);
        self.leaving = self.leaving.saturating_sub(unit.leaving);
        self.fresh = 0;
        for (claimed, settled) in unit.reported.into_iter().zip(unit.committed.settled) {
            match go_on(claimed, settled) {
                Ok(next) => self.begin(next),
                Err(ended) => self.take(ended),
            }
        }
        if let Err(error) = unit.committed.overdue {
            tracing::warn!(?error, "a job could not be stopped at its deadline");
        }
        match unit.committed.taken {
            Ok(taken) => {
                // Where there were enough there may be more.
                self.may_claim |= taken.len() == unit.limit;
                for job in taken {
                    let (until, _) = watch::channel(unit.began + self_fence(&self.worker));
                    self.held.lock().insert(job.claimed.clone(), until);
                    self.begin(job);
                }
            }
            Err(error) => tracing::warn!(?error, "no jobs could be taken"),
        }
    }

    fn begin(&mut self, job: HeldJob) {
        self.fresh += 1;
        let (worker, supervisor) = (self.worker.clone(), Arc::clone(&self.supervisor));
        self.jobs.spawn(async move {
            let claimed = job.claimed.clone();
            let attempts = attempts(&worker, job, supervisor.as_ref());
            let ended = AssertUnwindSafe(attempts).catch_unwind().await;
            ended.unwrap_or_else(|_| {
                tracing::error!(job = %claimed.job_id, "the engine panicked");
                Ended::Done(claimed, None)
            })
        });
    }

    fn take(&mut self, ended: Ended) {
        match ended {
            Ended::Finished(finished) => {
                self.finished.push(finished);
                self.write_by
                    .get_or_insert_with(|| Instant::now() + TOGETHER);
            }
            Ended::Done(claimed, due) => {
                self.held.lock().remove(&claimed);
                self.may_claim = true;
                self.due
                    .extend(due.map(|pause| Reverse(Instant::now() + pause)));
            }
        }
    }

    /// Takes how a task ended, and what else has ended by now; a task that was cut off has nothing to tell.
    fn take_joined(&mut self, first: Result<Ended, JoinError>) {
        let mut joined = Some(first);
        while let Some(ended) = joined {
            self.fresh = self.fresh.saturating_sub(1);
            if let Ok(ended) = ended {
                self.take(ended);
            }
            joined = self.jobs.try_join_next();
        }
    }

    /// Returns when there may be something to write or to take.
    async fn wait(&mut self) {
        let mut phase = self.supervisor.phase.clone();
        let poll = Instant::now() + self.worker.poll_pause();
        let due = self.due.peek().map_or(poll, |Reverse(due)| poll.min(*due));
        let can_write = self.units.len() < self.most_units();
        let write_by = self.write_by.filter(|_| can_write);
        let has_slots = self.held.lock().len() < self.options.slots;
        tokio::select! {
            Some(joined) = self.jobs.join_next() => self.take_joined(joined),
            Some(Ok(unit)) = self.units.join_next() => self.take_unit(unit),
            () = self.wake.woken(), if has_slots => self.may_claim = true,
            () = sleep_until(write_by.unwrap_or(due)), if write_by.is_some() => {}
            () = sleep_until(due) => self.may_claim = true,
            _ = phase.wait_for(|phase| *phase != Phase::Running) => {}
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

    /// Guards, heartbeats and timers go on until the last job has been handed back.
    fn background(&mut self) -> JoinSet<()> {
        let mut tasks = JoinSet::new();
        if let Some(questions) = self.questions.take() {
            tasks.spawn(questions.answer(self.worker.clone()));
        }
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
            while self.write_by.is_some() && self.should_commit() {
                self.start_unit();
            }
            let is_done = self.jobs.is_empty() && self.units.is_empty();
            if is_done && self.finished.is_empty() {
                return;
            }
            let write_by = self.write_by.unwrap_or(end);
            tokio::select! {
                Some(joined) = self.jobs.join_next() => self.take_joined(joined),
                Some(Ok(unit)) = self.units.join_next() => self.take_unit(unit),
                () = sleep_until(write_by), if self.units.is_empty() && self.write_by.is_some() => {}
                () = sleep_until(end), if self.phase() == Phase::Stopping => {
                    self.phase.send_replace(Phase::CutOff);
                }
            }
        }
    }
}

/// Writes what was reported and takes jobs. A panic costs the jobs of the unit an attempt, and the worker nothing.
async fn commit(worker: &Worker, finished: &[Finished], limit: usize) -> Committed {
    let limit = u32::try_from(limit).unwrap_or(u32::MAX);
    let committed = AssertUnwindSafe(worker.commit(finished, limit)).catch_unwind();
    committed.await.unwrap_or_else(|_| {
        let panicked = || Error::Internal("the engine panicked".to_owned());
        Committed {
            settled: finished.iter().map(|_| Err(panicked())).collect(),
            taken: Err(panicked()),
            overdue: Ok(()),
        }
    })
}

/// Works on a job until there is something to write together with others, or nothing more to do. What the job's kind
/// writes of its own is written here, so that others need not wait for it.
async fn attempts(worker: &Worker, mut job: HeldJob, supervisor: &dyn Supervisor) -> Ended {
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
