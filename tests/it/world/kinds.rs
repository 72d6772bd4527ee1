//! Job kinds with the same three steps. Their hooks write an audit entry in the unit that changes the job.

use std::time::Duration;

use async_trait::async_trait;
use core_domain::access::{AuditEvent, audited};
use core_domain::kernel::{PlatformId, Result, Unowned};
use core_domain::port::{Mode, ObjectRequest, ProviderObject, ResourceRef, UnitOfWork};
use core_domain::provisioning::{DEPROVISION, LaneKey, LanePlace};
use core_domain::registry::ResourceType;
use core_domain::use_case::provisioning::{
    JobContext, JobInput, JobKind, JobStep, Kinds, Observation, StepContext, StepError, Steps,
    Undone,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The names of the steps.
pub(crate) const STEPS: [&str; 3] = ["db", "bucket", "site"];

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) platform_id: PlatformId,
    pub(crate) key: Option<String>,
}

impl JobInput for Order {
    type Owner = Unowned;

    fn lane(&self) -> LaneKey {
        LaneKey::platform(&self.platform_id)
    }

    fn platform_id(&self) -> Option<&PlatformId> {
        Some(&self.platform_id)
    }

    fn idempotency_key(&self) -> Option<String> {
        self.key.clone()
    }
}

#[derive(Debug)]
pub(crate) struct TestKind<const FRONT: bool>;

pub(crate) type Work = TestKind<false>;
/// A kind that goes to the front of its lane, and that no suspension holds.
pub(crate) type Removal = TestKind<true>;

/// Returns the kinds of a process that knows only ordinary jobs.
pub(crate) fn work_alone() -> Kinds {
    Kinds::new().with(TestKind::<false>).unwrap()
}

/// A kind with the same steps and no hooks. Its outcomes are committed together with those of other jobs.
#[derive(Debug)]
pub(crate) struct Plain;

impl JobKind for Plain {
    const NAME: &'static str = "plain";
    const HAS_HOOKS: bool = false;
    type Input = Order;

    fn steps() -> Steps<Self> {
        Steps::new().steps(STEPS.map(MakePlainObject))
    }
}

/// A step like [`MakeObject`] that writes no record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MakePlainObject(&'static str);

#[async_trait]
impl JobStep<Plain> for MakePlainObject {
    const HAS_RECORD: bool = false;
    type Output = Value;

    fn name(&self) -> &'static str {
        self.0
    }

    async fn observe(&self, cx: &StepContext<'_, Plain>) -> Result<Observation<Value>, StepError> {
        MakeObject(self.0).observe(cx).await
    }

    async fn apply(&self, cx: &StepContext<'_, Plain>) -> Result<Value, StepError> {
        MakeObject(self.0).apply(cx).await
    }
}

/// A kind whose first and last steps are undone after a cancellation.
#[derive(Debug)]
pub(crate) struct Undoable;

impl JobKind for Undoable {
    const NAME: &'static str = "undoable";
    type Input = Order;

    fn steps() -> Steps<Self> {
        let [first, second, third] = STEPS;
        Steps::new()
            .step(MakeUndoable(first))
            .step(MakePatiently(second))
            .step(MakeUndoable(third))
    }
}

/// A step like [`MakeObject`] that waits until the object's address is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MakePatiently(&'static str);

impl MakePatiently {
    async fn wait_for_url(
        cx: &StepContext<'_, Undoable>,
        made: ProviderObject,
    ) -> Result<Value, StepError> {
        if made.url.is_some() {
            return Ok(json!({ "id": made.id }));
        }
        let now = cx.store.begin(Mode::Auto).await?.now().await?;
        Err(StepError::Wait {
            until: now.plus(Duration::from_secs(45)),
            reason: "its address".to_owned(),
            output: None,
        })
    }
}

#[async_trait]
impl JobStep<Undoable> for MakePatiently {
    type Output = Value;

    fn name(&self) -> &'static str {
        self.0
    }

    async fn observe(
        &self,
        cx: &StepContext<'_, Undoable>,
    ) -> Result<Observation<Value>, StepError> {
        let object = MakeObject(self.0).object(cx);
        match cx.infrastructure.observe(&object).await? {
            Some(made) => Ok(Observation::Present(Self::wait_for_url(cx, made).await?)),
            None => Ok(Observation::Absent),
        }
    }

    async fn apply(&self, cx: &StepContext<'_, Undoable>) -> Result<Value, StepError> {
        let made = MakeObject(self.0).make(cx).await?;
        Self::wait_for_url(cx, made).await
    }

    async fn record(
        &self,
        cx: &JobContext<'_, Undoable>,
        uow: &mut dyn UnitOfWork,
        _: &Value,
    ) -> Result<()> {
        leave_trace(cx, uow, "hook.recorded").await
    }
}

