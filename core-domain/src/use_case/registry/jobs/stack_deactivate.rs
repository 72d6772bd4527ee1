//! `stack.deactivate`: removes the objects and features of a workspace stack in its environment, in the reverse order
//! of their creation. Data is only removed on request.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::removal::{Attempt, RemoveObjects, RemovesObjects};
use super::stack::{
    POLL_INTERVAL, StackInput, StackWork, ensure_needed, ensure_not_failed_for, remove_or_reassign,
};
use super::stack_records;
use super::target::StackTarget;
use crate::access::PlatformAccess;
use crate::kernel::{Error, Result, Stored};
use crate::port::{Mode, UnitOfWork};
use crate::provisioning::Job;
use crate::registry::{
    DEFAULT_RESOURCES, FeatureActivation, FeatureStatus, Resource, ResourceType, WorkspaceStack,
    WorkspaceStackEvent, WorkspaceStackStatus,
};
use crate::use_case::provisioning::{
    JobContext, JobKind, JobStep, Observation, StepContext, StepError, Steps,
};
use crate::use_case::registry::feature_state;

/// The name of the step that deactivates the features.
const FEATURES: &str = "features";

/// Returns the types of a stack's objects in the reverse order of their creation.
fn newest_first() -> impl Iterator<Item = ResourceType> {
    DEFAULT_RESOURCES.into_iter().rev().map(|(of, _)| of)
}

/// The work of a deactivation job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::use_case::registry) struct StackRemoval {
    /// Whether the data of the stack is removed too.
    pub(in crate::use_case::registry) delete_data: bool,
}

impl StackWork for StackRemoval {
    fn needs_job(stack: &WorkspaceStack, _job: &Job) -> bool {
        stack.status == WorkspaceStackStatus::Deactivating
    }
}

/// The job kind `stack.deactivate`.
#[derive(Clone, Copy, Debug)]
pub(in crate::use_case::registry) struct StackDeactivate;

#[async_trait]
impl JobKind for StackDeactivate {
    const NAME: &'static str = "stack.deactivate";
    type Input = StackInput<StackRemoval>;

    fn steps() -> Steps<Self> {
        let steps = Steps::new().step(RemoveFeatures);
        steps.steps(newest_first().map(|of_type| RemoveObjects(PartsOfType(of_type))))
    }

    fn plan(input: &Self::Input) -> Vec<String> {
        let wanted = newest_first().filter(|t| input.work.delete_data || !t.is_store());
        let mut steps: Vec<String> = wanted.map(|t| t.as_str().to_owned()).collect();
        // Features are removed after the sites, which may use them.
        steps.insert(1, FEATURES.to_owned());
        steps
    }

    async fn on_completed(
        &self,
        cx: &JobContext<'_, Self>,
        uow: &mut dyn UnitOfWork,
    ) -> Result<()> {
        apply_event(cx, uow, WorkspaceStackEvent::Deactivated).await
    }

    async fn on_failed(&self, cx: &JobContext<'_, Self>, uow: &mut dyn UnitOfWork) -> Result<()> {
        apply_event(cx, uow, WorkspaceStackEvent::Fail).await
    }

    async fn on_resumed(&self, cx: &JobContext<'_, Self>, uow: &mut dyn UnitOfWork) -> Result<()> {
        apply_event(cx, uow, WorkspaceStackEvent::Deactivate).await?;
        for feature in features(cx, uow).await? {
            if feature.status == FeatureStatus::Failed {
                remove(cx, uow, &feature).await?;
            }
        }
        Ok(())
    }
}

/// Applies an event of the job to the stack.
async fn apply_event(
    cx: &JobContext<'_, StackDeactivate>,
    uow: &mut dyn UnitOfWork,
    event: WorkspaceStackEvent,
) -> Result<()> {
    let (stack, job) = (&cx.input.target.stack_instance_id, &cx.job.id);
    stack_records::record_event(cx, &cx.scope, uow, stack, job, event).await
}

/// The stack's objects of one type.
#[derive(Clone, Copy, Debug)]
struct PartsOfType(ResourceType);

