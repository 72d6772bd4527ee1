//! `feature.activate`: gives a feature of an entity a worker of its own, and lets the activation and its build follow.

use async_trait::async_trait;
use serde_json::json;

use super::feature_target::{ActivateInput, FeatureTarget};
use super::removal::{delete_entries, take_back};
use super::resource::{
    CatalogueEntry, MadeResource, made, observe_made, upsert_resource, used_otherwise,
};
use crate::access::PlatformAccess;
use crate::kernel::{Error, Result, Stored};
use crate::port::{CreateResource, Mode, UnitOfWork};
use crate::provisioning::{ACTIVATE_FEATURE, Job};
use crate::registry::{BuildEnd, FeatureActivation, FeatureEvent};
use crate::use_case::provisioning::{
    JobContext, JobKind, JobStep, Observation, StepContext, StepError, Steps, Undone,
};
use crate::use_case::registry::{build, feature};

/// The file a feature's worker begins with.
const WORKER: &str = include_str!("feature.js");
const MAIN_MODULE: &str = "feature.js";

/// The name of the step that makes the worker.
const MAKE_WORKER: &str = "worker";

/// The kind.
#[derive(Clone, Copy, Debug)]
pub(in crate::use_case::registry) struct Activate;

#[async_trait]
impl JobKind for Activate {
    const NAME: &'static str = ACTIVATE_FEATURE;
    type Input = ActivateInput;

    fn steps() -> Steps<Self> {
        Steps::new().then(MakeWorker)
    }

    /// Of a worker that an operator declared made nothing is known.
    async fn completed(&self, cx: &JobContext<'_, Self>, uow: &mut dyn UnitOfWork) -> Result<()> {
        let url = cx
            .job
            .output_of(MAKE_WORKER)
            .and_then(|made| made["cfUrl"].as_str());
        let url = url.map(str::to_owned);
        let end = BuildEnd::Success {
            cf_deployment_id: None,
            build_url: url.clone(),
        };
        follow(cx, uow, FeatureEvent::Activated, url, Some(end)).await
    }

    async fn failed(&self, cx: &JobContext<'_, Self>, uow: &mut dyn UnitOfWork) -> Result<()> {
        follow(cx, uow, FeatureEvent::Fail, None, Some(BuildEnd::Failed)).await
    }

    async fn resumed(&self, cx: &JobContext<'_, Self>, uow: &mut dyn UnitOfWork) -> Result<()> {
        follow(cx, uow, FeatureEvent::Activate, None, None).await
    }
}

/// Moves feature and build as the job moved; the build goes on where it has no end.
async fn follow(
    cx: &JobContext<'_, Activate>,
    uow: &mut dyn UnitOfWork,
    event: FeatureEvent,
    service_url: Option<String>,
    end: Option<BuildEnd>,
) -> Result<()> {
    let Some(platform) = cx.platform(uow).await? else {
        return Ok(());
    };
    let own = (&cx.input.target.activation_id, &cx.job.id);
    feature::record_event(cx, &platform, uow, own, event, service_url).await?;
    match end {
        Some(end) => build::end(cx, &platform, uow, &cx.job.id, end).await,
        None => build::resume(cx, &platform, uow, &cx.job.id).await,
    }
}

/// Makes the feature's worker.
#[derive(Clone, Copy, Debug)]
struct MakeWorker;

#[async_trait]
impl JobStep<Activate> for MakeWorker {
    const UNDOES: bool = true;
    type Output = MadeResource;

    fn name(&self) -> &'static str {
        MAKE_WORKER
    }

    async fn observe(
        &self,
        cx: &StepContext<'_, Activate>,
    ) -> Result<Observation<MadeResource>, StepError> {
        let target = &cx.input.target;
        target.ensure_called_for(cx).await?;
        observe_made(cx, &target.platform_id, &target.worker()).await
    }

    async fn apply(&self, cx: &StepContext<'_, Activate>) -> Result<MadeResource, StepError> {
        let target = &cx.input.target;
        let request = CreateResource {
            resource: target.worker(),
            owner: target.platform_id.to_string(),
            effect_key: cx.effect_key.to_owned(),
            config: json!({
                "mainModule": MAIN_MODULE,
                "modules": { MAIN_MODULE: WORKER },
                "bindings": [],
            }),
        };
        let created = cx.infrastructure.create(&request).await?;
        Ok(made(&request.resource, created))
    }

    async fn record(
        &self,
        cx: &JobContext<'_, Activate>,
        uow: &mut dyn UnitOfWork,
        output: &MadeResource,
    ) -> Result<()> {
        let platform = cx.platform(uow).await?;
        let platform = platform.ok_or(Error::NotFound("platform"))?;
        let target = &cx.input.target;
        let entry = CatalogueEntry {
            entity_id: target.entity_id.clone(),
            feature: Some(&target.activation_id),
            service_name: target.feature_id.as_str(),
            environment: target.environment,
        };
        upsert_resource(cx, &platform, uow, entry, output, output.maker(&cx.job.id)).await?;
        Ok(())
    }

    /// A feature that was asked for otherwise since has the same worker.
    async fn undo(&self, cx: &StepContext<'_, Activate>) -> Result<Undone, StepError> {
        let target = &cx.input.target;
        let mut uow = cx.store.begin(Mode::Read).await?;
        let Some(platform) = cx.platform(uow.as_mut()).await? else {
            return Ok(Undone::left("its platform does not exist"));
        };
        let feature = feature_of_job(&platform, uow.as_mut(), cx.job, target).await?;
        if feature.is_none() {
            return Ok(Undone::left("its feature belongs to another job"));
        }
        if let Some(entry) = target.entry(&platform, uow.as_mut()).await?
            && let Some(why) = used_otherwise(&platform, uow.as_mut(), &entry, cx.job).await?
        {
            return Ok(Undone::left(why));
        }
        drop(uow);
        take_back(cx, &target.platform_id, &target.worker()).await
    }

    async fn record_undo(
        &self,
        cx: &JobContext<'_, Activate>,
        uow: &mut dyn UnitOfWork,
        undone: &Undone,
    ) -> Result<()> {
        let platform = cx.platform(uow).await?;
        let Some(platform) = platform.filter(|_| undone.is_taken_back()) else {
            return Ok(());
        };
        let target = &cx.input.target;
        let feature = feature_of_job(&platform, uow, cx.job, target).await?;
        if feature.is_none() {
            return Ok(());
        }
        let entry = target.entry(&platform, uow).await?;
        delete_entries(cx, &platform, uow, entry.into_iter().collect()).await
    }
}

/// The job's feature, unless it was asked for or ended otherwise since.
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
