//! `stack.activate` and `app.create`: create the parts of workspace stacks and of their apps. Also contains the input
//! and the checks that all jobs of workspace stacks share.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::object::{CreateObject, CreatesObject, ObjectProperties, is_created_by, reason_to_keep};
use super::stack_records;
use super::target::{PlannedPart, StackTarget, ensure_not_deleted};
use crate::access::{PlatformAccess, PlatformWriter, SystemScope};
use crate::kernel::{
    Context, EntityId, Environment, Error, JobId, PlatformId, PlatformOwned, Result, Stored,
    VersionId,
};
use crate::port::{Mode, ResourceRef, UnitOfWork};
use crate::provisioning::{Job, LaneKey};
use crate::registry::{
    ActivateFeature, DEFAULT_RESOURCES, FeatureActivation, FeatureId, FeatureStatus, NewFeatureId,
    Resource, ResourceStatus, ResourceType, WorkspaceStack, WorkspaceStackEvent,
};
use crate::stacks::{
    AppName, AppType, FeatureDefinition, PartId, Script, SemVer, StackDefinition, StackPart,
    TemplateName, parts_of_app,
};
use crate::use_case::provisioning;
use crate::use_case::provisioning::{
    JobContext, JobInput, JobKind, JobStep, Observation, StepContext, StepError, Steps, Undone,
};
use crate::use_case::registry::feature::ActivationOrigin;
use crate::use_case::registry::{feature, feature_state};
use crate::use_case::stacks::version;

/// The input of a job of a workspace stack: the stack, and the work to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::use_case::registry) struct StackInput<W> {
    #[serde(flatten)]
    pub(in crate::use_case::registry) target: StackTarget,
    #[serde(flatten)]
    pub(in crate::use_case::registry) work: W,
}

