//! What the jobs of workspace stacks work for, and whether they are still called for.

use std::fmt::Debug;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::resource::ensure_wanted;
use crate::kernel::{EntityId, Environment, PlatformId, PlatformOwned, Slug, StackId};
use crate::port::{Mode, ResourceRef};
use crate::provisioning::{Job, LaneKey};
use crate::registry::{WorkspaceStack, stack_resource_name};
use crate::stacks::{PartId, StackPart};
use crate::use_case::provisioning::{JobInput, JobKind, StepContext, StepError};

/// The workspace stack a job works for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::use_case::registry) struct StackTarget {
    pub(in crate::use_case::registry) platform_id: PlatformId,
    /// The platform's slug; part of the names at the provider.
    pub(in crate::use_case::registry) slug: Slug,
    pub(in crate::use_case::registry) entity_id: EntityId,
    pub(in crate::use_case::registry) environment: Environment,
    pub(in crate::use_case::registry) stack_instance_id: StackId,
}

impl StackTarget {
    /// The name of a part at the provider.
    pub(super) fn name_of(&self, part: &PartId) -> String {
        let (platform, environment) = (&self.platform_id, self.environment);
        let called = (part.name.as_str(), part.key());
        let called = (called.0, called.1.as_str());
        let stack = &self.stack_instance_id;
        stack_resource_name(platform, &self.slug, environment, stack, called)
    }

    /// The parts with their names at the provider.
    pub(in crate::use_case::registry) fn planned(&self, parts: &[StackPart]) -> Vec<PlannedPart> {
        let planned = parts.iter().map(|part| PlannedPart {
            cf_name: self.name_of(&part.id),
            id: part.id.clone(),
        });
        planned.collect()
    }
}

/// A part that a job makes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::use_case::registry) struct PlannedPart {
    #[serde(flatten)]
    pub(in crate::use_case::registry) id: PartId,
    pub(in crate::use_case::registry) cf_name: String,
}

impl PlannedPart {
    /// The name of the step that makes it.
    pub(in crate::use_case::registry) fn step(&self) -> String {
        format!("{}:{}", self.id.resource_type, self.id.name)
    }

    /// What it is at the provider.
    pub(in crate::use_case::registry) fn object(&self) -> ResourceRef {
        ResourceRef {
            resource_type: self.id.resource_type,
            name: self.cf_name.clone(),
        }
    }
}

/// The input of a job of a workspace stack: whose it is, and what is to be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::use_case::registry) struct StackInput<W> {
    #[serde(flatten)]
    pub(in crate::use_case::registry) target: StackTarget,
    #[serde(flatten)]
    pub(in crate::use_case::registry) work: W,
}

/// What a job does to a workspace stack.
pub(in crate::use_case::registry) trait StackWork:
    Serialize + DeserializeOwned + Clone + Debug + Send + Sync + 'static
{
    /// Whether the stack, as it stands, still calls for the job.
    fn is_called_for(stack: &WorkspaceStack, job: &Job) -> bool;
}

impl<W: StackWork> JobInput for StackInput<W> {
    type Owner = PlatformOwned;

    fn lane(&self) -> LaneKey {
        LaneKey::platform(&self.target.platform_id)
    }

    fn platform_id(&self) -> Option<&PlatformId> {
        Some(&self.target.platform_id)
    }

    fn entity_id(&self) -> Option<&EntityId> {
        Some(&self.target.entity_id)
    }

    fn environment(&self) -> Option<Environment> {
        Some(self.target.environment)
    }
}

/// Refuses a job whose platform, entity or stack is gone, or whose stack was asked for or ended otherwise since.
pub(super) async fn ensure_called_for<K, W>(cx: &StepContext<'_, K>) -> Result<(), StepError>
where
    K: JobKind<Input = StackInput<W>>,
    W: StackWork,
{
    let target = &cx.input.target;
    let mut uow = cx.store.begin(Mode::Read).await?;
    let platform = cx.platform(uow.as_mut()).await?;
    let entity = Some(&target.entity_id);
    let platform = ensure_wanted(uow.as_mut(), platform.as_deref(), entity).await?;
    let stacks = platform.records::<WorkspaceStack>(uow.as_mut());
    let stack = stacks.get(&target.stack_instance_id).await?;
    if W::is_called_for(&stack, cx.job) {
        return Ok(());
    }
    let called_off = "the stack was asked for or ended otherwise since";
    Err(StepError::Precondition(called_off.to_owned()))
}
