//! The engine: takes a job and works on its steps until the job is no longer its own.
//!
//! It needs no runtime. What only a runtime can do (time limits, cutting off, catching a panic) is asked of a
//! [`Supervisor`].

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;

use super::work::{self, Grip, Holder};
use super::{Claimed, claim};
use crate::kernel::{Context, Entropy, Error, Result, secret_token};
use crate::port::{Blobs, Infrastructure, Mode, Store, StoreError, Stored, transact};
use crate::provisioning::{
    Job, JobError, JobStatus, JobStep, Kinds, Observation, Report, StepContext, StepError,
    effect_key,
};

/// How often a write is tried when the store does not say whether it happened.
const WRITE_TRIES: u32 = 3;

/// One attempt of a step.
pub type StepWork<'a> = Pin<Box<dyn Future<Output = Result<Value, StepError>> + Send + 'a>>;

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
    async fn attempt(&self, job: &Claimed, limit: Duration, work: StepWork<'_>) -> StepEnd;

    /// Tells whether the process is about to stop: no new step is begun then.
    fn is_stopping(&self) -> bool;
}

/// No limits, no stop: for tests and for embedders that run a job to its end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unsupervised;

#[async_trait]
impl Supervisor for Unsupervised {
    async fn attempt(&self, _job: &Claimed, _limit: Duration, work: StepWork<'_>) -> StepEnd {
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
    /// A worker with an owner id of its own, drawn at random.
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
            Box::pin(work::heartbeat(uow, &self.owner, held))
        })
        .await
    }

    /// Does what time does to jobs, see [`super::sweep`].
    ///
    /// # Errors
    /// When the store failed.
    pub async fn sweep(&self) -> Result<super::Swept> {
        super::sweep(&self.cx, self.store.as_ref(), &self.kinds).await
    }

    /// Takes back all running jobs of a store that only this process uses, see [`super::recover`].
    ///
    /// # Errors
    /// When the store failed.
    pub async fn recover(&self) -> Result<usize> {
        super::recover(&self.cx, self.store.as_ref(), &self.kinds).await
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
                Grip::Lost => return Ok(Outcome::LeaseLost),
                Grip::Kept(next) if next.status == JobStatus::Running => job = *next,
                Grip::Kept(next) => return Ok(Outcome::Left(next.status)),
            }
        }
    }

    async fn read(&self, claimed: &Claimed) -> Result<Option<Stored<Job>>> {
        let mut uow = self.store.begin(Mode::Auto).await?;
        let job = uow.jobs().get(claimed.job_id.as_str()).await?;
        Ok(job.filter(|job| job.status == JobStatus::Running && job.fence == claimed.fence))
    }

    /// One step: intent, attempt, and what came of it. `None` when the process stops.
    async fn step(
        &self,
        claimed: &Claimed,
        job: &Job,
        step: usize,
        supervisor: &dyn Supervisor,
    ) -> Result<Option<Grip>> {
        let name = &job.steps[step].name;
        let Some(code) = self.kinds.get(&job.kind).and_then(|kind| kind.step(name)) else {
            let error =
                StepError::permanent("UNKNOWN_STEP", format!("{}: no step {name}", job.kind));
            return self.fail(claimed, error).await.map(Some);
        };
        let started = self.report(claimed, Report::Start(step)).await?;
        let Grip::Kept(job) = started else {
            return Ok(Some(Grip::Lost));
        };
        let cx = StepContext {
            effect_key: effect_key(&job.id, name),
            job: &job,
            infrastructure: self.infrastructure.as_ref(),
            blobs: self.blobs.as_ref(),
            store: self.store.as_ref(),
        };
        let attempt = Box::pin(perform(code, &cx));
        let end = supervisor.attempt(claimed, code.timeout(), attempt).await;
        self.settle(claimed, step, end).await
    }

    async fn settle(&self, claimed: &Claimed, step: usize, end: StepEnd) -> Result<Option<Grip>> {
        let error = match end {
            StepEnd::Finished(Ok(output)) => {
                return self
                    .end(claimed, Report::Advance(step, output))
                    .await
                    .map(Some);
            }
            StepEnd::Finished(Err(error)) => error,
            StepEnd::TimedOut => StepError::OutcomeUnknown(JobError::new(
                "STEP_TIMEOUT",
                "the step took longer than allowed",
            )),
            StepEnd::Panicked => {
                StepError::OutcomeUnknown(JobError::new("STEP_PANICKED", "the step broke down"))
            }
            StepEnd::LeaseLost => return Ok(Some(Grip::Lost)),
            StepEnd::Stopping => return Ok(None),
        };
        self.fail(claimed, error).await.map(Some)
    }

    /// Ends a step or the job. A refusal of the domain is a failure of the step.
    async fn end(&self, claimed: &Claimed, report: Report) -> Result<Grip> {
        match self.report(claimed, report).await {
            Err(Error::Store(error)) => Err(error.into()),
            Err(refusal) => self.fail(claimed, refusal.into()).await,
            kept_or_lost => kept_or_lost,
        }
    }

    async fn fail(&self, claimed: &Claimed, error: StepError) -> Result<Grip> {
        match work::report_of(error) {
            Some(report) => self.report(claimed, report).await,
            None => Ok(Grip::Lost),
        }
    }

    async fn hand_back(&self, claimed: &Claimed) -> Result<Outcome> {
        let released = self.report(claimed, Report::Release).await?;
        Ok(match released {
            Grip::Kept(job) => Outcome::Left(job.status),
            Grip::Lost => Outcome::LeaseLost,
        })
    }

    /// One write of a holder. When the store does not say whether it happened, it is repeated: the fence makes the
    /// second one find the first.
    async fn report(&self, claimed: &Claimed, report: Report) -> Result<Grip> {
        let holder = Holder {
            owner: &self.owner,
            kinds: &self.kinds,
            claimed,
        };
        let report = &report;
        let mut tries = 0;
        loop {
            tries += 1;
            let outcome = transact(self.store.as_ref(), |uow, _| {
                Box::pin(work::report(&self.cx, uow, holder, report.clone()))
            })
            .await;
            match outcome {
                Err(Error::Store(StoreError::Unavailable(_) | StoreError::Backend(_)))
                    if tries < WRITE_TRIES => {}
                outcome => return outcome,
            }
        }
    }
}

/// Looks first; makes the effect only when it has not happened and the job is still ours.
async fn perform(step: &dyn JobStep, cx: &StepContext<'_>) -> Result<Value, StepError> {
    match step.observe(cx).await? {
        Observation::Present(output) => Ok(output),
        Observation::Conflict(what) => Err(StepError::permanent("NAME_TAKEN", what)),
        Observation::Absent => {
            cx.guard().await?;
            step.apply(cx).await
        }
    }
}