/// The work of a job on a workspace stack.
pub(in crate::use_case::registry) trait StackWork:
    Serialize + DeserializeOwned + Clone + Debug + Send + Sync + 'static
{
    /// Returns whether the stack in its current state still needs the job.
    fn needs_job(stack: &WorkspaceStack, job: &Job) -> bool;
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

/// Checks that the stack still needs the job. Returns [`StepError::Precondition`] if the platform or entity no longer
/// exists, or the stack belongs to another job or has ended.
pub(super) async fn ensure_needed<K, W>(cx: &StepContext<'_, K>) -> Result<(), StepError>
where
    K: JobKind<Input = StackInput<W>>,
    W: StackWork,
{
    let target = &cx.input.target;
    let (mut uow, platform) = cx.read().await?;
    let entity = Some(&target.entity_id);
    let platform = ensure_not_deleted(uow.as_mut(), platform.as_deref(), entity).await?;
    let stacks = platform.records::<WorkspaceStack>(uow.as_mut());
    let stack = stacks.get(&target.stack_instance_id).await?;
    if W::needs_job(&stack, cx.job) {
        return Ok(());
    }
    let called_off = "the stack now belongs to another job or has ended";
    Err(StepError::Precondition(called_off.to_owned()))
}

/// The name of the step that activates a feature.
const FEATURE: &str = "feature";

/// The work of an activation job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::use_case::registry) struct Activation {
    /// The name of the template, for people.
    pub(in crate::use_case::registry) template: TemplateName,
    pub(in crate::use_case::registry) version: SemVer,
    pub(in crate::use_case::registry) version_id: VersionId,
    /// Whether the template or the version was deprecated when the activation was requested.
    pub(in crate::use_case::registry) deprecated: bool,
    /// The parts to create, in this order.
    pub(in crate::use_case::registry) parts: Vec<PlannedPart>,
    /// The features to activate.
    pub(in crate::use_case::registry) features: Vec<FeatureDefinition>,
    /// The number of parts that are created before the features are activated.
    pub(in crate::use_case::registry) before_features: usize,
}

impl StackWork for Activation {
    fn needs_job(stack: &WorkspaceStack, job: &Job) -> bool {
        stack.provision_job_id.as_ref() == Some(&job.id)
    }
}

#[async_trait]
impl CreatesParts for Activation {
    fn parts(&self) -> &[PlannedPart] {
        &self.parts
    }

    async fn blueprint(
        &self,
        target: &StackTarget,
        uow: &mut dyn UnitOfWork,
        part: &PartId,
    ) -> Result<Option<StackPart>> {
        let version = version::by_id(uow, &self.version_id).await?;
        let definition = StackDefinition::parse(&version.stack_definition);
        let definition = definition.map_err(Error::Invalid)?;
        let mut parts = definition.parts(target.environment);
        parts.extend(definition.parts_of_apps());
        Ok(parts.into_iter().find(|made_of| made_of.id == *part))
    }
}

/// The job kind `stack.activate`.
#[derive(Clone, Copy, Debug)]
pub(in crate::use_case::registry) struct StackActivate;

#[async_trait]
impl JobKind for StackActivate {
    const NAME: &'static str = "stack.activate";
    type Input = StackInput<Activation>;

    fn steps() -> Steps<Self> {
        with_parts(Steps::new()).step(MakeFeature)
    }

    fn plan(input: &Self::Input) -> Vec<String> {
        let work = &input.work;
        let (first, last) = work
            .parts
            .split_at(work.before_features.min(work.parts.len()));
        let features = work.features.iter();
        let features = features.map(|feature| format!("{FEATURE}:{}", feature.id));
        let first = first.iter().map(PlannedPart::step);
        let last = last.iter().map(PlannedPart::step);
        first.chain(features).chain(last).collect()
    }

    async fn on_completed(
        &self,
        cx: &JobContext<'_, Self>,
        uow: &mut dyn UnitOfWork,
    ) -> Result<()> {
        apply_event(cx, uow, WorkspaceStackEvent::Activated).await
    }

    async fn on_failed(&self, cx: &JobContext<'_, Self>, uow: &mut dyn UnitOfWork) -> Result<()> {
        apply_event(cx, uow, WorkspaceStackEvent::Fail).await
    }

    async fn on_resumed(&self, cx: &JobContext<'_, Self>, uow: &mut dyn UnitOfWork) -> Result<()> {
        let target = &cx.input.target;
        let (stack, job) = (&target.stack_instance_id, &cx.job.id);
        let event = WorkspaceStackEvent::Activate;
        stack_records::record_event(cx, &cx.scope, uow, stack, job, event).await?;
        let parts = &cx.input.work.parts;
        stack_records::insert_planned_parts(cx, &cx.scope, uow, target, job, parts).await?;
        for asked in &cx.input.work.features {
            let known = find(&cx.scope, uow, target, asked).await?;
            let failed = |feature: &FeatureActivation| {
                feature.status == FeatureStatus::Failed
                    && feature.stack_id.as_ref() == Some(&target.stack_instance_id)
            };
            if known.is_some_and(|feature| failed(&feature)) {
                activate_feature(cx, uow, asked).await?;
            }
        }
        Ok(())
    }
}

/// Applies an event of the job to the stack, and marks the parts that were not created as failed.
async fn apply_event(
    cx: &JobContext<'_, StackActivate>,
    uow: &mut dyn UnitOfWork,
    event: WorkspaceStackEvent,
) -> Result<()> {
    let target = &cx.input.target;
    let (stack, job) = (&target.stack_instance_id, &cx.job.id);
    stack_records::record_event(cx, &cx.scope, uow, stack, job, event).await?;
    let parts = &cx.input.work.parts;
    stack_records::fail_unmade_parts(cx, &cx.scope, uow, cx.job, parts).await
}

/// Returns the stack's activation of a feature.
async fn find(
    platform: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    target: &StackTarget,
    asked: &FeatureDefinition,
) -> Result<Option<Stored<FeatureActivation>>> {
    let id = FeatureId::from(asked.id.clone());
    feature_state::find(platform, uow, &target.entity_id, &id, target.environment).await
}

/// Activates a feature on behalf of the stack.
async fn activate_feature(
    cx: &JobContext<'_, StackActivate>,
    uow: &mut dyn UnitOfWork,
    asked: &FeatureDefinition,
) -> Result<()> {
    let target = &cx.input.target;
    let command = ActivateFeature {
        feature_id: asked.id.clone(),
        version: asked.version.clone(),
        environment: target.environment,
        config: None,
    };
    let by = ActivationOrigin {
        stack_id: Some(&target.stack_instance_id),
        job_id: Some(&cx.job.id),
    };
    feature::activate_for(cx, &cx.scope, uow, &target.entity_id, command, by).await?;
    Ok(())
}

/// Queues a job that activates a feature, and waits for it.
#[derive(Clone, Copy, Debug)]
struct MakeFeature;

/// The output of a feature step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct MadeFeature {
    feature_id: NewFeatureId,
}

/// Returns the feature of a step.
fn feature_of_step<'i>(
    input: &'i StackInput<Activation>,
    item: Option<&str>,
) -> Result<&'i FeatureDefinition> {
    let mut features = input.work.features.iter();
    let asked = features.find(|feature| item == Some(feature.id.as_str()));
    asked.ok_or_else(|| Error::Internal(format!("no feature {item:?}")))
}

