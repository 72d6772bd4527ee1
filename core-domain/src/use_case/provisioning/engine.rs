//! The engine: takes a job and works on its steps until the job is no longer its own.
//!
//! It needs no runtime. What only a runtime can do (time limits, cutting off, catching a panic) is asked of a
//! [`Supervisor`].

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;

use super::claim::{Claimed, claim};
use super::kind::StepPorts;
use super::kinds::{Kinds, OpenJob};
use super::report::{self, LeaseHolder, LeaseState};
use super::step_error::{Observation, StepError};
use super::timers::{self, TimerStats};
use crate::access::unowned;
use crate::kernel::{Context, Entropy, Error, Result, StoreError, Stored, secret_token};
use crate::port::{Blobs, Infrastructure, Mode, Store, transact};
use crate::provisioning::{Job, JobStatus, Report, effect_key};

/// How often a write is tried when the store does not say whether it happened.
const WRITE_TRIES: u32 = 3;

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
    store: Arc<dyn Store>,
    infrastructure: Arc<dyn Infrastructure>,
    blobs: Arc<dyn Blobs>,
    kinds: Arc<Kinds>,
    cx: Context,
    owner: Arc<str>,
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
        let owner = secret_token(entropy.as_ref(), 22).into();
        Self {
            store,
            infrastructure,
            blobs,
            kinds,
            cx: Context::system(entropy),
            owner,
        }
    }

    /// The owner id in its leases.
    #[must_use]
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// Takes up to `limit` jobs.
    ///
    /// # Errors
    /// When the store failed.
    pub async fn claim(&self, limit: u32) -> Result<Vec<Claimed>> {
        transact(self.store.as_ref(), |uow, _| {
            Box::pin(claim(&self.cx, uow, &self.kinds, &self.owner, limit))
        })
        .await
    }

    /// Prolongs leases; answers those that are lost.
    ///
    /// # Errors
    /// When the store failed.
    pub async fn heartbeat(&self, held: &[Claimed]) -> Result<Vec<Claimed>> {
        transact(self.store.as_ref(), |uow, _| {
            Box::pin(report::heartbeat(uow, &self.owner, held))
        })
        .await
    }

    /// Wakes what has waited long enough, takes back what a vanished worker held, stops what is overdue.
    ///
    /// # Errors
    /// When the store failed; what was done before stays done.
    pub async fn run_timers(&self) -> Result<TimerStats> {
        timers::run_timers(&self.cx, self.store.as_ref(), &self.kinds).await
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
        match self.claim(1).await?.first() {
            Some(claimed) => self.run(claimed, supervisor).await,
            None => Ok(Outcome::Idle),
        }
    }

    /// Works on a job it has taken, until it leaves `RUNNING`.
    ///
    /// # Errors
    /// When the store failed; the job is taken back when its lease ends.
    pub async fn run(&self, claimed: &Claimed, supervisor: &dyn Supervisor) -> Result<Outcome> {
        let Some(mut job) = self.read(claimed).await? else {
            return Ok(Outcome::LeaseLost);
        };
        loop {
            if supervisor.is_stopping() {
                return self.hand_back(claimed).await;
            }
            let grip = match job.current_step() {
                None => self.end(claimed, Report::Complete).await?,
                Some(step) => match self.step(claimed, &job, step, supervisor).await? {
                    Some(grip) => grip,
                    None => return self.hand_back(claimed).await,
                },
            };
            match grip {
                LeaseState::Lost => return Ok(Outcome::LeaseLost),
                LeaseState::Held(next) if next.status == JobStatus::Running => job = *next,
                LeaseState::Held(next) => return Ok(Outcome::Left(next.status)),
            }
        }
    }

    async fn read(&self, claimed: &Claimed) -> Result<Option<Stored<Job>>> {
        let mut uow = self.store.begin(Mode::Auto).await?;
        let job = unowned::<Job>(uow.as_mut()).find(&claimed.job_id).await?;
        Ok(job.filter(|job| job.status == JobStatus::Running && job.fence == claimed.fence))
    }

    /// One step: intent, attempt, and what came of it. `None` when the process stops.
    async fn step(
        &self,
        claimed: &Claimed,
        job: &Job,
        step: usize,
        supervisor: &dyn Supervisor,
    ) -> Result<Option<LeaseState>> {
        let name = &job.steps[step].name;
        let kind = self.kinds.get(&job.kind);
        let Some(kind) = kind.filter(|kind| kind.has_step(name)) else {
            let missing = format!("{}: no step {name}", job.kind);
            let error = StepError::permanent("UNKNOWN_STEP", missing);
            return self.fail(claimed, error).await.map(Some);
        };
        let LeaseState::Held(job) = self.report(claimed, Report::Start(step)).await? else {
            return Ok(Some(LeaseState::Lost));
        };
        let opened = match kind.open(&job) {
            Ok(opened) => opened,
            Err(error) => return self.fail(claimed, error.into()).await.map(Some),
        };
        let effect_key = effect_key(&job.id, name);
        let ports = StepPorts {
            effect_key: &effect_key,
            infrastructure: self.infrastructure.as_ref(),
            blobs: self.blobs.as_ref(),
            store: self.store.as_ref(),
        };
        let attempt = Box::pin(perform(opened.as_ref(), name, ports));
        let limit = opened.timeout(name);
        let end = supervisor.attempt(claimed, limit, attempt).await;
        drop(opened);
        self.settle(claimed, step, end).await
    }

    async fn settle(
        &self,
        claimed: &Claimed,
        step: usize,
        end: StepEnd,
    ) -> Result<Option<LeaseState>> {
        let error = match end {
            StepEnd::Finished(Ok(output)) => {
                return self
                    .end(claimed, Report::Advance(step, output))
                    .await
                    .map(Some);
            }
            StepEnd::Finished(Err(error)) => error,
            StepEnd::TimedOut => {
                StepError::unknown("STEP_TIMEOUT", "the step took longer than allowed")
            }
            StepEnd::Panicked => StepError::unknown("STEP_PANICKED", "the step broke down"),
            StepEnd::LeaseLost => return Ok(Some(LeaseState::Lost)),
            StepEnd::Stopping => return Ok(None),
        };
        self.fail(claimed, error).await.map(Some)
    }

    /// Ends a step or the job. A refusal of the domain is a failure of the step.
    async fn end(&self, claimed: &Claimed, report: Report) -> Result<LeaseState> {
        match self.report(claimed, report).await {
            Err(Error::Store(error)) => Err(error.into()),
            Err(refusal) => self.fail(claimed, refusal.into()).await,
            kept_or_lost => kept_or_lost,
        }
    }

    async fn fail(&self, claimed: &Claimed, error: StepError) -> Result<LeaseState> {
        match report::report_of(error) {
            Some(report) => self.report(claimed, report).await,
            None => Ok(LeaseState::Lost),
        }
    }

    async fn hand_back(&self, claimed: &Claimed) -> Result<Outcome> {
        let released = self.report(claimed, Report::Release).await?;
        Ok(match released {
            LeaseState::Held(job) => Outcome::Left(job.status),
            LeaseState::Lost => Outcome::LeaseLost,
        })
    }

    /// One write of the holder of a job, with all that follows from it. When the store does not say whether it happened,
    /// it is repeated: the fence makes the second one find the first. So is one that met conflicts alone, for a job that
    /// is let go costs an attempt.
    ///
    /// # Errors
    /// When the report is about another step than the current one, the domain refused an output, or the store failed.
    pub async fn report(&self, claimed: &Claimed, report: Report) -> Result<LeaseState> {
        let holder = LeaseHolder {
            owner: &self.owner,
            kinds: &self.kinds,
            claimed,
        };
        let report = &report;
        let mut tries = 0;
        loop {
            tries += 1;
            let outcome = transact(self.store.as_ref(), |uow, _| {
                Box::pin(report::report(&self.cx, uow, holder, report.clone()))
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

/// Looks first; makes the effect only when it has not happened. Whether the job is still ours is asked between the two.
async fn perform(job: &dyn OpenJob, step: &str, ports: StepPorts<'_>) -> Result<Value, StepError> {
    match job.observe(step, ports).await? {
        Observation::Present(output) => Ok(output),
        Observation::Conflict(what) => Err(StepError::permanent("NAME_TAKEN", what)),
        Observation::Absent => job.apply(step, ports).await,
    }
}
