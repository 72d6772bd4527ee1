//! `auth.upgrade`: upgrades the auth worker of a platform to the current version in every environment with resources.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::platform_provision::{
    CatalogueEntry, MadeResource, PlatformEnvironment, ensure_not_deleted, find_resource,
    made_resource, observe_owned, upsert_resource,
};
use crate::kernel::{Environment, Error, PlatformId, PlatformOwned, Result, Slug};
use crate::port::{CreateResource, ResourceRef, UnitOfWork};
use crate::provisioning::LaneKey;
use crate::registry::{AUTH, Resource, ResourceType, auth_worker_name};
use crate::use_case::provisioning::{
    JobContext, JobInput, JobKind, JobStep, Observation, StepContext, StepError, Steps,
};
use crate::use_case::registry::{entity_tree, resource};

/// The name of the step, which runs once for each environment.
const UPGRADE: &str = "worker";

/// The input of the job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::use_case::registry) struct AuthTarget {
    pub(in crate::use_case::registry) platform_id: PlatformId,
    pub(in crate::use_case::registry) slug: Slug,
    pub(in crate::use_case::registry) environments: Vec<Environment>,
}

impl JobInput for AuthTarget {
    type Owner = PlatformOwned;

    fn lane(&self) -> LaneKey {
        LaneKey::platform(&self.platform_id)
    }

    fn platform_id(&self) -> Option<&PlatformId> {
        Some(&self.platform_id)
    }
}

/// The job kind `auth.upgrade`. It has no undo: a replaced worker is not restored.
#[derive(Clone, Debug)]
pub(in crate::use_case::registry) struct UpgradeAuth {
    /// The base URL of IAM for the workers.
    pub(in crate::use_case::registry) iam_url: String,
}

impl JobKind for UpgradeAuth {
    const HAS_HOOKS: bool = false;
    const NAME: &'static str = "auth.upgrade";
    type Input = AuthTarget;

    fn steps() -> Steps<Self> {
        Steps::new().step(Upgrade)
    }

    fn plan(input: &AuthTarget) -> Vec<String> {
        let environments = input.environments.iter();
        environments
            .map(|environment| format!("{UPGRADE}:{environment}"))
            .collect()
    }
}

/// Uploads the current script, unless the worker already has it.
#[derive(Clone, Copy, Debug)]
struct Upgrade;

#[async_trait]
impl JobStep<UpgradeAuth> for Upgrade {
    type Output = MadeResource;

    fn name(&self) -> &'static str {
        UPGRADE
    }

    async fn observe(
        &self,
        cx: &StepContext<'_, UpgradeAuth>,
    ) -> Result<Observation<MadeResource>, StepError> {
        let at = place(cx.input, cx.item)?;
        let worker = auth_ref(at);
        let (mut uow, platform) = cx.read().await?;
        let platform = ensure_not_deleted(uow.as_mut(), platform.as_deref(), None).await?;
        let entry = find_resource(platform, uow.as_mut(), &worker).await?;
        drop(uow);
        let found = observe_owned(cx.infrastructure, at.0, &worker).await?;
        Ok(match found {
            // A worker without a recorded version is uploaded again.
            Observation::Present(_) if !entry.is_some_and(|entry| is_current(&entry)) => {
                Observation::Absent
            }
            found => found,
        })
    }

    async fn apply(&self, cx: &StepContext<'_, UpgradeAuth>) -> Result<MadeResource, StepError> {
        let at = place(cx.input, cx.item)?;
        let request = auth_request(at, &cx.kind.iam_url, cx.effect_key.to_owned());
        let created = cx.infrastructure.create(&request).await?;
        Ok(made_resource(&request.resource, created))
    }

    async fn record(
        &self,
        cx: &JobContext<'_, UpgradeAuth>,
        uow: &mut dyn UnitOfWork,
        output: &MadeResource,
    ) -> Result<()> {
        let (_, _, environment) = place(cx.input, cx.item)?;
        let owner = entity_tree::default_tenant(cx, &cx.scope, uow).await?;
        let entry = CatalogueEntry {
            entity_id: owner.id.clone(),
            feature: None,
            service_name: AUTH,
            environment,
        };
        let entered =
            upsert_resource(cx, &cx.scope, uow, entry, output, output.maker(&cx.job.id)).await?;
        let version = (VERSION_SETTING, json!(AUTH_VERSION));
        resource::record_setting(cx, &cx.scope, uow, &entered, version).await?;
        Ok(())
    }
}

/// Returns the platform and environment of a step.
fn place<'a>(input: &'a AuthTarget, item: Option<&str>) -> Result<PlatformEnvironment<'a>> {
    let mut environments = input.environments.iter().copied();
    let environment = environments.find(|e| Some(e.as_str()) == item);
    let environment = environment.ok_or_else(|| {
        Error::Internal(format!("unknown environment of an auth worker: {item:?}"))
    })?;
    Ok((&input.platform_id, &input.slug, environment))
}

/// The script of the worker.
const WORKER: &str = include_str!("js/auth.js");

/// The name of the script's main module.
const MAIN_MODULE: &str = "auth.js";

/// The name of the generated module with the settings.
const SETTINGS_MODULE: &str = "config.js";

/// The version of the script. Must be increased with every change of the file.
pub(super) const AUTH_VERSION: i64 = 1;

/// The setting of the worker's resource that stores its version.
pub(super) const VERSION_SETTING: &str = "authVersion";

/// Returns the name and type of the auth worker in an environment.
pub(in crate::use_case::registry) fn auth_ref(
    (platform, slug, environment): PlatformEnvironment<'_>,
) -> ResourceRef {
    ResourceRef {
        resource_type: ResourceType::Worker,
        name: auth_worker_name(platform, slug, environment),
    }
}

/// Returns the request that creates the worker with the current script. The worker verifies sessions at `iam_url`.
pub(super) fn auth_request(
    at: PlatformEnvironment<'_>,
    iam_url: &str,
    effect_key: String,
) -> CreateResource {
    let (main, settings) = (WORKER, settings(at, iam_url));
    CreateResource {
        resource: auth_ref(at),
        owner: at.0.to_string(),
        effect_key,
        config: json!({
            "mainModule": MAIN_MODULE,
            "modules": { MAIN_MODULE: main, SETTINGS_MODULE: settings },
            "bindings": [],
        }),
    }
}

/// Returns the module with the settings of the script. JSON texts are valid JavaScript.
fn settings(at: PlatformEnvironment<'_>, iam_url: &str) -> String {
    let url = format!("{}/api/core/session", iam_url.trim_end_matches('/'));
    let (platform, url) = (json!(at.0), json!(url));
    format!(
        "export const platformId = {platform};\nexport const sessionUrl = {url};\nexport const version = {AUTH_VERSION};\n"
    )
}

/// Returns whether the resource records the current version of the worker.
pub(in crate::use_case::registry) fn is_current(entry: &Resource) -> bool {
    entry.config.value()[VERSION_SETTING] == AUTH_VERSION
}