/// Returns the output of a step.
fn made_feature(asked: &FeatureDefinition) -> MadeFeature {
    MadeFeature {
        feature_id: asked.id.clone(),
    }
}

#[async_trait]
impl JobStep<StackActivate> for MakeFeature {
    const HAS_RECORD: bool = false;
    const CAN_UNDO: bool = true;
    type Output = MadeFeature;

    fn name(&self) -> &'static str {
        FEATURE
    }

    async fn observe(
        &self,
        cx: &StepContext<'_, StackActivate>,
    ) -> Result<Observation<MadeFeature>, StepError> {
        ensure_needed(cx).await?;
        let asked = feature_of_step(cx.input, cx.item)?;
        let (mut uow, platform) = cx.read().await?;
        let platform = platform.ok_or(Error::NotFound("platform"))?;
        let known = find(&platform, uow.as_mut(), &cx.input.target, asked).await?;
        let Some(known) = known else {
            return Ok(Observation::Absent);
        };
        let is_there = feature_state::is_active_or_pending(&known, &asked.version, None)?;
        match known.status {
            FeatureStatus::Active if is_there => Ok(Observation::Present(made_feature(asked))),
            FeatureStatus::Pending | FeatureStatus::Deactivating => Err(StepError::Wait {
                until: uow.now().await?.plus(POLL_INTERVAL),
                reason: format!("the feature {}", asked.id),
                output: None,
            }),
            FeatureStatus::Failed => {
                ensure_not_failed_for(cx.job, uow.as_mut(), &known).await?;
                Ok(Observation::Absent)
            }
            _ => Ok(Observation::Absent),
        }
    }

    async fn apply(&self, cx: &StepContext<'_, StackActivate>) -> Result<MadeFeature, StepError> {
        let asked = feature_of_step(cx.input, cx.item)?;
        let mut uow = cx.store.begin(Mode::Auto).await?;
        let until = uow.now().await?.plus(POLL_INTERVAL);
        let reason = format!("the feature {}", asked.id);
        Err(StepError::wait_with(until, reason, &made_feature(asked))?)
    }

    async fn record_wait(
        &self,
        cx: &JobContext<'_, StackActivate>,
        uow: &mut dyn UnitOfWork,
        _found: &MadeFeature,
    ) -> Result<()> {
        activate_feature(cx, uow, feature_of_step(cx.input, cx.item)?).await
    }

    /// Queues the removal of a feature that the stack activated.
    async fn record_undo(
        &self,
        cx: &JobContext<'_, StackActivate>,
        uow: &mut dyn UnitOfWork,
        undone: &Undone,
    ) -> Result<()> {
        if !undone.is_removed() {
            return Ok(());
        }
        let target = &cx.input.target;
        let stacks = cx.scope.records::<WorkspaceStack>(uow);
        let stack = stacks.find(&target.stack_instance_id).await?;
        if stack.is_none_or(|stack| stack.provision_job_id.as_ref() != Some(&cx.job.id)) {
            // Another job has activated the stack again, with its features.
            return Ok(());
        }
        let known = find(&cx.scope, uow, target, feature_of_step(cx.input, cx.item)?).await?;
        let brought = known.filter(|feature| {
            feature.stack_id.as_ref() == Some(&target.stack_instance_id)
                && !matches!(
                    feature.status,
                    FeatureStatus::Deactivating | FeatureStatus::Inactive
                )
        });
        if let Some(feature) = brought
            && was_queued_by(cx.job, uow, &feature).await?
        {
            remove_or_reassign(cx, &cx.scope, uow, target, &feature, false, None).await?;
        }
        Ok(())
    }
}

/// The work of a job that creates an app.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::use_case::registry) struct NewApp {
    pub(in crate::use_case::registry) app_name: AppName,
    pub(in crate::use_case::registry) app_type: AppType,
    pub(in crate::use_case::registry) with_database: bool,
    /// The parts to create, in this order.
    pub(in crate::use_case::registry) parts: Vec<PlannedPart>,
}

impl StackWork for NewApp {
    fn needs_job(stack: &WorkspaceStack, _job: &Job) -> bool {
        stack.accepts_apps()
    }
}

#[async_trait]
impl CreatesParts for NewApp {
    fn parts(&self) -> &[PlannedPart] {
        &self.parts
    }

    async fn blueprint(
        &self,
        _target: &StackTarget,
        _uow: &mut dyn UnitOfWork,
        part: &PartId,
    ) -> Result<Option<StackPart>> {
        let parts = parts_of_app(&self.app_name, self.app_type, self.with_database);
        Ok(parts.into_iter().find(|made_of| made_of.id == *part))
    }
}

