//! The engine: takes a job and works on its steps until the job is no longer its own.
//!
//! It needs no runtime. What only a runtime can do (time limits, cutting off, catching a panic) is asked of a
//! [`Supervisor`].

use std::fmt::Debug;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;

use super::attempt::Finished;
use super::batch::WRITE_TRIES;
use super::claim::{Claimed, HeldJob};
use super::kinds::Kinds;
use super::report::{LeaseHolder, LeaseState};
use super::step_error::StepError;
use super::timers::TimerStats;
use super::{claim, report, timers};
use crate::access::unowned;
use crate::kernel::{Context, Entropy, Error, Result, StoreError, Stored, secret_token};
use crate::port::{Blobs, Infrastructure, Mode, Store, UnitOfWork, transact, transact_in};
use crate::provisioning::{Actor, Job, JobQuery, JobStatus, LEASE, Report, Trigger};

/// How often the queue is to be looked at when nobody calls.
const POLL: Duration = Duration::from_secs(1);

impl Worker {
    /// Takes up to `limit` jobs, each with the intent to work on its first step.
    ///
    /// # Errors
    /// When the store failed.
    pub async fn claim(&self, limit: u32) -> Result<Vec<Claimed>> {
        let taken = self.commit(&[], limit).await.taken?;
        Ok(taken.into_iter().map(|held| held.claimed).collect())
    }

    /// Prolongs leases; answers those that are lost.
    ///
    /// # Errors
    /// When the store failed.
    pub async fn heartbeat(&self, held: &[Claimed]) -> Result<Vec<Claimed>> {
        transact_in(Mode::ReadCommitted, self.store.as_ref(), |uow, _| {
            Box::pin(claim::heartbeat(uow, self.owner(), self.lease, held))
        })
        .await
    }

    /// Tells whether the job still runs under the fence it was claimed with, by a read of the store that begins after the
    /// call.
    ///
    /// # Errors
    /// When the store failed.
    pub async fn is_held(&self, job: &Claimed) -> Result<bool> {
        let mut uow = self.store.begin(Mode::Auto).await?;
        claim::is_held(uow.as_mut(), job).await
    }

    /// As [`Worker::is_held`] of each of these jobs, by one read.
    ///
    /// # Errors
    /// When the store failed.
    pub async fn are_held(&self, jobs: &[Claimed]) -> Result<Vec<bool>> {
        let mut uow = self.store.begin(Mode::Auto).await?;
        claim::are_held(uow.as_mut(), jobs).await
    }

    /// How long to wait before looking at the queue when nobody calls: a second, give or take a fifth, so that processes
    /// do not come in step.
    #[must_use]
    pub fn poll_pause(&self) -> Duration {
        let mut random = [0; 1];
        self.cx.entropy.fill(&mut random);
        POLL * 4 / 5 + POLL * 2 / 5 * u32::from(random[0]) / 255
    }

    /// Wakes what has waited long enough, takes back what a vanished worker held, stops what is overdue.
    ///
    /// # Errors
    /// When the store failed; what was done before stays done.
    pub async fn run_timers(&self) -> Result<TimerStats> {
        timers::run_timers(&self.cx, self.store.as_ref(), &self.kinds).await
    }

    /// How long to wait before the timers are run again when nobody calls: until something is due, and at most as long as
    /// [`Worker::poll_pause`].
    pub async fn timer_pause(&self) -> Duration {
        let poll = self.poll_pause();
        // Without an answer of the store it is looked at again later.
        let next = timers::next_due(self.store.as_ref(), poll).await;
        next.ok().flatten().unwrap_or(poll)
    }

    /// Takes back all running jobs of a store that only this process uses; answers how many.
    ///
    /// # Errors
    /// When the store failed.
    pub async fn recover(&self) -> Result<usize> {
        timers::recover(&self.cx, self.store.as_ref(), &self.kinds).await
    }

    /// Takes one job, if there is one, and works on it until it leaves `RUNNING`.
    ///
    /// # Errors
    /// When the store failed; the job is taken back when its lease ends.
    pub async fn run_one(&self, supervisor: &dyn Supervisor) -> Result<Outcome> {
        match self.commit(&[], 1).await.taken?.pop() {
            Some(held) => self.run_held(held, supervisor).await,
            None => Ok(Outcome::Idle),
        }
    }

    /// Works on a job it has taken, until it leaves `RUNNING`.
    ///
    /// # Errors
    /// When the store failed; the job is taken back when its lease ends.
    pub async fn run(&self, claimed: &Claimed, supervisor: &dyn Supervisor) -> Result<Outcome> {
        match self.read(claimed).await? {
            Some(held) => self.run_held(held, supervisor).await,
            None => Ok(Outcome::LeaseLost),
        }
    }

