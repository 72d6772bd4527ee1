//! Job kinds. A kind has a name, a version, a typed input and a list of typed steps. Also defines the contexts that
//! steps and hooks receive.

use std::fmt::Debug;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::step_error::{Observation, StepError, Undone, to_json};
use crate::access::{PlatformWriter, SystemScope};
use crate::kernel::{
    Context, EntityId, Environment, Error, JobId, PlatformId, PlatformOwned, RequestInfo, Result,
    Unowned,
};
use crate::port::{Blobs, Infrastructure, Mode, Store, UnitOfWork};
use crate::provisioning::{DEFAULT_DEADLINE, FirstObservation, Job, LaneKey, LanePlace, Step};

/// The input of a job kind. It is stored with the job as JSON and must not contain secrets.
pub trait JobInput: Serialize + DeserializeOwned + Clone + Debug + Send + Sync + 'static {
    /// The owner of the job: [`PlatformOwned`] or [`Unowned`]. Decides which scopes can create the job, and what its
    /// hooks receive as [`JobContext::scope`].
    type Owner: JobOwner;

    /// Returns the lane in which the job runs. Only jobs for a platform can run in its lanes.
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

/// The owner of jobs.
#[async_trait]
pub trait JobOwner: 'static {
    /// The scope that hooks and [`JobStep::record`] receive.
    type Scope: Debug + Send + Sync;

    /// Returns the scope of a job; `None` if the job's platform does not exist.
    ///
    /// # Errors
    /// Only those of the store.
    async fn scope(job: &Job, uow: &mut dyn UnitOfWork) -> Result<Option<Self::Scope>>;
}

#[async_trait]
impl JobOwner for PlatformOwned {
    type Scope = PlatformWriter;

    async fn scope(job: &Job, uow: &mut dyn UnitOfWork) -> Result<Option<PlatformWriter>> {
        platform_of(job, uow).await
    }
}

#[async_trait]
impl JobOwner for Unowned {
    type Scope = ();

    async fn scope(_job: &Job, _uow: &mut dyn UnitOfWork) -> Result<Option<()>> {
        Ok(Some(()))
    }
}

/// The scope that hooks and [`JobStep::record`] of a kind receive.
type ScopeOf<K> = <<<K as JobKind>::Input as JobInput>::Owner as JobOwner>::Scope;

/// A kind of job. The hooks write into the unit of work that contains the transition of the job. They do not run if the
/// job belongs to a platform that no longer exists.
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

    /// Replaces [`JobKind::on_resumed`] if the job's platform no longer exists. Default: allows the transition.
    ///
    /// # Errors
    /// Any error prevents the transition; the job stays `FAILED`.
    fn on_resumed_without_platform() -> Result<()> {
        Ok(())
    }
}

/// A step of a kind. After a crash, every method may be called again. So derive the name of every object that a step
/// creates from the purpose of the object. The methods that write are not called if the job belongs to a platform that
/// no longer exists.
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
    /// the first observation was [`FirstObservation::Absent`]; otherwise the engine keeps the object. `cx.job` is the
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

/// Checks that a worker still holds a job.
#[async_trait]
pub(super) trait Guard: Debug + Send + Sync {
    /// Reads the fence from the store. The read starts after the call.
    ///
    /// # Errors
    /// [`StepError::LeaseLost`] if the worker no longer holds the job; another error if the fence could not be read.
    async fn check(&self) -> Result<(), StepError>;
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

/// A call of a step that has an effect or observes one.
#[derive(Clone, Copy, Debug)]
pub(super) struct StepCall<'a> {
    /// The job. For an undo job, the undone job.
    pub(super) job: &'a Job,
    /// The stored name of the step.
    pub(super) step: &'a str,
    /// The services that the step can use.
    pub(super) ports: StepPorts<'a>,
}

impl<'a> StepCall<'a> {
    /// Returns the stored step.
    pub(super) fn stored_step(&self) -> Option<&'a Step> {
        stored_step(self.job, self.step)
    }
}

/// Returns the stored step of a job with this name.
pub(super) fn stored_step<'a>(job: &'a Job, name: &str) -> Option<&'a Step> {
    job.steps.iter().find(|step| step.name == name)
}

impl<'a, K: JobKind> Deref for StepContext<'a, K> {
    type Target = StepPorts<'a>;

    fn deref(&self) -> &StepPorts<'a> {
        &self.ports
    }
}

