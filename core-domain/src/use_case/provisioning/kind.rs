//! Job kinds. A kind has a name, a version, a typed input and a list of typed steps. Also defines the contexts that
//! steps and hooks receive.

use std::fmt::Debug;
use std::ops::Deref;
use std::time::Duration;

use async_trait::async_trait;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::engine::Guard;
use super::step_error::{Observation, StepError, Undone, to_json};
use crate::access::{PlatformWriter, SystemScope};
use crate::kernel::{
    Context, EntityId, Environment, Error, JobId, PlatformId, RequestInfo, Result,
};
use crate::port::{Blobs, Infrastructure, Store, UnitOfWork};
use crate::provisioning::{DEFAULT_DEADLINE, FirstObservation, Job, LaneKey, LanePlace};

/// The input of a job kind. It is stored with the job as JSON and must not contain secrets.
pub trait JobInput: Serialize + DeserializeOwned + Clone + Debug + Send + Sync + 'static {
    /// The owner of the job: [`PlatformOwned`](crate::kernel::PlatformOwned) or [`Unowned`](crate::kernel::Unowned).
    /// Decides which scopes can create the job.
    type Owner;

    /// Returns the lane in which the job runs.
    fn lane(&self) -> LaneKey;

    /// Returns the platform that the job works for.
    fn platform_id(&self) -> Option<&PlatformId>;

    /// Returns the entity that the job works for; `None` if it is not about an entity.
    fn entity_id(&self) -> Option<&EntityId> {
        None
    }

    /// Returns the environment that the job works in; `None` if it is not about one environment.
    fn environment(&self) -> Option<Environment> {
        None
    }

    /// Returns the idempotency key. A second creation with the same kind, platform and key returns the first job.
    /// `None` creates a new job every time.
    fn idempotency_key(&self) -> Option<String> {
        None
    }
}

/// A kind of job. The hooks write into the unit of work that contains the transition of the job.
#[async_trait]
pub trait JobKind: Debug + Send + Sync + Sized + 'static {
    /// The unique name of the kind, for example `platform.deprovision`.
    const NAME: &'static str;

    /// The version of the kind's list of steps. It is stored with every job.
    const VERSION: i64 = 1;

    /// The place in its lane of a job that is created, retried or replayed.
    const PLACE: LanePlace = LanePlace::Tail;

    /// `true` if the kind has hooks. Default: `true`. If `false`, hooks are not called and its jobs can end in one unit
    /// of work with others.
    const HAS_HOOKS: bool = true;

    /// Time from the creation of a job, or from an operator's retry, to its deadline. Default: 24 hours.
    const DEADLINE: Duration = DEFAULT_DEADLINE;

    /// The input of the jobs of this kind.
    type Input: JobInput;

    /// Returns the steps of the kind, in order. A job keeps the list it was created with, so do not remove a step while
    /// stored jobs may still name it.
    fn steps() -> Steps<Self>;

    /// Returns the names of the steps of a job with this input, in order. Default: all of [`JobKind::steps`]. A step
    /// that runs once for each of several items is named `{step}:{item}`. Each name must be unique.
    fn plan(_input: &Self::Input) -> Vec<String> {
        let names = Self::steps().names();
        names.into_iter().map(str::to_owned).collect()
    }

    /// Hook that runs when the job has completed. `job.forced` is `true` if an operator completed it by force.
    ///
    /// # Errors
    /// Any error prevents the completion of the job.
    async fn on_completed(
        &self,
        _cx: &JobContext<'_, Self>,
        _uow: &mut dyn UnitOfWork,
    ) -> Result<()> {
        Ok(())
    }

    /// Hook that runs when the job has failed. `job.failure_kind` contains the reason.
    ///
    /// # Errors
    /// A store error prevents the transition. Any other error does not: the job fails, and what the hook has written
    /// before the error is committed. So check before the first write.
    async fn on_failed(&self, _cx: &JobContext<'_, Self>, _uow: &mut dyn UnitOfWork) -> Result<()> {
        Ok(())
    }

    /// Hook that runs when an operator retries or replays a failed job.
    ///
    /// # Errors
    /// Any error prevents the transition; the job stays `FAILED`.
    async fn on_resumed(
        &self,
        _cx: &JobContext<'_, Self>,
        _uow: &mut dyn UnitOfWork,
    ) -> Result<()> {
        Ok(())
    }
}