    async fn run_held(&self, mut held: HeldJob, supervisor: &dyn Supervisor) -> Result<Outcome> {
        loop {
            let Some(finished) = self.attempt(&held, supervisor).await else {
                return Ok(Outcome::LeaseLost);
            };
            let state = if finished.in_batch() {
                let committed = self.commit(std::slice::from_ref(&finished), 0).await;
                committed.settled.into_iter().next()
            } else {
                Some(self.settle(&finished).await)
            };
            match state.unwrap_or(Ok(LeaseState::Lost))?.still_held() {
                Ok(next) => held = next,
                Err(outcome) => return Ok(outcome),
            }
        }
    }

    async fn read(&self, claimed: &Claimed) -> Result<Option<HeldJob>> {
        let mut uow = self.store.begin(Mode::Auto).await?;
        let job = unowned::<Job>(uow.as_mut()).find(&claimed.job_id).await?;
        let is_held = |job: &Job| job.status == JobStatus::Running && job.fence == claimed.fence;
        Ok(job.filter(|job| is_held(job)).map(HeldJob::new))
    }

    /// Writes what was reported of a job in a unit of its own. A refusal of the domain is a failure of the step.
    ///
    /// # Errors
    /// When the store failed; the job is taken back when its lease ends.
    pub async fn settle(&self, finished: &Finished) -> Result<LeaseState> {
        let (claimed, found) = (&finished.claimed, finished.found.as_ref());
        let error = match self.write(claimed, &finished.reports, found).await {
            Err(Error::Store(error)) => return Err(error.into()),
            Err(refusal) => refusal,
            written => return written,
        };
        match report::report_of(error.into()) {
            Some(failure) => self.report(claimed, failure).await,
            None => Ok(LeaseState::Lost),
        }
    }

    /// One write of the holder of a job, with all that follows from it. When the store does not say whether it happened,
    /// it is repeated: the fence makes the second one find the first. So is one that met conflicts alone, for a job that
    /// is let go costs an attempt.
    ///
    /// # Errors
    /// When the report is about another step than the current one, the domain refused an output, or the store failed.
    pub async fn report(&self, claimed: &Claimed, report: Report) -> Result<LeaseState> {
        let report = Trigger::Work(claimed.fence, report);
        self.write(claimed, std::slice::from_ref(&report), None)
            .await
    }

    async fn write(
        &self,
        claimed: &Claimed,
        reports: &[Trigger],
        found: Option<&Value>,
    ) -> Result<LeaseState> {
        let holder = LeaseHolder {
            actor: &self.actor,
            kinds: &self.kinds,
            claimed,
        };
        let mut tries = 0;
        loop {
            tries += 1;
            let outcome = transact(self.store.as_ref(), |uow, _| {
                Box::pin(report::report(&self.cx, uow, holder, reports, found))
            })
            .await;
            match outcome {
                Err(Error::Store(
                    StoreError::Unavailable(_)
                    | StoreError::Retry(_)
                    | StoreError::CommitUnknown(_)
                    | StoreError::Backend(_),
                )) if tries < WRITE_TRIES => {}
                outcome => return outcome,
            }
        }
    }
}

/// What became of a job that was worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// There was nothing to do.
    Idle,
    /// It left `RUNNING` for this status.
    Left(JobStatus),
    /// It was taken away.
    LeaseLost,
}

/// A worker: takes jobs of the kinds it knows and works on them. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Worker {
    pub(super) store: Arc<dyn Store>,
    pub(super) infrastructure: Arc<dyn Infrastructure>,
    pub(super) blobs: Arc<dyn Blobs>,
    pub(super) kinds: Arc<Kinds>,
    pub(super) cx: Context,
    pub(super) actor: Actor,
    pub(super) lease: Duration,
}

impl Worker {
    /// A worker with an owner id of its own, generated at random.
    #[must_use]
    pub fn new(
        store: Arc<dyn Store>,
        infrastructure: Arc<dyn Infrastructure>,
        blobs: Arc<dyn Blobs>,
        kinds: Arc<Kinds>,
        entropy: Arc<dyn Entropy>,
    ) -> Self {
        let actor = Actor::worker(&secret_token(entropy.as_ref(), 22));
        Self {
            store,
            infrastructure,
            blobs,
            kinds,
            cx: Context::system(entropy),
            actor,
            lease: LEASE,
        }
    }