impl<'a, K: JobKind> StepContext<'a, K> {
    fn new(kind: &'a K, input: &'a K::Input, call: StepCall<'a>) -> Self {
        Self {
            kind,
            job: call.job,
            input,
            item: split_name(call.step).1,
            first_look: call.stored_step().and_then(|stored| stored.first_look),
            ports: call.ports,
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

    /// Begins a unit of work for reading. Returns it with the current state of the job's platform: `None` if the job has
    /// no platform or the platform was deleted.
    ///
    /// # Errors
    /// Only those of the store.
    pub async fn read(&self) -> Result<(Box<dyn UnitOfWork>, Option<PlatformWriter>)> {
        let mut uow = self.store.begin(Mode::Read).await?;
        let platform = platform_of(self.job, uow.as_mut()).await?;
        Ok((uow, platform))
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

/// A call of a hook, or of a step that writes.
#[derive(Clone, Copy, Debug)]
pub(super) struct WriteCall<'a> {
    /// The job. For an undo job, the undone job.
    pub(super) job: &'a Job,
    /// The stored name of the step; `None` for a hook.
    pub(super) step: Option<&'a str>,
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
    /// The writer of the job's platform; `()` for a kind that belongs to no platform.
    pub scope: ScopeOf<K>,
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
    /// Creates the context of a call; `None` if the job belongs to a platform that no longer exists.
    async fn open(
        kind: &'a K,
        input: &'a K::Input,
        call: WriteCall<'a>,
        uow: &mut dyn UnitOfWork,
    ) -> Result<Option<Self>> {
        let scope = <K::Input as JobInput>::Owner::scope(call.job, uow).await?;
        Ok(scope.map(|scope| Self {
            kind,
            job: call.job,
            input,
            item: call.step.and_then(|step| split_name(step).1),
            scope,
            canceller: call.canceller,
            cx: context_for_job(call.cx, call.job),
        }))
    }
}

impl<K> JobContext<'_, K>
where
    K: JobKind<Input: JobInput<Owner = PlatformOwned>>,
{
    /// Cancels a batch of the platform's other jobs, see [`JobCanceller::cancel_some`]. Returns `true` if there are
    /// more.
    pub(in crate::use_case) async fn cancel_other_jobs(
        &self,
        uow: &mut dyn UnitOfWork,
        reason: &str,
    ) -> Result<bool> {
        let own = &self.job.id;
        self.canceller
            .cancel_some(&self.cx, &self.scope, uow, own, reason)
            .await
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

/// Returns the name of a step without its item, and the item.
pub(super) fn split_name(step: &str) -> (&str, Option<&str>) {
    match step.split_once(':') {
        Some((name, item)) => (name, Some(item)),
        None => (step, None),
    }
}

/// Decodes the input of a job.
fn input_of<K: JobKind>(job: &Job) -> Result<K::Input> {
    K::Input::deserialize(&job.input).map_err(|error| {
        let message = format!("is not valid for the job kind {}: {error}", K::NAME);
        Error::invalid("input", "invalid", message)
    })
}

/// A step that still needs the kind to which it belongs.
type NewStep<K> = Box<dyn FnOnce(Arc<K>) -> Arc<dyn ErasedStep>>;

/// The steps of a kind, in order.
pub struct Steps<K>(Vec<(&'static str, NewStep<K>)>);

impl<K: JobKind> Steps<K> {
    /// Creates an empty list of steps.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Appends a step to the list.
    #[must_use]
    pub fn step(mut self, step: impl JobStep<K>) -> Self {
        let name = step.name();
        let new = move |kind| Arc::new(TypedStep { kind, step }) as Arc<dyn ErasedStep>;
        self.0.push((name, Box::new(new)));
        self
    }

    /// Appends several steps of one type.
    #[must_use]
    pub fn steps<S: JobStep<K>>(self, steps: impl IntoIterator<Item = S>) -> Self {
        steps.into_iter().fold(self, Self::step)
    }

    /// Returns the names of the steps, in order.
    #[must_use]
    pub fn names(&self) -> Vec<&'static str> {
        self.0.iter().map(|(name, _)| *name).collect()
    }

    /// Returns the steps of a kind with their types erased.
    pub(super) fn into_erased_steps(self, kind: &Arc<K>) -> Vec<Arc<dyn ErasedStep>> {
        let steps = self.0.into_iter();
        steps.map(|(_, new)| new(Arc::clone(kind))).collect()
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

/// A step of a registered kind with its types erased. It decodes the input of the job and the outputs of the step. The
/// engine knows steps only by this trait.
#[async_trait]
pub(super) trait ErasedStep: Debug + Send + Sync {
    fn name(&self) -> &'static str;
    fn timeout(&self) -> Duration;
    /// Returns `true` if the end of the step writes anything besides the job.
    fn has_record(&self) -> bool;
    /// Returns `true` if cancelling a job undoes this step.
    fn can_undo(&self) -> bool;
    async fn observe(&self, call: StepCall<'_>) -> Result<Observation<Value>, StepError>;
    /// Creates the effect, after checking that this worker still holds the job.
    async fn apply(&self, call: StepCall<'_>) -> Result<Value, StepError>;
    /// Removes the effect, after checking that this worker still holds the job.
    async fn undo(&self, call: StepCall<'_>) -> Result<Undone, StepError>;
    async fn record(
        &self,
        call: WriteCall<'_>,
        uow: &mut dyn UnitOfWork,
        result: StepResult<'_>,
    ) -> Result<()>;
}

/// A result of a step whose consequences are written.
#[derive(Clone, Copy, Debug)]
pub(super) enum StepResult<'a> {
    /// The output of the step.
    Output(&'a Value),
    /// The intermediate output of a step that waits or has done a part.
    Found(&'a Value),
    /// The outcome of the undo.
    Undone(&'a Undone),
}

/// A step and the kind to which it belongs.
#[derive(Debug)]
struct TypedStep<K, S> {
    kind: Arc<K>,
    step: S,
}

impl<K: JobKind, S: JobStep<K>> TypedStep<K, S> {
    /// Decodes an output of the step.
    fn decode(&self, output: &Value) -> Result<S::Output> {
        S::Output::deserialize(output).map_err(|error| {
            let name = self.step.name();
            Error::Internal(format!(
                "the stored output of step {name} cannot be decoded: {error}"
            ))
        })
    }
}

#[async_trait]
impl<K: JobKind, S: JobStep<K>> ErasedStep for TypedStep<K, S> {
    fn name(&self) -> &'static str {
        self.step.name()
    }

    fn timeout(&self) -> Duration {
        self.step.timeout()
    }

    fn has_record(&self) -> bool {
        S::HAS_RECORD
    }

    fn can_undo(&self) -> bool {
        S::CAN_UNDO
    }

    async fn observe(&self, call: StepCall<'_>) -> Result<Observation<Value>, StepError> {
        let input = input_of::<K>(call.job)?;
        let cx = StepContext::new(self.kind.as_ref(), &input, call);
        Ok(match self.step.observe(&cx).await? {
            Observation::Absent => Observation::Absent,
            Observation::Outdated => Observation::Outdated,
            Observation::Conflict(what) => Observation::Conflict(what),
            Observation::Present(output) => Observation::Present(to_json(&output)?),
        })
    }

    async fn apply(&self, call: StepCall<'_>) -> Result<Value, StepError> {
        let input = input_of::<K>(call.job)?;
        let cx = StepContext::new(self.kind.as_ref(), &input, call);
        cx.guard().await?;
        Ok(to_json(&self.step.apply(&cx).await?)?)
    }

    async fn undo(&self, call: StepCall<'_>) -> Result<Undone, StepError> {
        let input = input_of::<K>(call.job)?;
        let cx = StepContext::new(self.kind.as_ref(), &input, call);
        cx.guard().await?;
        self.step.undo(&cx).await
    }

    async fn record(
        &self,
        call: WriteCall<'_>,
        uow: &mut dyn UnitOfWork,
        result: StepResult<'_>,
    ) -> Result<()> {
        let input = input_of::<K>(call.job)?;
        let Some(cx) = JobContext::open(self.kind.as_ref(), &input, call, uow).await? else {
            return Ok(());
        };
        match result {
            StepResult::Output(output) => self.step.record(&cx, uow, &self.decode(output)?).await,
            StepResult::Found(found) => self.step.record_wait(&cx, uow, &self.decode(found)?).await,
            StepResult::Undone(undone) => self.step.record_undo(&cx, uow, undone).await,
        }
    }
}

/// The hook of a job's kind that a transition runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hook {
    Completed,
    Failed,
    Resumed,
}

/// The hooks of a registered kind with its types erased.
#[async_trait]
pub(super) trait ErasedHooks: Debug + Send + Sync {
    async fn run(&self, hook: Hook, call: WriteCall<'_>, uow: &mut dyn UnitOfWork) -> Result<()>;
}

#[async_trait]
impl<K: JobKind> ErasedHooks for K {
    async fn run(&self, hook: Hook, call: WriteCall<'_>, uow: &mut dyn UnitOfWork) -> Result<()> {
        let input = input_of::<K>(call.job)?;
        let cx = JobContext::open(self, &input, call, uow).await?;
        match (hook, &cx) {
            (Hook::Completed, Some(cx)) => self.on_completed(cx, uow).await,
            (Hook::Failed, Some(cx)) => self.on_failed(cx, uow).await,
            (Hook::Resumed, Some(cx)) => self.on_resumed(cx, uow).await,
            (Hook::Resumed, None) => K::on_resumed_without_platform(),
            (Hook::Completed | Hook::Failed, None) => Ok(()),
        }
    }
}
