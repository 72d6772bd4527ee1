//! A worker, the jobs that it holds, and the services that it needs from the runtime.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;

use super::kinds::Kinds;
use super::step_error::StepError;
use crate::kernel::{Context, Entropy, JobId, Result, Stored, secret_token};
use crate::port::{Blobs, Infrastructure, Store};
use crate::provisioning::{Actor, DEFAULT_LEASE, Job, JobStatus, Step, StepStatus};

/// A worker: claims jobs of registered kinds and executes them. Cloning it is cheap.
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
    /// Creates a worker with a random owner id.
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
            lease: DEFAULT_LEASE,
        }
    }

    /// Returns the worker with another lease duration than [`DEFAULT_LEASE`].
    #[must_use]
    pub const fn with_lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// Returns the duration of its leases, counted from the claim or the latest heartbeat.
    #[must_use]
    pub const fn lease(&self) -> Duration {
        self.lease
    }

    /// Returns the names of the kinds of jobs that the worker executes.
    #[must_use]
    pub fn kinds(&self) -> Vec<String> {
        self.kinds.names()
    }

    /// Returns the owner id in its leases.
    #[must_use]
    pub fn owner(&self) -> &str {
        &self.actor.id
    }
}

/// Identifies a claim of a job. Every write by the holder contains it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Claim {
    /// The id of the claimed job.
    pub job_id: JobId,
    /// The fence of the job after the claim.
    pub fence: i64,
}

/// A job that a worker holds. The start of its current step is already stored, unless this process does not know the
/// step or no step is left.
#[derive(Clone, Debug, PartialEq)]
pub struct HeldJob {
    /// Identifies the claim in every write by the holder.
    pub claimed: Claim,
    pub(super) job: Arc<Stored<Job>>,
}

impl HeldJob {
    pub(super) fn new(job: Stored<Job>) -> Self {
        let claimed = Claim {
            job_id: job.id.clone(),
            fence: job.fence,
        };
        let job = Arc::new(job);
        Self { claimed, job }
    }

    /// Returns the kind of the job.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.job.kind
    }

    /// Returns the job as its holder last wrote it.
    #[must_use]
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// Returns the step that the next attempt executes. `None` if it only records a transition of the job.
    #[must_use]
    pub fn running_step(&self) -> Option<&Step> {
        let step = self.job.steps.get(self.job.current_step()?)?;
        (step.status == StepStatus::Running).then_some(step)
    }
}

/// The result of working on a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// No job could be claimed.
    Idle,
    /// The job left `RUNNING` and has this status.
    Left(JobStatus),
    /// The job was taken from the worker.
    LeaseLost,
}

/// The future of one attempt of a step.
pub type StepFuture<'a> = Pin<Box<dyn Future<Output = Result<Value, StepError>> + Send + 'a>>;

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq)]
pub enum StepEnd {
    /// The attempt returned a result.
    Finished(Result<Value, StepError>),
    /// The attempt exceeded its time limit and was cancelled.
    TimedOut,
    /// The attempt panicked.
    Panicked,
    /// The lease was lost and the attempt was cancelled.
    LeaseLost,
    /// The process stops and the attempt was cancelled.
    Stopping,
}

/// The services that the engine needs from the runtime.
#[async_trait]
pub trait Supervisor: Send + Sync {
    /// Runs the attempt, at most for `limit` and only while the worker holds the job.
    async fn attempt(&self, job: &Claim, limit: Duration, work: StepFuture<'_>) -> StepEnd;

    /// Returns whether the job is still held; see [`Worker::is_held`]. The store is read after the call starts. One
    /// query may serve several concurrent calls.
    ///
    /// # Errors
    /// Only those of the store.
    async fn is_held(&self, worker: &Worker, job: &Claim) -> Result<bool> {
        worker.is_held(job).await
    }

    /// Returns whether the process is about to stop. If so, no new step is started.
    fn is_stopping(&self) -> bool;
}

/// A supervisor without limits that never stops, for tests and for embedding applications that run a job to its end.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSupervisor;

#[async_trait]
impl Supervisor for NoSupervisor {
    async fn attempt(&self, _job: &Claim, _limit: Duration, work: StepFuture<'_>) -> StepEnd {
        StepEnd::Finished(work.await)
    }

    fn is_stopping(&self) -> bool {
        false
    }
}