/// A step of a kind. After a crash, every method may be called again. So derive the name of every object that a step
/// creates from the purpose of the object.
#[async_trait]
pub trait JobStep<K: JobKind>: Send + Sync + Debug + 'static {
    /// `true` if [`JobStep::record`] is called. Default: `true`. If `false`, the end of the step can be written in one
    /// unit of work with other jobs.
    const HAS_RECORD: bool = true;

    /// `true` if cancelling a job undoes this step with [`JobStep::undo`]. Default: `false`. The first observation of
    /// such a step is stored in a unit of work of its own.
    const CAN_UNDO: bool = false;

    /// The output of the step, for later steps and for readers of the job. At most 64 KiB of JSON, without secrets.
    type Output: Serialize + DeserializeOwned + Send + Sync;

    /// Returns the name of the step, unique within the kind.
    fn name(&self) -> &'static str;

    /// Observes whether the effect of the step exists.
    ///
    /// # Errors
    /// A [`StepError`] if this cannot be determined now.
    async fn observe(
        &self,
        cx: &StepContext<'_, K>,
    ) -> Result<Observation<Self::Output>, StepError>;

    /// Creates the effect and returns the output of the step.
    ///
    /// # Errors
    /// A [`StepError`]. Its variant decides whether the step is tried again.
    async fn apply(&self, cx: &StepContext<'_, K>) -> Result<Self::Output, StepError>;

    /// Writes the consequences of the output into the unit of work that ends the step.
    ///
    /// # Errors
    /// Any error counts as a failed attempt of the step.
    async fn record(
        &self,
        _cx: &JobContext<'_, K>,
        _uow: &mut dyn UnitOfWork,
        _output: &Self::Output,
    ) -> Result<()> {
        Ok(())
    }

    /// Writes the consequences of an intermediate output into the unit of work that lets the job wait
    /// ([`StepError::wait_with`]) or queues it again ([`StepError::unfinished`]).
    ///
    /// # Errors
    /// Any error counts as a failed attempt of the step.
    async fn record_wait(
        &self,
        _cx: &JobContext<'_, K>,
        _uow: &mut dyn UnitOfWork,
        _found: &Self::Output,
    ) -> Result<()> {
        Ok(())
    }

    /// Removes the effect of the step, as far as it exists. Must keep objects that others own or use. Called only if
    /// the first observation was [`FirstLook::Absent`]; otherwise the engine keeps the object. `cx.job` is the
    /// cancelled job with the outputs of its steps, and the effect key is that of the step.
    ///
    /// # Errors
    /// A [`StepError`]. Its variant decides whether the undo is tried again.
    async fn undo(&self, _cx: &StepContext<'_, K>) -> Result<Undone, StepError> {
        Ok(Undone::Removed)
    }

    /// Writes the result of the undo into the unit of work that ends it. `cx.job` is the cancelled job. Also called if
    /// the effect was kept.
    ///
    /// # Errors
    /// Any error counts as a failed attempt of the undo.
    async fn record_undo(
        &self,
        _cx: &JobContext<'_, K>,
        _uow: &mut dyn UnitOfWork,
        _undone: &Undone,
    ) -> Result<()> {
        Ok(())
    }

    /// Returns the maximum duration of one attempt. Default: 60 seconds.
    fn timeout(&self) -> Duration {
        Duration::from_secs(60)
    }
}

/// The services that a step can use.
#[derive(Clone, Copy, Debug)]
pub struct StepPorts<'a> {
    /// The key that identifies all attempts of this step to the provider. It differs for every other step.
    pub effect_key: &'a str,
    /// The infrastructure provider that creates and removes resources.
    pub infrastructure: &'a dyn Infrastructure,
    /// The storage of uploaded files that are not deployed yet.
    pub blobs: &'a dyn Blobs,
    /// The store, for reading only. Writes belong into [`JobStep::record`].
    pub store: &'a dyn Store,
    pub(super) guard: &'a dyn Guard,
}

/// The context of a step. Dereferences to [`StepPorts`].
#[derive(Debug)]
pub struct StepContext<'a, K: JobKind> {
    /// The registered kind of the job.
    pub kind: &'a K,
    /// The job as it was when the step started.
    pub job: &'a Job,
    /// The input of the job.
    pub input: &'a K::Input,
    /// The item of a step that runs once per item, see [`JobKind::plan`]; `None` for other steps.
    pub item: Option<&'a str>,
    /// The stored first observation, see [`Step::first_look`](crate::provisioning::Step::first_look).
    pub first_look: Option<FirstObservation>,
    ports: StepPorts<'a>,
}

impl<'a, K: JobKind> Deref for StepContext<'a, K> {
    type Target = StepPorts<'a>;

    fn deref(&self) -> &StepPorts<'a> {
        &self.ports
    }
}

