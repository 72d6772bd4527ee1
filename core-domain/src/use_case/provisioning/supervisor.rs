//! What the engine asks of the runtime around it.

use std::pin::Pin;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;

use super::claim::Claimed;
use super::step_error::StepError;
use super::worker::Worker;
use crate::kernel::Result;

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
