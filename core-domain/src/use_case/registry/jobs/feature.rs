//! `feature.activate` and `feature.deactivate`: create and remove the worker of an entity's feature, and update the
//! feature and its build.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::object::{
    CreateObject, CreatesObject, ObjectProperties, find_resource, observe_owned, reason_to_keep,
};
use super::removal::{Attempt, RemoveObjects, RemovesObjects, delete_resource, remove_if_owned};
use super::target::ensure_not_deleted;
use crate::access::PlatformAccess;
use crate::kernel::{
    EntityId, Environment, FeatureActivationId, JsonText, PlatformId, PlatformOwned, Result, Slug,
    Stored,
};
use crate::port::{ResourceRef, UnitOfWork};
use crate::provisioning::{ACTIVATE_FEATURE, Job, LaneKey};
use crate::registry::{
    BuildOutcome, FeatureActivation, FeatureEvent, FeatureId, FeatureStatus, FeatureVersion,
    Resource, ResourceQuery, ResourceType,
};
use crate::use_case::provisioning::{
    JobContext, JobInput, JobKind, JobStep, Observation, StepContext, StepError, Steps, Undone,
};
use crate::use_case::registry::{build, feature_state};

/// The initial script of a feature's worker.
const WORKER: &str = include_str!("js/feature.js");

const MAIN_MODULE: &str = "feature.js";

/// The module whose default export is the configuration of the feature.
const CONFIG_MODULE: &str = "config.js";

/// The name of the steps that create and remove the worker.
const WORKER_STEP: &str = "worker";

/// The job kind `feature.activate`.
#[derive(Clone, Copy, Debug)]
pub(in crate::use_case::registry) struct Activate;

#[async_trait]
impl JobKind for Activate {
    const NAME: &'static str = ACTIVATE_FEATURE;
    type Input = ActivateInput;

    fn steps() -> Steps<Self> {
        Steps::new().step(CreateObject(FeatureWorker))
    }

    /// If an operator forced the job to complete, the URL of the worker is unknown.
    async fn on_completed(
        &self,
        cx: &JobContext<'_, Self>,
        uow: &mut dyn UnitOfWork,
    ) -> Result<()> {
        let url = cx
            .job
            .output_of(WORKER_STEP)
            .and_then(|made| made["cfUrl"].as_str());
        let url = url.map(str::to_owned);
        let end = BuildOutcome::Success {
            cf_deployment_id: None,
            build_url: url.clone(),
        };
        apply_activation_event(cx, uow, FeatureEvent::Activated, url, Some(end)).await
    }

    async fn on_failed(&self, cx: &JobContext<'_, Self>, uow: &mut dyn UnitOfWork) -> Result<()> {
        apply_activation_event(
            cx,
            uow,
            FeatureEvent::Fail,
            None,
            Some(BuildOutcome::Failed),
        )
        .await
    }

    async fn on_resumed(&self, cx: &JobContext<'_, Self>, uow: &mut dyn UnitOfWork) -> Result<()> {
        apply_activation_event(cx, uow, FeatureEvent::Activate, None, None).await
    }
}

/// Applies an event of the job to the feature and its build. Without `end`, the build is resumed.
async fn apply_activation_event(
    cx: &JobContext<'_, Activate>,
    uow: &mut dyn UnitOfWork,
    event: FeatureEvent,
    service_url: Option<String>,
    end: Option<BuildOutcome>,
) -> Result<()> {
    let (feature, job) = (&cx.input.target.activation_id, &cx.job.id);
    feature_state::record_event(cx, &cx.scope, uow, feature, job, event, service_url).await?;
    match end {
        Some(end) => build::end(cx, &cx.scope, uow, &cx.job.id, end).await,
        None => build::resume(cx, &cx.scope, uow, &cx.job.id).await,
    }
}

/// The feature's worker.
#[derive(Clone, Copy, Debug)]
struct FeatureWorker;