impl<'a, K: JobKind> StepContext<'a, K> {
    pub(super) const fn new(
        kind: &'a K,
        job: &'a Job,
        input: &'a K::Input,
        (item, first_look): (Option<&'a str>, Option<FirstObservation>),
        ports: StepPorts<'a>,
    ) -> Self {
        Self {
            kind,
            job,
            input,
            item,
            first_look,
            ports,
        }
    }

    /// Returns `true` if an object that the step observes now existed before its first effect.
    #[must_use]
    pub fn existed_before(&self) -> bool {
        self.first_look != Some(FirstObservation::Absent)
    }

    /// Checks that this worker still holds the job. Call it right before every effect except the first, which the
    /// engine checks.
    ///
    /// # Errors
    /// [`StepError::LeaseLost`] if the worker no longer holds the job.
    pub async fn guard(&self) -> Result<(), StepError> {
        self.ports.guard.check().await
    }

    /// Returns the current state of the job's platform. `None` if the job has no platform or the platform was deleted.
    ///
    /// # Errors
    /// Only those of the store.
    pub async fn platform(&self, uow: &mut dyn UnitOfWork) -> Result<Option<PlatformWriter>> {
        platform_of(self.job, uow).await
    }
}

/// Cancels other jobs within the unit of work of a job.
#[async_trait]
pub(super) trait JobCanceller: Debug + Send + Sync {
    /// Cancels a batch of the unfinished jobs of a platform, oldest first, except the job `own`. Returns `true` if
    /// there are more.
    async fn cancel_some(
        &self,
        cx: &Context,
        platform: &PlatformWriter,
        uow: &mut dyn UnitOfWork,
        own: &JobId,
        reason: &str,
    ) -> Result<bool>;
}

/// The context of a write by the engine.
#[derive(Clone, Copy, Debug)]
pub(super) struct WriteContext<'a> {
    /// The context of the worker or of the operator.
    pub(super) cx: &'a Context,
    /// Cancels other jobs in the same unit of work.
    pub(super) canceller: &'a dyn JobCanceller,
}

/// The context of hooks and of [`JobStep::record`]. Dereferences to the [`Context`] for the job's writes: the system is
/// the caller, and the request is the one that queued the job.
#[derive(Debug)]
pub struct JobContext<'a, K: JobKind> {
    /// The registered kind of the job.
    pub kind: &'a K,
    /// The job: before the transition for a step, after it for a hook.
    pub job: &'a Job,
    /// The input of the job.
    pub input: &'a K::Input,
    /// The item of a step that runs once per item; `None` for other steps and for hooks.
    pub item: Option<&'a str>,
    canceller: &'a dyn JobCanceller,
    cx: Context,
}

impl<K: JobKind> Deref for JobContext<'_, K> {
    type Target = Context;

    fn deref(&self) -> &Context {
        &self.cx
    }
}

impl<'a, K: JobKind> JobContext<'a, K> {
    pub(super) fn new(
        kind: &'a K,
        job: &'a Job,
        input: &'a K::Input,
        item: Option<&'a str>,
        writing: WriteContext<'a>,
    ) -> Self {
        Self {
            kind,
            job,
            input,
            item,
            canceller: writing.canceller,
            cx: context_for_job(writing.cx, job),
        }
    }

    /// Cancels a batch of the platform's other jobs, see [`JobCanceller::cancel_some`]. Returns `true` if there are
    /// more.
    pub(in crate::use_case) async fn cancel_other_jobs(
        &self,
        platform: &PlatformWriter,
        uow: &mut dyn UnitOfWork,
        reason: &str,
    ) -> Result<bool> {
        let own = &self.job.id;
        self.canceller
            .cancel_some(&self.cx, platform, uow, own, reason)
            .await
    }

    /// Returns the current state of the job's platform. `None` if the job has no platform or the platform was deleted.
    ///
    /// # Errors
    /// Only those of the store.
    pub async fn platform(&self, uow: &mut dyn UnitOfWork) -> Result<Option<PlatformWriter>> {
        platform_of(self.job, uow).await
    }
}

async fn platform_of(job: &Job, uow: &mut dyn UnitOfWork) -> Result<Option<PlatformWriter>> {
    match &job.platform_id {
        Some(platform) => SystemScope::new().platform(uow, platform).await,
        None => Ok(None),
    }
}

fn context_for_job(cx: &Context, job: &Job) -> Context {
    Context {
        request: RequestInfo {
            request_id: job.request_id.clone(),
            trace_id: job.trace_id.clone(),
            ..RequestInfo::default()
        },
        ..Context::system(cx.entropy.clone())
    }
}

/// The steps of a kind, in order.
pub struct Steps<K>(pub(super) Vec<Box<dyn ErasedStep<K>>>);

