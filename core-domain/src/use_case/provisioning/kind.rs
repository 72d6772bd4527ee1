//! Kinds of jobs: a name, a version, a typed input and a list of typed steps, and what steps and hooks are given.

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
use crate::provisioning::{DEADLINE, FirstLook, Job, LaneKey, LanePlace};

/// What a kind of job is asked to do: kept with the job as JSON; never a secret.
pub trait JobInput: Serialize + DeserializeOwned + Clone + Debug + Send + Sync + 'static {
    /// Whose the job is: [`PlatformOwned`](crate::kernel::PlatformOwned) or [`Unowned`](crate::kernel::Unowned).
    /// Decides which scopes can queue it.
    type Owner;

    /// The lane the job runs in.
    fn lane(&self) -> LaneKey;

    /// The platform it works for.
    fn platform_id(&self) -> Option<&PlatformId>;

    /// The entity it works for, if it is about one.
    fn entity_id(&self) -> Option<&EntityId> {
        None
    }

    /// The environment it works in, if it is about one.
    fn environment(&self) -> Option<Environment> {
        None
    }

    /// Returns the idempotency key. A second creation with the same kind, platform and key returns the first job. `None`
    /// creates a new job every time.
    fn idempotency_key(&self) -> Option<String> {
        None
    }
}

/// A kind of job. The hooks write into the unit of work that moves the job.
#[async_trait]
pub trait JobKind: Debug + Send + Sync + Sized + 'static {
    /// Its name: `platform.deprovision`.
    const NAME: &'static str;

    /// The version of its list of steps, kept with every job.
    const VERSION: i64 = 1;

    /// Where a new job of it goes in its lane, and one that is retried.
    const PLACE: LanePlace = LanePlace::Tail;

    /// Whether its hooks write anything. Those of a kind that says `false` are not called, and the ends of its jobs are
    /// written together with those of others.
    const HOOKS: bool = true;

    /// How long a job of it may take from its creation, or from an operator's retry, to its end.
    const DEADLINE: Duration = DEADLINE;

    /// What it is asked to do.
    type Input: JobInput;

    /// Its steps, in order. A job keeps the list it was created with, so a step that jobs may still name stays.
    fn steps() -> Steps<Self>;

    /// The names of the steps of a job with this input, in order: all of [`JobKind::steps`], unless the input decides. A
    /// step that is worked on once for each of several items is named `{step}:{item}`; no name stands twice.
    fn plan(_input: &Self::Input) -> Vec<String> {
        let names = Self::steps().names();
        names.into_iter().map(str::to_owned).collect()
    }

    /// The job has completed; `job.forced` tells whether an operator said so.
    ///
    /// # Errors
    /// When it cannot be written; the job then does not complete.
    async fn completed(&self, _cx: &JobContext<'_, Self>, _uow: &mut dyn UnitOfWork) -> Result<()> {
        Ok(())
    }

    /// The job has stopped; `job.failure_kind` tells why.
    ///
    /// # Errors
    /// When it cannot be written. A refusal (any error but the store's) does not keep the job from stopping, so check
    /// before the first write.
    async fn failed(&self, _cx: &JobContext<'_, Self>, _uow: &mut dyn UnitOfWork) -> Result<()> {
        Ok(())
    }

    /// The job had stopped and an operator lets it go on.
    ///
    /// # Errors
    /// When it cannot be written; the job then stays where it is.
    async fn resumed(&self, _cx: &JobContext<'_, Self>, _uow: &mut dyn UnitOfWork) -> Result<()> {
        Ok(())
    }
}

/// A step of a kind. Every method may be called again after a crash at any point, so give every object a name derived
/// from what it is for.
#[async_trait]
pub trait JobStep<K: JobKind>: Send + Sync + Debug + 'static {
    /// Whether [`JobStep::record`] writes anything. That of a step that says `false` is not called, and its end is written
    /// together with those of other jobs' steps.
    const RECORDS: bool = true;

    /// `true` if cancelling a job undoes this step with [`JobStep::undo`]. Default: `false`. The first observation of such a
    /// step is stored in a unit of work of its own.
    const UNDOES: bool = false;

    /// What the step leaves for those after it, and for the record of the job: at most 64 KiB, no secrets.
    type Output: Serialize + DeserializeOwned + Send + Sync;

    /// Its name, unique in the kind.
    fn name(&self) -> &'static str;

    /// Looks whether the effect has happened.
    ///
    /// # Errors
    /// [`StepError`] when that cannot be told now.
    async fn observe(
        &self,
        cx: &StepContext<'_, K>,
    ) -> Result<Observation<Self::Output>, StepError>;

    /// Makes the effect and answers the step's output.
    ///
    /// # Errors
    /// [`StepError`] says whether it is worth another try.
    async fn apply(&self, cx: &StepContext<'_, K>) -> Result<Self::Output, StepError>;

    /// Writes what the output means into the unit of work that ends the step.
    ///
    /// # Errors
    /// When it cannot be written; the step then counts as failed.
    async fn record(
        &self,
        _cx: &JobContext<'_, K>,
        _uow: &mut dyn UnitOfWork,
        _output: &Self::Output,
    ) -> Result<()> {
        Ok(())
    }

    /// Writes what was found by an attempt that waits ([`StepError::wait_with`]), or done by one that goes on later
    /// ([`StepError::unfinished`]), into the unit of work that parks or releases the job.
    ///
    /// # Errors
    /// When it cannot be written; the attempt then counts as failed.
    async fn record_wait(
        &self,
        _cx: &JobContext<'_, K>,
        _uow: &mut dyn UnitOfWork,
        _found: &Self::Output,
    ) -> Result<()> {
        Ok(())
    }

    /// Removes the effect of the step, as far as it exists. Keeps objects of others and objects that others use. Called only
    /// if the first observation was [`FirstLook::Absent`]; otherwise the engine keeps the object. `cx.job` is the cancelled
    /// job with the outputs of its steps, and the effect key is that of the step.
    ///
    /// # Errors
    /// [`StepError`] says whether it is worth another try.
    async fn undo(&self, _cx: &StepContext<'_, K>) -> Result<Undone, StepError> {
        Ok(Undone::TakenBack)
    }

    /// Writes the result of the undo into the unit of work that ends it. `cx.job` is the cancelled job. Also called if the
    /// effect was kept.
    ///
    /// # Errors
    /// When it cannot be written; the undoing then counts as failed.
    async fn record_undo(
        &self,
        _cx: &JobContext<'_, K>,
        _uow: &mut dyn UnitOfWork,
        _undone: &Undone,
    ) -> Result<()> {
        Ok(())
    }

    /// How long one attempt may take.
    fn timeout(&self) -> Duration {
        Duration::from_secs(60)
    }
}