#[async_trait]
impl CreatesObject<Activate> for FeatureWorker {
    fn name(&self) -> &'static str {
        WORKER_STEP
    }

    fn object(&self, input: &ActivateInput, _item: Option<&str>) -> Result<ResourceRef> {
        Ok(input.target.worker())
    }

    async fn ensure_needed(&self, cx: &StepContext<'_, Activate>) -> Result<(), StepError> {
        cx.input.target.ensure_needed(cx).await
    }

    async fn config(&self, cx: &StepContext<'_, Activate>) -> Result<Value, StepError> {
        let (mut uow, platform) = cx.read().await?;
        let feature = match platform {
            Some(platform) => {
                let features = platform.records::<FeatureActivation>(uow.as_mut());
                features.find(&cx.input.target.activation_id).await?
            }
            None => None,
        };
        let config = feature.map(|feature| feature.effective_config());
        let config = config.unwrap_or_else(|| JsonText::of(&json!({})));
        Ok(json!({
            "mainModule": MAIN_MODULE,
            "modules": { MAIN_MODULE: WORKER, CONFIG_MODULE: config_module(&config) },
            "bindings": [],
        }))
    }

    async fn properties(
        &self,
        cx: &JobContext<'_, Activate>,
        _uow: &mut dyn UnitOfWork,
    ) -> Result<ObjectProperties> {
        let target = &cx.input.target;
        Ok(ObjectProperties {
            entity_id: target.entity_id.clone(),
            stack_id: None,
            feature_id: Some(target.activation_id.clone()),
            service_name: target.feature_id.to_string(),
            environment: target.environment,
        })
    }

    /// Also keeps the worker if the feature now belongs to another job, which uses the same worker.
    async fn reason_to_keep(
        &self,
        cx: &StepContext<'_, Activate>,
        platform: &PlatformAccess,
        uow: &mut dyn UnitOfWork,
        resource: Option<&Resource>,
    ) -> Result<Option<&'static str>> {
        let feature = feature_of_job(platform, uow, cx.job, &cx.input.target).await?;
        if feature.is_none() {
            return Ok(Some("its feature belongs to another job"));
        }
        reason_to_keep(platform, uow, resource, cx.job).await
    }

    async fn undo_deletes(
        &self,
        cx: &JobContext<'_, Activate>,
        uow: &mut dyn UnitOfWork,
        _resource: &Resource,
        undone: &Undone,
    ) -> Result<bool> {
        if !undone.is_removed() {
            return Ok(false);
        }
        let feature = feature_of_job(&cx.scope, uow, cx.job, &cx.input.target).await?;
        Ok(feature.is_some())
    }
}

/// Returns the source of the module that exports the configuration. The configuration is parsed at run time, because a
/// field `__proto__` has another meaning in an object literal.
fn config_module(config: &JsonText) -> String {
    let text = JsonText::of(config.as_str());
    format!("export default JSON.parse({});\n", text.as_str())
}

/// Returns the job's feature; `None` if the feature now belongs to another job or has ended.
async fn feature_of_job(
    platform: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    job: &Job,
    target: &FeatureTarget,
) -> Result<Option<Stored<FeatureActivation>>> {
    let features = platform.records::<FeatureActivation>(uow);
    let feature = features.find(&target.activation_id).await?;
    Ok(feature.filter(|feature| feature.provision_job_id.as_ref() == Some(&job.id)))
}

/// The name of the step that removes the data.
const DATA: &str = "data";

/// The job kind `feature.deactivate`.
#[derive(Clone, Copy, Debug)]
pub(in crate::use_case::registry) struct Deactivate;

#[async_trait]
impl JobKind for Deactivate {
    const NAME: &'static str = "feature.deactivate";
    type Input = DeactivateInput;

    fn steps() -> Steps<Self> {
        Steps::new()
            .step(RemoveWorker)
            .step(RemoveObjects(FeatureData))
    }