/// The job kind `app.create`.
#[derive(Clone, Copy, Debug)]
pub(in crate::use_case::registry) struct AppCreate;

#[async_trait]
impl JobKind for AppCreate {
    const NAME: &'static str = "app.create";
    type Input = StackInput<NewApp>;

    fn steps() -> Steps<Self> {
        with_parts(Steps::new())
    }

    fn plan(input: &Self::Input) -> Vec<String> {
        input.work.parts.iter().map(PlannedPart::step).collect()
    }

    async fn on_completed(
        &self,
        cx: &JobContext<'_, Self>,
        uow: &mut dyn UnitOfWork,
    ) -> Result<()> {
        fail_unmade_parts(cx, uow).await
    }

    async fn on_failed(&self, cx: &JobContext<'_, Self>, uow: &mut dyn UnitOfWork) -> Result<()> {
        fail_unmade_parts(cx, uow).await
    }

    async fn on_resumed(&self, cx: &JobContext<'_, Self>, uow: &mut dyn UnitOfWork) -> Result<()> {
        let (target, parts) = (&cx.input.target, &cx.input.work.parts);
        stack_records::insert_planned_parts(cx, &cx.scope, uow, target, &cx.job.id, parts).await
    }
}

/// Marks parts that the job did not create as failed.
async fn fail_unmade_parts(cx: &JobContext<'_, AppCreate>, uow: &mut dyn UnitOfWork) -> Result<()> {
    stack_records::fail_unmade_parts(cx, &cx.scope, uow, cx.job, &cx.input.work.parts).await
}

/// The initial script of a worker whose stack provides none.
const STARTER: &str = include_str!("js/service.js");

const MAIN_MODULE: &str = "service.js";

/// The work of a job that creates parts.
#[async_trait]
pub(in crate::use_case::registry) trait CreatesParts:
    StackWork
{
    /// Returns the parts in their order.
    fn parts(&self) -> &[PlannedPart];

    /// Returns the definition of a part; `None` if the job has no such part.
    ///
    /// # Errors
    /// `VALIDATION_ERROR` if the stored definition of the stack's version is invalid.
    async fn blueprint(
        &self,
        target: &StackTarget,
        uow: &mut dyn UnitOfWork,
        part: &PartId,
    ) -> Result<Option<StackPart>>;
}

/// Adds the steps that create parts.
pub(super) fn with_parts<K, W>(steps: Steps<K>) -> Steps<K>
where
    K: JobKind<Input = StackInput<W>>,
    W: CreatesParts,
{
    steps.steps(DEFAULT_RESOURCES.map(|(of_type, _)| CreateObject(PartOfType(of_type))))
}

/// A part of one type.
#[derive(Clone, Copy, Debug)]
struct PartOfType(ResourceType);

impl PartOfType {
    /// Returns the part of a step item.
    fn part<'p, W: CreatesParts>(
        self,
        input: &'p StackInput<W>,
        item: Option<&str>,
    ) -> Result<&'p PlannedPart> {
        let mut parts = input.work.parts().iter();
        let part = parts
            .find(|part| part.id.resource_type == self.0 && item == Some(part.id.name.as_str()));
        part.ok_or_else(|| Error::Internal(format!("no part {} {item:?}", self.0)))
    }
}

/// Returns whether an existing part is left unchanged. That holds for stores, and for apps, to which people may have
/// deployed code. Other parts get the script of the definition again.
const fn keeps_existing(part: &PartId) -> bool {
    part.of_app || part.resource_type.is_store()
}