#[async_trait]
impl RemovesObjects<StackDeactivate> for PartsOfType {
    fn name(&self) -> &'static str {
        self.0.as_str()
    }

    async fn ensure_needed(&self, cx: &StepContext<'_, StackDeactivate>) -> Result<(), StepError> {
        ensure_needed(cx).await
    }

    async fn remove(
        &self,
        attempt: &mut Attempt<'_, '_, StackDeactivate>,
    ) -> Result<(), StepError> {
        let target = &attempt.cx().input.target;
        let is_removed = |resource: &Resource| {
            self.0 == resource.resource_type && stack_records::is_part(target, resource)
        };
        let of_stack = stack_records::of_stack(target);
        attempt.remove_resources(of_stack, is_removed).await
    }
}

/// Queues jobs that deactivate the features of the stack, and waits for them.
#[derive(Clone, Copy, Debug)]
struct RemoveFeatures;

#[async_trait]
impl JobStep<StackDeactivate> for RemoveFeatures {
    const HAS_RECORD: bool = false;
    type Output = ();

    fn name(&self) -> &'static str {
        FEATURES
    }

    async fn observe(
        &self,
        cx: &StepContext<'_, StackDeactivate>,
    ) -> Result<Observation<()>, StepError> {
        ensure_needed(cx).await?;
        let target = &cx.input.target;
        let (mut uow, platform) = cx.read().await?;
        let platform = platform.ok_or(Error::NotFound("platform"))?;
        let features = of_stack(&platform, uow.as_mut(), target).await?;
        if features.is_empty() {
            return Ok(Observation::Present(()));
        }
        for feature in &features {
            if feature.status == FeatureStatus::Failed {
                ensure_not_failed_for(cx.job, uow.as_mut(), feature).await?;
            }
        }
        let on_their_way =
            |feature: &Stored<FeatureActivation>| feature.status == FeatureStatus::Deactivating;
        if !features.iter().all(on_their_way) {
            return Ok(Observation::Absent);
        }
        Err(StepError::Wait {
            until: uow.now().await?.plus(POLL_INTERVAL),
            reason: "the features of the stack".to_owned(),
            output: None,
        })
    }

    async fn apply(&self, cx: &StepContext<'_, StackDeactivate>) -> Result<(), StepError> {
        let mut uow = cx.store.begin(Mode::Auto).await?;
        let until = uow.now().await?.plus(POLL_INTERVAL);
        Err(StepError::wait_with(
            until,
            "the features of the stack",
            &(),
        )?)
    }

    async fn record_wait(
        &self,
        cx: &JobContext<'_, StackDeactivate>,
        uow: &mut dyn UnitOfWork,
        (): &(),
    ) -> Result<()> {
        for feature in features(cx, uow).await? {
            if feature.status != FeatureStatus::Deactivating {
                remove(cx, uow, &feature).await?;
            }
        }
        Ok(())
    }
}

/// Returns the features that the stack activated and that are not inactive.
async fn of_stack(
    platform: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    target: &StackTarget,
) -> Result<Vec<Stored<FeatureActivation>>> {
    let (entity, stack) = (&target.entity_id, &target.stack_instance_id);
    feature_state::of_stack(platform, uow, entity, stack, target.environment).await
}

/// Returns the features of the job's stack.
async fn features(
    cx: &JobContext<'_, StackDeactivate>,
    uow: &mut dyn UnitOfWork,
) -> Result<Vec<Stored<FeatureActivation>>> {
    of_stack(&cx.scope, uow, &cx.input.target).await
}

/// Removes a feature of the stack, or assigns it to another stack that includes it.
async fn remove(
    cx: &JobContext<'_, StackDeactivate>,
    uow: &mut dyn UnitOfWork,
    seen: &Stored<FeatureActivation>,
) -> Result<()> {
    let (delete_data, parent) = (cx.input.work.delete_data, Some(&cx.job.id));
    let target = &cx.input.target;
    remove_or_reassign(cx, &cx.scope, uow, target, seen, delete_data, parent).await
}