    fn plan(input: &DeactivateInput) -> Vec<String> {
        let steps = [WORKER_STEP, DATA].into_iter();
        let wanted = steps.filter(|step| *step != DATA || input.delete_data);
        wanted.map(str::to_owned).collect()
    }

    async fn on_completed(
        &self,
        cx: &JobContext<'_, Self>,
        uow: &mut dyn UnitOfWork,
    ) -> Result<()> {
        apply_deactivation_event(cx, uow, FeatureEvent::Deactivated).await
    }

    async fn on_failed(&self, cx: &JobContext<'_, Self>, uow: &mut dyn UnitOfWork) -> Result<()> {
        apply_deactivation_event(cx, uow, FeatureEvent::Fail).await
    }

    async fn on_resumed(&self, cx: &JobContext<'_, Self>, uow: &mut dyn UnitOfWork) -> Result<()> {
        apply_deactivation_event(cx, uow, FeatureEvent::Deactivate).await
    }
}

/// Applies an event of the job to the feature.
async fn apply_deactivation_event(
    cx: &JobContext<'_, Deactivate>,
    uow: &mut dyn UnitOfWork,
    event: FeatureEvent,
) -> Result<()> {
    let (feature, job) = (&cx.input.target.activation_id, &cx.job.id);
    feature_state::record_event(cx, &cx.scope, uow, feature, job, event, None).await
}

/// Removes the feature's worker and its resource.
#[derive(Clone, Copy, Debug)]
struct RemoveWorker;

#[async_trait]
impl JobStep<Deactivate> for RemoveWorker {
    type Output = ();

    fn name(&self) -> &'static str {
        WORKER_STEP
    }

    /// A worker that is missing or belongs to another owner counts as removed.
    async fn observe(
        &self,
        cx: &StepContext<'_, Deactivate>,
    ) -> Result<Observation<()>, StepError> {
        let target = &cx.input.target;
        target.ensure_needed(cx).await?;
        let worker = target.worker();
        let found = observe_owned(cx.infrastructure, &target.platform_id, &worker).await?;
        Ok(match found {
            Observation::Present(_) | Observation::Outdated => Observation::Absent,
            Observation::Absent | Observation::Conflict(_) => Observation::Present(()),
        })
    }

    async fn apply(&self, cx: &StepContext<'_, Deactivate>) -> Result<(), StepError> {
        let target = &cx.input.target;
        remove_if_owned(cx, &target.platform_id, &target.worker()).await?;
        Ok(())
    }

    async fn record(
        &self,
        cx: &JobContext<'_, Deactivate>,
        uow: &mut dyn UnitOfWork,
        (): &(),
    ) -> Result<()> {
        let target = &cx.input.target;
        match target.resource(&cx.scope, uow).await? {
            Some(resource) => delete_resource(cx, &cx.scope, uow, &resource).await,
            None => Ok(()),
        }
    }
}

/// The feature's data: the stores that it owns.
#[derive(Clone, Copy, Debug)]
struct FeatureData;

#[async_trait]
impl RemovesObjects<Deactivate> for FeatureData {
    fn name(&self) -> &'static str {
        DATA
    }

    async fn ensure_needed(&self, cx: &StepContext<'_, Deactivate>) -> Result<(), StepError> {
        cx.input.target.ensure_needed(cx).await
    }

    async fn remove(&self, attempt: &mut Attempt<'_, '_, Deactivate>) -> Result<(), StepError> {
        let target = &attempt.cx().input.target;
        let is_removed = |resource: &Resource| is_data_of(target, resource);
        attempt.remove_resources(owned_by(target), is_removed).await
    }
}

/// Selects the resources that a feature owns.
pub(in crate::use_case::registry) fn owned_by(target: &FeatureTarget) -> ResourceQuery {
    ResourceQuery::OfFeature(target.activation_id.clone())
}

