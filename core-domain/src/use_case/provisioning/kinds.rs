//! The registry of the job kinds that a process knows.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::Value;

use super::kind::{ErasedStep, JobContext, JobKind, StepContext, StepPorts, Steps, WriteContext};
use super::step_error::{Observation, StepError};
use super::undo::UndoKind;
use crate::kernel::{Error, Result};
use crate::port::UnitOfWork;
use crate::provisioning::{Job, LanePlace, Step, is_undo_kind, undo_kind_of};

/// Why a kind cannot be registered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KindError {
    /// A kind with this name is already registered.
    #[error("the job kind {0} is registered twice")]
    DuplicateKind(String),
    /// The name has the suffix `.undo`, which is reserved for undo kinds.
    #[error("the name {0} is reserved for an undo kind")]
    ReservedName(&'static str),
    /// Two steps of the kind have the same name.
    #[error("the job kind {kind} has two steps named {step}")]
    DuplicateStep {
        /// The name of the kind.
        kind: &'static str,
        /// The name of the step.
        step: &'static str,
    },
}

/// The job kinds that a process knows, by name. Jobs of other kinds are left to processes that know them. Registering a
/// kind with steps that can be undone also registers its undo kind.
#[derive(Clone, Debug, Default)]
pub struct Kinds(BTreeMap<String, Arc<dyn AnyKind>>);

impl Kinds {
    /// Creates an empty registry.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Registers a kind.
    ///
    /// # Errors
    /// [`KindError`] if the name is already registered or ends in `.undo`, or if two steps have the same name.
    pub fn with<K: JobKind>(self, kind: K) -> Result<Self, KindError> {
        if is_undo_kind(K::NAME) {
            return Err(KindError::ReservedName(K::NAME));
        }
        let steps = K::steps();
        let names = steps.names();
        let duplicate = names
            .iter()
            .enumerate()
            .find(|(i, name)| names[..*i].contains(name));
        if let Some((_, step)) = duplicate {
            return Err(KindError::DuplicateStep {
                kind: K::NAME,
                step,
            });
        }
        let undoes = steps.0.iter().any(|step| step.undoes());
        let registered = Arc::new(Registered { kind, steps });
        let all = self.add(K::NAME.to_owned(), registered.clone())?;
        if undoes {
            return all.add(undo_kind_of(K::NAME), Arc::new(UndoKind(registered)));
        }
        Ok(all)
    }

    fn add(mut self, name: String, kind: Arc<dyn AnyKind>) -> Result<Self, KindError> {
        if self.contains(&name) {
            return Err(KindError::DuplicateKind(name));
        }
        self.0.insert(name, kind);
        Ok(self)
    }

    /// Returns whether a kind with this name is registered.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub(super) fn get(&self, name: &str) -> Option<&dyn AnyKind> {
        self.0.get(name).map(AsRef::as_ref)
    }

    /// Returns the names of all kinds, including undo kinds.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }
}

/// A kind whose types are erased.
pub(super) trait AnyKind: Debug + Send + Sync {
    fn place(&self) -> LanePlace;
    fn deadline(&self) -> Duration;
    fn has_step(&self, name: &str) -> bool;

    /// Returns whether the kind has hooks.
    fn has_hooks(&self) -> bool;

    /// Returns whether the end of this step writes anything besides the job.
    fn records(&self, step: &str) -> bool;

    /// Returns whether cancelling a job undoes this step.
    fn undoes(&self, step: &str) -> bool;

    /// Returns the longest timeout of all steps.
    fn longest_timeout(&self) -> Duration;

    /// Decodes the input of a job once, for all later calls. For an undo kind, `job` is the undone job.
    fn open<'a>(&'a self, job: &'a Job) -> Result<Box<dyn OpenJob + 'a>>;
}

