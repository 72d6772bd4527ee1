//! `stack.activate`: makes what the version of a template asks for, for a workspace stack.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::child_feature::{LOOK_AGAIN, ensure_not_failed_for, let_go, was_asked_by};
use super::stack_parts::{MakesParts, with_parts};
use super::stack_target::{PlannedPart, StackInput, StackTarget, StackWork, ensure_called_for};
use crate::access::PlatformAccess;
use crate::kernel::{Error, Result, Stored, VersionId};
use crate::port::{Mode, UnitOfWork};
use crate::provisioning::Job;
use crate::registry::{
    ActivateFeature, FeatureActivation, FeatureId, FeatureStatus, NewFeatureId, WorkspaceStack,
    WorkspaceStackEvent,
};
use crate::stacks::{FeatureDefinition, PartId, SemVer, StackDefinition, StackPart, TemplateName};
use crate::use_case::provisioning::{
    JobContext, JobKind, JobStep, Observation, StepContext, StepError, Steps, Undone,
};
use crate::use_case::registry::feature::{self, AskedBy};
use crate::use_case::registry::stack_instance::{entries, follow};
use crate::use_case::stacks::version;

/// The name of the step that activates a feature.
const FEATURE: &str = "feature";

/// What is to be made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::use_case::registry) struct Activation {
    /// The template, for people.
    pub(in crate::use_case::registry) template: TemplateName,
    pub(in crate::use_case::registry) version: SemVer,
    pub(in crate::use_case::registry) version_id: VersionId,
    /// Whether template or version were deprecated when it was asked for.
    pub(in crate::use_case::registry) deprecated: bool,
    /// What is made, in this order.
    pub(in crate::use_case::registry) parts: Vec<PlannedPart>,
    /// What is activated then.
    pub(in crate::use_case::registry) features: Vec<FeatureDefinition>,
    /// How many of the parts come before the features.
    pub(in crate::use_case::registry) before_features: usize,
}

impl StackWork for Activation {
    fn is_called_for(stack: &WorkspaceStack, job: &Job) -> bool {
        stack.provision_job_id.as_ref() == Some(&job.id)
    }
}

#[async_trait]
impl MakesParts for Activation {
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

/// The kind.
#[derive(Clone, Copy, Debug)]
pub(in crate::use_case::registry) struct StackActivate;

#[async_trait]
impl JobKind for StackActivate {
    const NAME: &'static str = "stack.activate";
    type Input = StackInput<Activation>;

    fn steps() -> Steps<Self> {
        with_parts(Steps::new()).then(MakeFeature)
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

    async fn completed(&self, cx: &JobContext<'_, Self>, uow: &mut dyn UnitOfWork) -> Result<()> {
        follow_job(cx, uow, WorkspaceStackEvent::Activated).await
    }

    async fn failed(&self, cx: &JobContext<'_, Self>, uow: &mut dyn UnitOfWork) -> Result<()> {
        follow_job(cx, uow, WorkspaceStackEvent::Fail).await
    }

    async fn resumed(&self, cx: &JobContext<'_, Self>, uow: &mut dyn UnitOfWork) -> Result<()> {
        let Some(platform) = cx.platform(uow).await? else {
            return Ok(());
        };
        let target = &cx.input.target;
        let own = (&target.stack_instance_id, &cx.job.id);
        follow::record_event(cx, &platform, uow, own, WorkspaceStackEvent::Activate).await?;
        let of = (target, &cx.job.id);
        entries::enter_planned(cx, &platform, uow, of, &cx.input.work.parts).await?;
        for asked in &cx.input.work.features {
            let known = find(&platform, uow, target, asked).await?;
            let failed = |feature: &FeatureActivation| {
                feature.status == FeatureStatus::Failed
                    && feature.stack_id.as_ref() == Some(&target.stack_instance_id)
            };
            if known.is_some_and(|feature| failed(&feature)) {
                ask(cx, uow, asked).await?;
            }
        }
        Ok(())
    }
}

/// Moves the stack as the job moved, and the entries of what it did not make.
async fn follow_job(
    cx: &JobContext<'_, StackActivate>,
    uow: &mut dyn UnitOfWork,
    event: WorkspaceStackEvent,
) -> Result<()> {
    let Some(platform) = cx.platform(uow).await? else {
        return Ok(());
    };
    let target = &cx.input.target;
    let own = (&target.stack_instance_id, &cx.job.id);
    follow::record_event(cx, &platform, uow, own, event).await?;
    let parts = &cx.input.work.parts;
    entries::settle_unmade(cx, &platform, uow, cx.job, parts).await
}

async fn find(
    platform: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    target: &StackTarget,
    asked: &FeatureDefinition,
) -> Result<Option<Stored<FeatureActivation>>> {
    let id = FeatureId::from(asked.id.clone());
    feature::find(platform, uow, &target.entity_id, &id, target.environment).await
}

/// Asks for a feature, as the stack.
async fn ask(
    cx: &JobContext<'_, StackActivate>,
    uow: &mut dyn UnitOfWork,
    asked: &FeatureDefinition,
) -> Result<()> {
    let platform = cx.platform(uow).await?;
    let platform = platform.ok_or(Error::NotFound("platform"))?;
    let target = &cx.input.target;
    let command = ActivateFeature {
        feature_id: asked.id.clone(),
        version: asked.version.clone(),
        environment: target.environment,
    };
    let by = AskedBy {
        stack_id: Some(&target.stack_instance_id),
        job_id: Some(&cx.job.id),
    };
    feature::activate_for(cx, &platform, uow, &target.entity_id, command, by).await?;
    Ok(())
}

/// Has a feature activated by a job of its own, and waits for it.
#[derive(Clone, Copy, Debug)]
struct MakeFeature;

/// What such a step leaves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct MadeFeature {
    feature_id: NewFeatureId,
}

fn asked<'i>(
    input: &'i StackInput<Activation>,
    item: Option<&str>,
) -> Result<&'i FeatureDefinition> {
    let mut features = input.work.features.iter();
    let asked = features.find(|feature| item == Some(feature.id.as_str()));
    asked.ok_or_else(|| Error::Internal(format!("no feature {item:?}")))
}