/// Returns whether the resource is a store of the feature in its environment.
pub(in crate::use_case::registry) fn is_data_of(
    target: &FeatureTarget,
    resource: &Resource,
) -> bool {
    resource.resource_type.is_store() && resource.environment == target.environment
}

/// The feature of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::use_case::registry) struct FeatureTarget {
    pub(super) activation_id: FeatureActivationId,
    pub(super) platform_id: PlatformId,
    pub(super) entity_id: EntityId,
    pub(super) feature_id: FeatureId,
    pub(in crate::use_case::registry) environment: Environment,
    /// The name of the feature's worker at the provider.
    pub(super) cf_name: String,
}

/// The input of an activation job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::use_case::registry) struct ActivateInput {
    #[serde(flatten)]
    pub(in crate::use_case::registry) target: FeatureTarget,
    pub(in crate::use_case::registry) version: FeatureVersion,
}

/// The input of a deactivation job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::use_case::registry) struct DeactivateInput {
    #[serde(flatten)]
    pub(in crate::use_case::registry) target: FeatureTarget,
    /// Whether the feature's data is removed too. Default: `false`.
    #[serde(default)]
    pub(in crate::use_case::registry) delete_data: bool,
}

macro_rules! of_feature {
    ($($input:ty),+) => {$(
        impl JobInput for $input {
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
    )+};
}

of_feature!(ActivateInput, DeactivateInput);

impl FeatureTarget {
    /// Creates the target for a feature on a platform with this slug.
    pub(in crate::use_case::registry) fn of(feature: &FeatureActivation, slug: &Slug) -> Self {
        Self {
            activation_id: feature.id.clone(),
            platform_id: feature.platform_id.clone(),
            entity_id: feature.entity_id.clone(),
            feature_id: feature.feature_id.clone(),
            environment: feature.environment,
            cf_name: feature.worker_name(slug),
        }
    }

    /// Returns the name and type of the feature's worker.
    pub(in crate::use_case::registry) fn worker(&self) -> ResourceRef {
        ResourceRef {
            resource_type: ResourceType::Worker,
            name: self.cf_name.clone(),
        }
    }

    /// Returns the resource of the feature's worker; `None` if there is none.
    pub(super) async fn resource(
        &self,
        platform: &PlatformAccess,
        uow: &mut dyn UnitOfWork,
    ) -> Result<Option<Stored<Resource>>> {
        find_resource(platform, uow, &self.worker()).await
    }

    /// Checks that the feature still needs the job. Returns [`StepError::Precondition`] if the platform or entity no
    /// longer exists, or the feature belongs to another job or has ended.
    ///
    /// An activation job continues while a deactivation of the same feature waits after it.
    pub(super) async fn ensure_needed<K: JobKind>(
        &self,
        cx: &StepContext<'_, K>,
    ) -> Result<(), StepError> {
        let (mut uow, platform) = cx.read().await?;
        let entity = Some(&self.entity_id);
        let platform = ensure_not_deleted(uow.as_mut(), platform.as_deref(), entity).await?;
        let feature = platform.records::<FeatureActivation>(uow.as_mut());
        let feature = feature.find(&self.activation_id).await?;
        let called_for = |feature: &FeatureActivation| {
            feature.provision_job_id.as_ref() == Some(&cx.job.id)
                || feature.status == FeatureStatus::Deactivating
        };
        if feature.is_some_and(|feature| called_for(&feature)) {
            return Ok(());
        }
        let called_off = "the feature now belongs to another job or has ended";
        Err(StepError::Precondition(called_off.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_is_a_text_that_the_module_parses() {
        let config = JsonText::of(&json!({ "__proto__": "a \"quoted\" text" }));
        let module = config_module(&config);
        let text = module.strip_prefix("export default JSON.parse(").unwrap();
        let text: String = serde_json::from_str(text.strip_suffix(");\n").unwrap()).unwrap();
        assert_eq!(text, config.as_str());
    }
}