impl<K: JobKind> Steps<K> {
    /// Creates an empty list of steps.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Appends a step to the list.
    #[must_use]
    pub fn step(mut self, step: impl JobStep<K>) -> Self {
        self.0.push(Box::new(step));
        self
    }

    /// Appends several steps of one type.
    #[must_use]
    pub fn steps<S: JobStep<K>>(self, steps: impl IntoIterator<Item = S>) -> Self {
        steps.into_iter().fold(self, Self::step)
    }

    /// Returns the step with this name; an item in the name is ignored.
    pub(super) fn find(&self, name: &str) -> Option<&dyn ErasedStep<K>> {
        let name = name.split_once(':').map_or(name, |(step, _)| step);
        let mut steps = self.0.iter();
        steps.find(|step| step.name() == name).map(AsRef::as_ref)
    }

    /// Returns the names of the steps, in order.
    #[must_use]
    pub fn names(&self) -> Vec<&'static str> {
        self.0.iter().map(|step| step.name()).collect()
    }
}

impl<K: JobKind> Default for Steps<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K> Debug for Steps<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Steps").field(&self.0.len()).finish()
    }
}

/// A step whose output type is erased.
#[async_trait]
pub(super) trait ErasedStep<K: JobKind>: Send + Sync {
    fn name(&self) -> &'static str;
    fn timeout(&self) -> Duration;
    fn records(&self) -> bool;
    fn undoes(&self) -> bool;
    async fn observe(&self, cx: &StepContext<'_, K>) -> Result<Observation<Value>, StepError>;
    async fn apply(&self, cx: &StepContext<'_, K>) -> Result<Value, StepError>;
    async fn record(
        &self,
        cx: &JobContext<'_, K>,
        uow: &mut dyn UnitOfWork,
        output: &Value,
    ) -> Result<()>;
    async fn record_wait(
        &self,
        cx: &JobContext<'_, K>,
        uow: &mut dyn UnitOfWork,
        found: &Value,
    ) -> Result<()>;
    async fn undo(&self, cx: &StepContext<'_, K>) -> Result<Undone, StepError>;
    async fn record_undo(
        &self,
        cx: &JobContext<'_, K>,
        uow: &mut dyn UnitOfWork,
        undone: &Undone,
    ) -> Result<()>;
}

#[async_trait]
impl<K: JobKind, S: JobStep<K>> ErasedStep<K> for S {
    fn name(&self) -> &'static str {
        JobStep::name(self)
    }

    fn timeout(&self) -> Duration {
        JobStep::timeout(self)
    }

    fn records(&self) -> bool {
        S::HAS_RECORD
    }

    fn undoes(&self) -> bool {
        S::CAN_UNDO
    }

    async fn observe(&self, cx: &StepContext<'_, K>) -> Result<Observation<Value>, StepError> {
        Ok(match JobStep::observe(self, cx).await? {
            Observation::Absent => Observation::Absent,
            Observation::Outdated => Observation::Outdated,
            Observation::Conflict(what) => Observation::Conflict(what),
            Observation::Present(output) => Observation::Present(to_json(&output)?),
        })
    }

    async fn apply(&self, cx: &StepContext<'_, K>) -> Result<Value, StepError> {
        let output = JobStep::apply(self, cx).await?;
        Ok(to_json(&output)?)
    }

    async fn record(
        &self,
        cx: &JobContext<'_, K>,
        uow: &mut dyn UnitOfWork,
        output: &Value,
    ) -> Result<()> {
        let output = output_of::<K, S>(self, output)?;
        JobStep::record(self, cx, uow, &output).await
    }

    async fn record_wait(
        &self,
        cx: &JobContext<'_, K>,
        uow: &mut dyn UnitOfWork,
        found: &Value,
    ) -> Result<()> {
        let found = output_of::<K, S>(self, found)?;
        JobStep::record_wait(self, cx, uow, &found).await
    }

    async fn undo(&self, cx: &StepContext<'_, K>) -> Result<Undone, StepError> {
        JobStep::undo(self, cx).await
    }

    async fn record_undo(
        &self,
        cx: &JobContext<'_, K>,
        uow: &mut dyn UnitOfWork,
        undone: &Undone,
    ) -> Result<()> {
        JobStep::record_undo(self, cx, uow, undone).await
    }
}

fn output_of<K: JobKind, S: JobStep<K>>(step: &S, output: &Value) -> Result<S::Output> {
    S::Output::deserialize(output).map_err(|error| {
        let name = JobStep::name(step);
        Error::Internal(format!(
            "the stored output of step {name} cannot be decoded: {error}"
        ))
    })
}