fn made(asked: &FeatureDefinition) -> MadeFeature {
    MadeFeature {
        feature_id: asked.id.clone(),
    }
}

#[async_trait]
impl JobStep<StackActivate> for MakeFeature {
    const RECORDS: bool = false;
    const UNDOES: bool = true;
    type Output = MadeFeature;

    fn name(&self) -> &'static str {
        FEATURE
    }

    async fn observe(
        &self,
        cx: &StepContext<'_, StackActivate>,
    ) -> Result<Observation<MadeFeature>, StepError> {
        ensure_called_for(cx).await?;
        let asked = asked(cx.input, cx.item)?;
        let mut uow = cx.store.begin(Mode::Read).await?;
        let platform = cx.platform(uow.as_mut()).await?;
        let platform = platform.ok_or(Error::NotFound("platform"))?;
        let known = find(&platform, uow.as_mut(), &cx.input.target, asked).await?;
        let Some(known) = known else {
            return Ok(Observation::Absent);
        };
        let is_there = feature::is_there(&known, &asked.version)?;
        match known.status {
            FeatureStatus::Active if is_there => Ok(Observation::Present(made(asked))),
            FeatureStatus::Pending | FeatureStatus::Deactivating => Err(StepError::Wait {
                until: uow.now().await?.plus(LOOK_AGAIN),
                reason: format!("the feature {}", asked.id),
                found: None,
            }),
            FeatureStatus::Failed => {
                ensure_not_failed_for(cx.job, uow.as_mut(), &known).await?;
                Ok(Observation::Absent)
            }
            _ => Ok(Observation::Absent),
        }
    }

    async fn apply(&self, cx: &StepContext<'_, StackActivate>) -> Result<MadeFeature, StepError> {
        let asked = asked(cx.input, cx.item)?;
        let mut uow = cx.store.begin(Mode::Auto).await?;
        let until = uow.now().await?.plus(LOOK_AGAIN);
        let reason = format!("the feature {}", asked.id);
        Err(StepError::wait_with(until, reason, &made(asked))?)
    }

    async fn record_wait(
        &self,
        cx: &JobContext<'_, StackActivate>,
        uow: &mut dyn UnitOfWork,
        _found: &MadeFeature,
    ) -> Result<()> {
        ask(cx, uow, asked(cx.input, cx.item)?).await
    }

    /// What the stack brought goes with it; a job of its own removes it.
    async fn record_undo(
        &self,
        cx: &JobContext<'_, StackActivate>,
        uow: &mut dyn UnitOfWork,
        undone: &Undone,
    ) -> Result<()> {
        let platform = cx.platform(uow).await?;
        let Some(platform) = platform.filter(|_| undone.is_taken_back()) else {
            return Ok(());
        };
        let target = &cx.input.target;
        let stacks = platform.records::<WorkspaceStack>(uow);
        let stack = stacks.find(&target.stack_instance_id).await?;
        if stack.is_none_or(|stack| stack.provision_job_id.as_ref() != Some(&cx.job.id)) {
            // It was asked for otherwise since, with its features.
            return Ok(());
        }
        let known = find(&platform, uow, target, asked(cx.input, cx.item)?).await?;
        let brought = known.filter(|feature| {
            feature.stack_id.as_ref() == Some(&target.stack_instance_id)
                && !matches!(
                    feature.status,
                    FeatureStatus::Deactivating | FeatureStatus::Inactive
                )
        });
        if let Some(feature) = brought
            && was_asked_by(cx.job, uow, &feature).await?
        {
            let_go(cx, &platform, uow, (target, &feature), false, None).await?;
        }
        Ok(())
    }
}