#[async_trait]
impl<K, W> CreatesObject<K> for PartOfType
where
    K: JobKind<Input = StackInput<W>>,
    W: CreatesParts,
{
    fn name(&self) -> &'static str {
        self.0.as_str()
    }

    fn object(&self, input: &StackInput<W>, item: Option<&str>) -> Result<ResourceRef> {
        Ok(self.part(input, item)?.object())
    }

    async fn ensure_needed(&self, cx: &StepContext<'_, K>) -> Result<(), StepError> {
        ensure_needed(cx).await
    }

    async fn is_outdated(
        &self,
        cx: &StepContext<'_, K>,
        _object: &ResourceRef,
    ) -> Result<bool, StepError> {
        Ok(!keeps_existing(&self.part(cx.input, cx.item)?.id))
    }

    async fn config(&self, cx: &StepContext<'_, K>) -> Result<Value, StepError> {
        config(cx, self.part(cx.input, cx.item)?).await
    }

    async fn properties(
        &self,
        cx: &JobContext<'_, K>,
        _uow: &mut dyn UnitOfWork,
    ) -> Result<ObjectProperties> {
        let (target, part) = (&cx.input.target, self.part(cx.input, cx.item)?);
        Ok(ObjectProperties {
            entity_id: target.entity_id.clone(),
            stack_id: Some(target.stack_instance_id.clone()),
            feature_id: None,
            service_name: part.id.name.to_string(),
            environment: target.environment,
        })
    }

    /// Also keeps an object whose resource was deleted.
    async fn reason_to_keep(
        &self,
        cx: &StepContext<'_, K>,
        platform: &PlatformAccess,
        uow: &mut dyn UnitOfWork,
        resource: Option<&Resource>,
    ) -> Result<Option<&'static str>> {
        if resource.is_none() {
            return Ok(Some("its resource was deleted"));
        }
        reason_to_keep(platform, uow, resource, cx.job).await
    }

    /// Also deletes a resource whose object was only planned.
    async fn undo_deletes(
        &self,
        cx: &JobContext<'_, K>,
        _uow: &mut dyn UnitOfWork,
        resource: &Resource,
        undone: &Undone,
    ) -> Result<bool> {
        let was_planned = resource.status != ResourceStatus::Active;
        Ok(is_created_by(resource, cx.job) && (undone.is_removed() || was_planned))
    }
}

/// Returns the settings of a part at the provider.
async fn config<K, W>(cx: &StepContext<'_, K>, part: &PlannedPart) -> Result<Value, StepError>
where
    K: JobKind<Input = StackInput<W>>,
    W: CreatesParts,
{
    if part.id.resource_type.is_store() {
        return Ok(json!({}));
    }
    let mut uow = cx.store.begin(Mode::Read).await?;
    let target = &cx.input.target;
    let made_of = cx
        .input
        .work
        .blueprint(target, uow.as_mut(), &part.id)
        .await?;
    let made_of = made_of.ok_or_else(|| {
        let message = format!(
            "the definition has no {} {}",
            part.id.resource_type, part.id.name
        );
        StepError::permanent("UNKNOWN_PART", message)
    })?;
    let bindings = made_of.bindings.iter().map(|binding| {
        json!({
            "name": binding.name,
            "type": binding.target.resource_type,
            "resource": target.name_of(&binding.target),
        })
    });
    let mut config = json!({ "bindings": bindings.collect::<Vec<_>>() });
    if !made_of.vars.is_empty() {
        config["vars"] = json!(made_of.vars);
    }
    if part.id.resource_type == ResourceType::Worker {
        let script = made_of.script.unwrap_or_else(|| Script {
            main_module: MAIN_MODULE.to_owned(),
            modules: BTreeMap::from([(MAIN_MODULE.to_owned(), STARTER.to_owned())]),
        });
        config["mainModule"] = script.main_module.into();
        config["modules"] = json!(script.modules);
    }
    Ok(config)
}

/// The interval at which a waiting job polls the features.
pub(super) const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// Returns the permanent error `FEATURE_JOB_FAILED` for a failed feature, if `job` queued the feature's job.
pub(super) async fn ensure_not_failed_for(
    job: &Job,
    uow: &mut dyn UnitOfWork,
    feature: &FeatureActivation,
) -> Result<(), StepError> {
    if was_queued_by(job, uow, feature).await? {
        let message = format!("the job of the feature {} has failed", feature.feature_id);
        return Err(StepError::permanent("FEATURE_JOB_FAILED", message));
    }
    Ok(())
}

/// Returns whether `job` queued the feature's current job.
async fn was_queued_by(
    job: &Job,
    uow: &mut dyn UnitOfWork,
    feature: &FeatureActivation,
) -> Result<bool> {
    let Some(child) = &feature.provision_job_id else {
        return Ok(false);
    };
    let child = provisioning::find(SystemScope::new(), uow, child).await?;
    Ok(child.is_some_and(|child| child.parent_job_id.as_ref() == Some(&job.id)))
}

/// Queues the job that removes a feature of a stack. If another stack includes the feature too, assigns it to that
/// stack instead.
pub(super) async fn remove_or_reassign(
    cx: &Context,
    platform: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    target: &StackTarget,
    seen: &Stored<FeatureActivation>,
    delete_data: bool,
    parent: Option<&JobId>,
) -> Result<()> {
    let other = stack_records::other_with_feature(
        platform,
        uow,
        &target.entity_id,
        &target.stack_instance_id,
        target.environment,
        &seen.feature_id,
    );
    let other = other.await?;
    if let Some(other) = other {
        return feature_state::reassign(cx, platform, uow, seen, &other).await;
    }
    feature::queue_removal(cx, platform, uow, seen, delete_data, parent).await?;
    Ok(())
}
