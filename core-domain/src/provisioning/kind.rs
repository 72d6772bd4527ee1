//! What a job of a kind does: named steps that can be looked for, done and recorded.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;

use super::{Job, JobStatus, StepError};
use crate::kernel::{Context, Result};
use crate::port::{Blobs, Infrastructure, Mode, Store, UnitOfWork};

/// What a look at the outside world found.
#[derive(Clone, Debug, PartialEq)]
pub enum Observation {
    /// The effect has not happened.
    Absent,
    /// The effect has happened; this is the step's output.
    Present(Value),
    /// Something that is not ours stands in its place.
    Conflict(String),
}

/// What a step is given besides its own code.
#[derive(Debug)]
pub struct StepContext<'a> {
    /// The job, as it was when the step began.
    pub job: &'a Job,
    /// The same for every attempt of this step, different for all others.
    pub effect_key: String,
    /// The provider.
    pub infrastructure: &'a dyn Infrastructure,
    /// Uploads that wait.
    pub blobs: &'a dyn Blobs,
    /// For reads of the step's own; writes belong into [`JobStep::record`].
    pub store: &'a dyn Store,
}

impl StepContext<'_> {
    /// Makes sure that the job is still ours; to be called right before every effect after the first.
    ///
    /// # Errors
    /// [`StepError::LeaseLost`] when it is not.
    pub async fn guard(&self) -> Result<(), StepError> {
        let mut uow = self.store.begin(Mode::Auto).await?;
        let job = uow.jobs().get(self.job.id.as_str()).await?;
        match job {
            Some(job) if job.status == JobStatus::Running && job.fence == self.job.fence => Ok(()),
            _ => Err(StepError::LeaseLost),
        }
    }
}

/// A step of a kind. Every method may be called again after a crash at any point.
#[async_trait]
pub trait JobStep: Send + Sync + Debug {
    /// Looks whether the effect has happened.
    ///
    /// # Errors
    /// [`StepError`] when that cannot be told now.
    async fn observe(&self, cx: &StepContext<'_>) -> Result<Observation, StepError>;

    /// Makes the effect and answers the step's output: at most 64 KiB, no secrets.
    ///
    /// # Errors
    /// [`StepError`] says whether it is worth another try.
    async fn apply(&self, cx: &StepContext<'_>) -> Result<Value, StepError>;

    /// Writes what the output means into the unit of work that ends the step. The job is the one before that.
    ///
    /// # Errors
    /// When it cannot be written; the step then counts as failed.
    async fn record(
        &self,
        _cx: &Context,
        _uow: &mut dyn UnitOfWork,
        _job: &Job,
        _output: &Value,
    ) -> Result<()> {
        Ok(())
    }

    /// How long one attempt may take.
    fn timeout(&self) -> Duration {
        Duration::from_secs(60)
    }
}

/// A kind of job. The hooks write into the unit of work that moves the job.
#[async_trait]
pub trait JobKind: Send + Sync + Debug {
    /// Its name: `platform.deprovision`.
    fn name(&self) -> &'static str;

    /// The version of its list of steps, kept with every job.
    fn version(&self) -> i64 {
        1
    }

    /// The step of this name; `None` when there is none (any more).
    fn step(&self, name: &str) -> Option<&dyn JobStep>;

    /// The job has completed; `job.forced` tells whether an operator said so.
    ///
    /// # Errors
    /// When it cannot be written; the job then does not complete.
    async fn completed(&self, _cx: &Context, _uow: &mut dyn UnitOfWork, _job: &Job) -> Result<()> {
        Ok(())
    }

    /// The job has stopped; `job.failure_kind` tells why.
    ///
    /// # Errors
    /// When it cannot be written. A refusal (any error but the store's) does not keep the job from stopping, so check
    /// before the first write.
    async fn failed(&self, _cx: &Context, _uow: &mut dyn UnitOfWork, _job: &Job) -> Result<()> {
        Ok(())
    }

    /// The job had stopped and an operator lets it go on.
    ///
    /// # Errors
    /// When it cannot be written; the job then stays where it is.
    async fn resumed(&self, _cx: &Context, _uow: &mut dyn UnitOfWork, _job: &Job) -> Result<()> {
        Ok(())
    }
}

/// The kinds a process knows, by name. Jobs of other kinds are left to processes that know them.
#[derive(Clone, Debug, Default)]
pub struct Kinds(BTreeMap<&'static str, Arc<dyn JobKind>>);

impl Kinds {
    /// These kinds.
    #[must_use]
    pub fn new(kinds: impl IntoIterator<Item = Arc<dyn JobKind>>) -> Self {
        Self(kinds.into_iter().map(|kind| (kind.name(), kind)).collect())
    }

    /// The kind of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&dyn JobKind> {
        self.0.get(name).map(AsRef::as_ref)
    }

    /// All names.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.0.keys().map(|name| (*name).to_owned()).collect()
    }
}
