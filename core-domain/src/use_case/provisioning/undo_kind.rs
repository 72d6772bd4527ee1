//! The kind of job that undoes those of another kind.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;

use super::any_kind::{AnyKind, OpenJob, Opened, Registered};
use super::kind::{JobKind, StepPorts, Writing};
use super::step_error::{Observation, StepError, Undone};
use crate::kernel::Result;
use crate::port::UnitOfWork;
use crate::provisioning::{Job, LanePlace, Step};

/// Undoes the jobs of a kind: its steps are those that can be undone.
#[derive(Debug)]
pub(super) struct UndoKind<K>(pub(super) Arc<Registered<K>>);

impl<K: JobKind> AnyKind for UndoKind<K> {
    /// What comes later may make the same objects again: it would lose them to an undoing that comes after it.
    fn place(&self) -> LanePlace {
        LanePlace::Front
    }

    fn deadline(&self) -> Duration {
        K::DEADLINE
    }

    fn has_step(&self, name: &str) -> bool {
        self.0.undoes(name)
    }

    fn has_hooks(&self) -> bool {
        false
    }

    fn records(&self, _step: &str) -> bool {
        true
    }

    fn undoes(&self, _step: &str) -> bool {
        false
    }

    fn longest_timeout(&self) -> Duration {
        self.0.longest_timeout()
    }

    fn open<'a>(&'a self, job: &'a Job) -> Result<Box<dyn OpenJob + 'a>> {
        Ok(Box::new(OpenUndo(Opened::new(&self.0, job)?)))
    }
}

/// A job that is undone, with its input.
struct OpenUndo<'a, K: JobKind>(Opened<'a, K>);

impl<K: JobKind> OpenUndo<'_, K> {
    /// Returns a step of the undone job, unless another undo job has taken it back: after a clock was set back, an older undo
    /// job can be taken for the newest and be retried.
    fn done(&self, step: &str) -> Option<&Step> {
        let stored = self.0.stored(step);
        stored.filter(|step| step.status.may_have_happened())
    }
}

#[async_trait]
impl<K: JobKind> OpenJob for OpenUndo<'_, K> {
    fn timeout(&self, step: &str) -> Duration {
        self.0.timeout(step)
    }

    /// The undoing looks for itself.
    async fn observe(
        &self,
        _step: &str,
        _ports: StepPorts<'_>,
    ) -> Result<Observation<Value>, StepError> {
        Ok(Observation::Absent)
    }

    /// Undoes the step if its first observation found no object; otherwise keeps the object.
    async fn apply(&self, step: &str, ports: StepPorts<'_>) -> Result<Value, StepError> {
        let Some(done) = self.done(step) else {
            return Ok(Undone::left("another undoing took it back").output());
        };
        if let Some(why) = done.stays_because() {
            return Ok(Undone::left(why).output());
        }
        let cx = self.0.step_context(step, ports);
        cx.guard().await?;
        Ok(self.0.step(step)?.undo(&cx).await?.output())
    }

    async fn record(
        &self,
        step: &str,
        cx: Writing<'_>,
        uow: &mut dyn UnitOfWork,
        output: &Value,
    ) -> Result<()> {
        let Some(undone) = self.0.find(step).filter(|_| self.done(step).is_some()) else {
            return Ok(());
        };
        let cx = self.0.job_context(Some(step), cx);
        let outcome = Undone::of_output(output);
        undone.record_undo(&cx, uow, &outcome).await
    }

    /// Nothing: how far an undoing is, it finds out by looking.
    async fn record_wait(
        &self,
        _step: &str,
        _cx: Writing<'_>,
        _uow: &mut dyn UnitOfWork,
        _found: &Value,
    ) -> Result<()> {
        Ok(())
    }

    async fn completed(&self, _cx: Writing<'_>, _uow: &mut dyn UnitOfWork) -> Result<()> {
        Ok(())
    }

    async fn failed(&self, _cx: Writing<'_>, _uow: &mut dyn UnitOfWork) -> Result<()> {
        Ok(())
    }

    async fn resumed(&self, _cx: Writing<'_>, _uow: &mut dyn UnitOfWork) -> Result<()> {
        Ok(())
    }
}
