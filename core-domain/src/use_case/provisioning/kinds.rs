//! The registry of the job kinds that a process knows.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;

use super::kind::{
    ErasedHooks, ErasedStep, JobKind, StepCall, StepResult, WriteCall, split_name, stored_step,
};
use super::step_error::{Observation, StepError, Undone};
use crate::kernel::Result;
use crate::port::UnitOfWork;
use crate::provisioning::{LanePlace, Step, is_undo_kind, undo_kind_of};

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
pub struct Kinds(BTreeMap<String, RegisteredKind>);

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
        let kind = Arc::new(kind);
        let steps = steps.into_erased_steps(&kind);
        let registered = RegisteredKind {
            place: K::PLACE,
            deadline: K::DEADLINE,
            longest_timeout: steps
                .iter()
                .map(|step| step.timeout())
                .max()
                .unwrap_or_default(),
            hooks: K::HAS_HOOKS.then_some(kind),
            steps,
        };
        let undo = registered.undo_kind();
        let all = self.add(K::NAME.to_owned(), registered)?;
        match undo {
            Some(undo) => all.add(undo_kind_of(K::NAME), undo),
            None => Ok(all),
        }
    }

    fn add(mut self, name: String, kind: RegisteredKind) -> Result<Self, KindError> {
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

    pub(super) fn get(&self, name: &str) -> Option<&RegisteredKind> {
        self.0.get(name)
    }

    /// Returns the names of all kinds, including undo kinds.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }
}

/// A kind whose types are erased.
#[derive(Clone, Debug)]
pub(super) struct RegisteredKind {
    /// The place in its lane of a job that is created, retried or replayed.
    pub(super) place: LanePlace,
    /// The time from the creation of a job to its deadline.
    pub(super) deadline: Duration,
    /// The longest timeout of all steps.
    pub(super) longest_timeout: Duration,
    /// The hooks; `None` if the kind has none.
    pub(super) hooks: Option<Arc<dyn ErasedHooks>>,
    steps: Vec<Arc<dyn ErasedStep>>,
}

impl RegisteredKind {
    /// Returns the step with this name; an item in the name is ignored.
    pub(super) fn step(&self, name: &str) -> Option<&dyn ErasedStep> {
        let (name, _) = split_name(name);
        let mut steps = self.steps.iter();
        steps.find(|step| step.name() == name).map(AsRef::as_ref)
    }

    /// Returns the undo kind; `None` if no step can be undone.
    fn undo_kind(&self) -> Option<Self> {
        let undoable = self.steps.iter().filter(|step| step.can_undo());
        let steps: Vec<_> = undoable
            .map(|step| Arc::new(UndoStep(Arc::clone(step))) as Arc<dyn ErasedStep>)
            .collect();
        (!steps.is_empty()).then(|| Self {
            // The undo job goes first. Jobs created later may create the same objects again, and a later undo would
            // remove them.
            place: LanePlace::Front,
            hooks: None,
            steps,
            ..*self
        })
    }
}

/// The step of an undo kind that undoes a step. It is called with the undone job.
#[derive(Debug)]
struct UndoStep(Arc<dyn ErasedStep>);

/// Returns `true` if the step may still have an effect. `false` if another undo job has already undone it: after a
/// clock was set back, an older undo job may appear to be the newest and be retried.
fn may_have_effect(step: &&Step) -> bool {
    step.status.may_have_effect()
}

#[async_trait]
impl ErasedStep for UndoStep {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn timeout(&self) -> Duration {
        self.0.timeout()
    }

    fn has_record(&self) -> bool {
        true
    }

    fn can_undo(&self) -> bool {
        false
    }

    /// Always reports the effect as absent, so that `apply` runs. `JobStep::undo` observes the object itself.
    async fn observe(&self, _call: StepCall<'_>) -> Result<Observation<Value>, StepError> {
        Ok(Observation::Absent)
    }

    async fn apply(&self, call: StepCall<'_>) -> Result<Value, StepError> {
        Ok(self.undo(call).await?.output())
    }

    /// Undoes the step if its first observation found no object; otherwise keeps the object.
    async fn undo(&self, call: StepCall<'_>) -> Result<Undone, StepError> {
        let Some(done) = call.stored_step().filter(may_have_effect) else {
            return Ok(Undone::kept_because("another undo job removed it"));
        };
        match done.keep_reason() {
            Some(why) => Ok(Undone::kept_because(why)),
            None => self.0.undo(call).await,
        }
    }

    /// Records the outcome of the undo. Records nothing while it waits: an undo finds out its progress by observing.
    async fn record(
        &self,
        call: WriteCall<'_>,
        uow: &mut dyn UnitOfWork,
        result: StepResult<'_>,
    ) -> Result<()> {
        let stored = call.step.and_then(|name| stored_step(call.job, name));
        match result {
            StepResult::Output(output) if stored.as_ref().is_some_and(may_have_effect) => {
                let undone = Undone::of_output(output);
                self.0.record(call, uow, StepResult::Undone(&undone)).await
            }
            _ => Ok(()),
        }
    }
}