/// What a step works with besides its kind and its job.
#[derive(Clone, Copy, Debug)]
pub struct StepPorts<'a> {
    /// The same for every attempt of the step, different for all others.
    pub effect_key: &'a str,
    /// The provider.
    pub infrastructure: &'a dyn Infrastructure,
    /// Uploads that wait.
    pub blobs: &'a dyn Blobs,
    /// For reads of the step's own; writes belong into [`JobStep::record`].
    pub store: &'a dyn Store,
    pub(super) guard: &'a dyn Guard,
}

/// What a step is given.
#[derive(Debug)]
pub struct StepContext<'a, K: JobKind> {
    /// The kind, with what it was registered with.
    pub kind: &'a K,
    /// The job, as it was when the step began.
    pub job: &'a Job,
    /// What the job is asked to do.
    pub input: &'a K::Input,
    /// The item of a step that is worked on once for each of several, see [`JobKind::plan`].
    pub item: Option<&'a str>,
    /// The stored first observation, see [`Step::first_look`](crate::provisioning::Step::first_look).
    pub first_look: Option<FirstLook>,
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
        (item, first_look): (Option<&'a str>, Option<FirstLook>),
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
    pub fn was_there_before(&self) -> bool {
        self.first_look != Some(FirstLook::Absent)
    }

    /// Makes sure that the job is still ours; to be called right before every effect after the first.
    ///
    /// # Errors
    /// [`StepError::LeaseLost`] when it is not.
    pub async fn guard(&self) -> Result<(), StepError> {
        self.ports.guard.check().await
    }

    /// The platform the job works for, as it is now; `None` when it works for none or the platform is gone.
    ///
    /// # Errors
    /// When the store failed.
    pub async fn platform(&self, uow: &mut dyn UnitOfWork) -> Result<Option<PlatformWriter>> {
        platform_of(self.job, uow).await
    }
}

/// Cancels other jobs within the unit of work of a job.
#[async_trait]
pub(super) trait JobCanceller: Debug + Send + Sync {
    /// Cancels a portion of the unfinished jobs of a platform, oldest first, except the job `own`. Returns `true` if there
    /// are more.
    async fn cancel_some(
        &self,
        cx: &Context,
        platform: &PlatformWriter,
        uow: &mut dyn UnitOfWork,
        own: &JobId,
        reason: &str,
    ) -> Result<bool>;
}

/// The context of an engine write.
#[derive(Clone, Copy, Debug)]
pub(super) struct Writing<'a> {
    /// The context of the worker or of the operator.
    pub(super) cx: &'a Context,
    /// Cancels other jobs in the same unit of work.
    pub(super) canceller: &'a dyn JobCanceller,
}

/// What the hooks of a kind are given, and what a step records with. Dereferences to the [`Context`] of what the job
/// writes: the suite does it, for the request that queued the job.
#[derive(Debug)]
pub struct JobContext<'a, K: JobKind> {
    /// The kind, with what it was registered with.
    pub kind: &'a K,
    /// The job: before the move for a step that records, after it for a hook.
    pub job: &'a Job,
    /// What the job is asked to do.
    pub input: &'a K::Input,
    /// The item of a step that is worked on once for each of several; none for a hook.
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
        writing: Writing<'a>,
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

    /// Cancels a portion of the platform's other jobs, see [`JobCanceller::cancel_some`]. Returns `true` if there
    /// are more.
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

    /// The platform the job works for, as it is now; `None` when it works for none or the platform is gone.
    ///
    /// # Errors
    /// When the store failed.
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
    /// No steps yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds a step.
    #[must_use]
    pub fn then(mut self, step: impl JobStep<K>) -> Self {
        self.0.push(Box::new(step));
        self
    }

    /// Adds several steps of one type.
    #[must_use]
    pub fn then_all<S: JobStep<K>>(self, steps: impl IntoIterator<Item = S>) -> Self {
        steps.into_iter().fold(self, Self::then)
    }

    /// The step that a job means by this name, whatever its item.
    pub(super) fn find(&self, name: &str) -> Option<&dyn ErasedStep<K>> {
        let name = name.split_once(':').map_or(name, |(step, _)| step);
        let mut steps = self.0.iter();
        steps.find(|step| step.name() == name).map(AsRef::as_ref)
    }

    /// The names, in order.
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

/// A step whose output is erased.
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
        S::RECORDS
    }

    fn undoes(&self) -> bool {
        S::UNDOES
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
        Error::Internal(format!("the output of {name} is not its own: {error}"))
    })
}