    /// The same, with leases that last this long from a claim or a heartbeat instead of [`LEASE`].
    #[must_use]
    pub const fn with_lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// How long its leases last from a claim or a heartbeat.
    #[must_use]
    pub const fn lease(&self) -> Duration {
        self.lease
    }

    /// The owner id in its leases.
    #[must_use]
    pub fn owner(&self) -> &str {
        &self.actor.id
    }
}

/// One attempt of a step.
pub type StepFuture<'a> = Pin<Box<dyn Future<Output = Result<Value, StepError>> + Send + 'a>>;

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq)]
pub enum StepEnd {
    /// By itself.
    Finished(Result<Value, StepError>),
    /// It took longer than allowed, and was cut off.
    TimedOut,
    /// It panicked.
    Panicked,
    /// The lease is lost; it was cut off.
    LeaseLost,
    /// The process stops; it was cut off.
    Stopping,
}

/// What the engine asks of the runtime around it.
#[async_trait]
pub trait Supervisor: Send + Sync {
    /// Runs the attempt, for at most this long and only while the job is ours.
    async fn attempt(&self, job: &Claimed, limit: Duration, work: StepFuture<'_>) -> StepEnd;

    /// Tells whether the job is still held, by a read of the store that begins after the call: see [`Worker::is_held`].
    /// Questions that are asked at the same time may be answered by one read.
    ///
    /// # Errors
    /// When the store failed.
    async fn is_held(&self, worker: &Worker, job: &Claimed) -> Result<bool> {
        worker.is_held(job).await
    }

    /// Tells whether the process is about to stop: no new step is begun then.
    fn is_stopping(&self) -> bool;
}

/// No limits, no stop: for tests and for embedders that run a job to its end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unsupervised;

#[async_trait]
impl Supervisor for Unsupervised {
    async fn attempt(&self, _job: &Claimed, _limit: Duration, work: StepFuture<'_>) -> StepEnd {
        StepEnd::Finished(work.await)
    }

    fn is_stopping(&self) -> bool {
        false
    }
}

/// How many of the newest jobs are looked at.
const SAMPLE: u32 = 20;

/// How long a job of a kind is said to take before there was any.
const FIRST_ESTIMATE: Duration = Duration::from_secs(30);

/// How many seconds a job of one of the [`TIMED_KINDS`](crate::provisioning::TIMED_KINDS) takes from its start to its end,
/// retries and their pauses included: the median of the newest that completed by themselves, rounded up, at least 1.
pub(in crate::use_case) async fn estimated_seconds(
    uow: &mut dyn UnitOfWork,
    kind: &'static str,
) -> Result<i64> {
    let completed = JobQuery::Completed(kind);
    let newest = unowned::<Job>(uow).list(&completed, SAMPLE).await?;
    let run_times = newest.iter().filter_map(run_time).collect();
    Ok(whole_seconds(median(run_times).unwrap_or(FIRST_ESTIMATE)))
}

fn run_time(job: &Stored<Job>) -> Option<Duration> {
    Some(job.finished_at?.since(job.started_at?))
}

/// The one in the middle; the mean of the two in the middle of an even number.
fn median(mut durations: Vec<Duration>) -> Option<Duration> {
    durations.sort_unstable();
    let middle = durations.len() / 2;
    let upper = *durations.get(middle)?;
    if durations.len() % 2 == 1 {
        return Some(upper);
    }
    Some((durations[middle - 1] + upper) / 2)
}

fn whole_seconds(duration: Duration) -> i64 {
    let seconds = duration.as_millis().div_ceil(1_000).max(1);
    i64::try_from(seconds).unwrap_or(i64::MAX)
}

/// Makes sure that a job is still its holder's.
#[async_trait]
pub(super) trait Guard: Debug + Send + Sync {
    /// Reads the fence from the store, after the call.
    ///
    /// # Errors
    /// [`StepError::LeaseLost`] when it is not, another one when that could not be read.
    async fn check(&self) -> Result<(), StepError>;
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn the_estimate_is_the_median_in_whole_seconds_rounded_up() {
        let estimate = |millis: &[u64]| {
            let durations = millis.iter().copied().map(Duration::from_millis);
            whole_seconds(median(durations.collect()).unwrap_or(FIRST_ESTIMATE))
        };
        assert_eq!(estimate(&[]), 30);
        assert_eq!(estimate(&[0]), 1);
        assert_eq!(estimate(&[9_000, 1_000, 4_001]), 5);
        assert_eq!(estimate(&[3_000, 900_000, 5_000, 1]), 4);
    }
}