/// A job of a known kind with its decoded input.
#[async_trait]
pub(super) trait OpenJob: Send + Sync {
    fn timeout(&self, step: &str) -> Duration;
    async fn observe(
        &self,
        step: &str,
        ports: StepPorts<'_>,
    ) -> Result<Observation<Value>, StepError>;
    /// Creates the effect, after checking that this worker still holds the job.
    async fn apply(&self, step: &str, ports: StepPorts<'_>) -> Result<Value, StepError>;
    async fn record(
        &self,
        step: &str,
        cx: WriteContext<'_>,
        uow: &mut dyn UnitOfWork,
        output: &Value,
    ) -> Result<()>;
    async fn record_wait(
        &self,
        step: &str,
        cx: WriteContext<'_>,
        uow: &mut dyn UnitOfWork,
        found: &Value,
    ) -> Result<()>;
    async fn completed(&self, cx: WriteContext<'_>, uow: &mut dyn UnitOfWork) -> Result<()>;
    async fn failed(&self, cx: WriteContext<'_>, uow: &mut dyn UnitOfWork) -> Result<()>;
    async fn resumed(&self, cx: WriteContext<'_>, uow: &mut dyn UnitOfWork) -> Result<()>;
}

#[derive(Debug)]
pub(super) struct Registered<K> {
    pub(super) kind: K,
    pub(super) steps: Steps<K>,
}

impl<K: JobKind> AnyKind for Registered<K> {
    fn place(&self) -> LanePlace {
        K::PLACE
    }

    fn deadline(&self) -> Duration {
        K::DEADLINE
    }

    fn has_step(&self, name: &str) -> bool {
        self.steps.find(name).is_some()
    }

    fn has_hooks(&self) -> bool {
        K::HAS_HOOKS
    }

    fn records(&self, step: &str) -> bool {
        self.steps.find(step).is_some_and(ErasedStep::records)
    }

    fn undoes(&self, step: &str) -> bool {
        self.steps.find(step).is_some_and(ErasedStep::undoes)
    }

    fn longest_timeout(&self) -> Duration {
        let timeouts = self.steps.0.iter().map(|step| step.timeout());
        timeouts.max().unwrap_or_default()
    }

    fn open<'a>(&'a self, job: &'a Job) -> Result<Box<dyn OpenJob + 'a>> {
        Ok(Box::new(OpenedJob::new(self, job)?))
    }
}

pub(super) struct OpenedJob<'a, K: JobKind> {
    registered: &'a Registered<K>,
    job: &'a Job,
    input: K::Input,
}

impl<'a, K: JobKind> OpenedJob<'a, K> {
    pub(super) fn new(registered: &'a Registered<K>, job: &'a Job) -> Result<Self> {
        let input = K::Input::deserialize(&job.input).map_err(|error| {
            let message = format!("is not valid for the job kind {}: {error}", K::NAME);
            Error::invalid("input", "invalid", message)
        })?;
        Ok(Self {
            registered,
            job,
            input,
        })
    }

    pub(super) fn find(&self, name: &str) -> Option<&dyn ErasedStep<K>> {
        self.registered.steps.find(name)
    }

    pub(super) fn step(&self, name: &str) -> Result<&dyn ErasedStep<K>, StepError> {
        self.find(name).ok_or_else(|| {
            StepError::permanent(
                "UNKNOWN_STEP",
                format!("the job kind {} has no step {name}", K::NAME),
            )
        })
    }

    /// Returns the stored step with this name.
    pub(super) fn stored(&self, name: &str) -> Option<&Step> {
        self.job.steps.iter().find(|step| step.name == name)
    }

    pub(super) fn step_context<'c>(
        &'c self,
        step: &'c str,
        ports: StepPorts<'c>,
    ) -> StepContext<'c, K> {
        let kind = &self.registered.kind;
        let stored = self.stored(step).and_then(|stored| stored.first_look);
        StepContext::new(kind, self.job, &self.input, (item_of(step), stored), ports)
    }

    pub(super) fn job_context<'c>(
        &'c self,
        step: Option<&'c str>,
        cx: WriteContext<'c>,
    ) -> JobContext<'c, K> {
        let (kind, item) = (&self.registered.kind, step.and_then(item_of));
        JobContext::new(kind, self.job, &self.input, item, cx)
    }
}

#[async_trait]
impl<K: JobKind> OpenJob for OpenedJob<'_, K> {
    fn timeout(&self, step: &str) -> Duration {
        self.find(step).map_or(Duration::ZERO, ErasedStep::timeout)
    }

    async fn observe(
        &self,
        step: &str,
        ports: StepPorts<'_>,
    ) -> Result<Observation<Value>, StepError> {
        self.step(step)?
            .observe(&self.step_context(step, ports))
            .await
    }

    async fn apply(&self, step: &str, ports: StepPorts<'_>) -> Result<Value, StepError> {
        let cx = self.step_context(step, ports);
        cx.guard().await?;
        self.step(step)?.apply(&cx).await
    }

    async fn record(
        &self,
        step: &str,
        cx: WriteContext<'_>,
        uow: &mut dyn UnitOfWork,
        output: &Value,
    ) -> Result<()> {
        match self.find(step) {
            Some(found) => {
                let cx = self.job_context(Some(step), cx);
                found.record(&cx, uow, output).await
            }
            None => Ok(()),
        }
    }

    async fn record_wait(
        &self,
        step: &str,
        cx: WriteContext<'_>,
        uow: &mut dyn UnitOfWork,
        found: &Value,
    ) -> Result<()> {
        match self.find(step) {
            Some(waiting) => {
                let cx = self.job_context(Some(step), cx);
                waiting.record_wait(&cx, uow, found).await
            }
            None => Ok(()),
        }
    }

    async fn completed(&self, cx: WriteContext<'_>, uow: &mut dyn UnitOfWork) -> Result<()> {
        let cx = self.job_context(None, cx);
        self.registered.kind.on_completed(&cx, uow).await
    }

    async fn failed(&self, cx: WriteContext<'_>, uow: &mut dyn UnitOfWork) -> Result<()> {
        let cx = self.job_context(None, cx);
        self.registered.kind.on_failed(&cx, uow).await
    }

    async fn resumed(&self, cx: WriteContext<'_>, uow: &mut dyn UnitOfWork) -> Result<()> {
        let cx = self.job_context(None, cx);
        self.registered.kind.on_resumed(&cx, uow).await
    }
}

/// Returns the item in the name of a step.
fn item_of(step: &str) -> Option<&str> {
    step.split_once(':').map(|(_, item)| item)
}