/// A step like [`MakeObject`] that can be undone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MakeUndoable(&'static str);

#[async_trait]
impl JobStep<Undoable> for MakeUndoable {
    const CAN_UNDO: bool = true;
    type Output = Value;

    fn name(&self) -> &'static str {
        self.0
    }

    async fn observe(
        &self,
        cx: &StepContext<'_, Undoable>,
    ) -> Result<Observation<Value>, StepError> {
        MakeObject(self.0).observe(cx).await
    }

    async fn apply(&self, cx: &StepContext<'_, Undoable>) -> Result<Value, StepError> {
        MakeObject(self.0).apply(cx).await
    }

    async fn record(
        &self,
        cx: &JobContext<'_, Undoable>,
        uow: &mut dyn UnitOfWork,
        _: &Value,
    ) -> Result<()> {
        leave_trace(cx, uow, "hook.recorded").await
    }

    async fn undo(&self, cx: &StepContext<'_, Undoable>) -> Result<Undone, StepError> {
        let object = MakeObject(self.0).object(cx);
        if cx.infrastructure.observe(&object).await?.is_some() {
            cx.guard().await?;
            cx.infrastructure.remove(&object, cx.effect_key).await?;
        }
        Ok(Undone::Removed)
    }

    async fn record_undo(
        &self,
        cx: &JobContext<'_, Undoable>,
        uow: &mut dyn UnitOfWork,
        _: &Undone,
    ) -> Result<()> {
        leave_trace(cx, uow, "hook.undone").await
    }
}

pub(crate) fn all() -> Kinds {
    let both = work_alone().with(TestKind::<true>).unwrap();
    both.with(Plain).unwrap().with(Undoable).unwrap()
}

#[async_trait]
impl<const FRONT: bool> JobKind for TestKind<FRONT> {
    const NAME: &'static str = if FRONT { DEPROVISION } else { "work" };
    const PLACE: LanePlace = if FRONT {
        LanePlace::Front
    } else {
        LanePlace::Tail
    };
    type Input = Order;

    fn steps() -> Steps<Self> {
        Steps::new().steps(STEPS.map(MakeObject))
    }

    async fn on_completed(
        &self,
        cx: &JobContext<'_, Self>,
        uow: &mut dyn UnitOfWork,
    ) -> Result<()> {
        leave_trace(cx, uow, "hook.completed").await
    }

    async fn on_failed(&self, cx: &JobContext<'_, Self>, uow: &mut dyn UnitOfWork) -> Result<()> {
        leave_trace(cx, uow, "hook.failed").await
    }

    async fn on_resumed(&self, cx: &JobContext<'_, Self>, uow: &mut dyn UnitOfWork) -> Result<()> {
        leave_trace(cx, uow, "hook.resumed").await
    }
}

async fn leave_trace<K: JobKind>(
    cx: &JobContext<'_, K>,
    uow: &mut dyn UnitOfWork,
    action: &'static str,
) -> Result<()> {
    let event = AuditEvent {
        action,
        entity_id: cx.job.id.to_string(),
        ..AuditEvent::default()
    };
    audited::record_event(cx, uow, event).await
}

/// A step that creates one object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MakeObject(pub(crate) &'static str);

impl MakeObject {
    fn object<K: JobKind>(&self, cx: &StepContext<'_, K>) -> ResourceRef {
        ResourceRef {
            resource_type: ResourceType::D1,
            name: format!("{}-{}", cx.job.id, self.0),
        }
    }

    async fn make<K: JobKind>(&self, cx: &StepContext<'_, K>) -> Result<ProviderObject, StepError> {
        let request = ObjectRequest {
            resource: self.object(cx),
            owner: "test".into(),
            effect_key: cx.effect_key.to_owned(),
            config: json!({}),
        };
        Ok(cx.infrastructure.create(&request).await?)
    }
}

#[async_trait]
impl<K: JobKind> JobStep<K> for MakeObject {
    type Output = Value;

    fn name(&self) -> &'static str {
        self.0
    }

    async fn observe(&self, cx: &StepContext<'_, K>) -> Result<Observation<Value>, StepError> {
        let found = cx.infrastructure.observe(&self.object(cx)).await?;
        Ok(found.map_or(Observation::Absent, |found| {
            Observation::Present(json!({ "id": found.id }))
        }))
    }

    async fn apply(&self, cx: &StepContext<'_, K>) -> Result<Value, StepError> {
        let made = self.make(cx).await?;
        Ok(json!({ "id": made.id }))
    }

    async fn record(
        &self,
        cx: &JobContext<'_, K>,
        uow: &mut dyn UnitOfWork,
        _: &Value,
    ) -> Result<()> {
        leave_trace(cx, uow, "hook.recorded").await
    }
}
