//! `auth.upgrade`: upgrades the auth worker of a platform to the current version in every environment with resources.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::object::{CreateObject, CreatesObject, ObjectProperties, find_resource};
use super::platform_object::{
    AUTH_VERSION, AUTH_VERSION_SETTING, PlatformEnvironment, PlatformObject, is_current_auth,
};
use super::target::ensure_not_deleted;
use crate::kernel::{Environment, Error, PlatformId, PlatformOwned, Result, Slug, Stored};
use crate::port::{ResourceRef, UnitOfWork};
use crate::provisioning::LaneKey;
use crate::registry::Resource;
use crate::use_case::provisioning::{JobContext, JobInput, JobKind, StepContext, StepError, Steps};
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

impl AuthTarget {
    /// Returns the name and type of the auth worker in each environment.
    pub(in crate::use_case::registry) fn workers(&self) -> impl Iterator<Item = ResourceRef> {
        let environments = self.environments.iter().copied();
        environments
            .map(|environment| PlatformObject::AuthWorker.in_environment(self.at(environment)))
    }

    /// Returns one of the environments of the platform.
    const fn at(&self, environment: Environment) -> PlatformEnvironment<'_> {
        PlatformEnvironment {
            platform_id: &self.platform_id,
            slug: &self.slug,
            environment,
        }
    }

    /// Returns the environment of a step.
    fn at_item(&self, item: Option<&str>) -> Result<PlatformEnvironment<'_>> {
        let mut environments = self.environments.iter().copied();
        let environment = environments.find(|e| Some(e.as_str()) == item);
        let environment = environment.ok_or_else(|| {
            Error::Internal(format!("unknown environment of an auth worker: {item:?}"))
        })?;
        Ok(self.at(environment))
    }
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
        Steps::new().step(CreateObject(AuthWorker))
    }

    fn plan(input: &AuthTarget) -> Vec<String> {
        let environments = input.environments.iter();
        environments
            .map(|environment| format!("{UPGRADE}:{environment}"))
            .collect()
    }
}

/// The auth worker of an environment. Its current script is uploaded, unless the worker already has it.
#[derive(Clone, Copy, Debug)]
struct AuthWorker;

#[async_trait]
impl CreatesObject<UpgradeAuth> for AuthWorker {
    const CAN_UNDO: bool = false;

    fn name(&self) -> &'static str {
        UPGRADE
    }

    fn object(&self, input: &AuthTarget, item: Option<&str>) -> Result<ResourceRef> {
        Ok(PlatformObject::AuthWorker.in_environment(input.at_item(item)?))
    }

    async fn ensure_needed(&self, cx: &StepContext<'_, UpgradeAuth>) -> Result<(), StepError> {
        let (mut uow, platform) = cx.read().await?;
        ensure_not_deleted(uow.as_mut(), platform.as_deref(), None).await?;
        Ok(())
    }

    /// A worker without a recorded version is uploaded again.
    async fn is_outdated(
        &self,
        cx: &StepContext<'_, UpgradeAuth>,
        object: &ResourceRef,
    ) -> Result<bool, StepError> {
        let (mut uow, Some(platform)) = cx.read().await? else {
            return Ok(true);
        };
        let resource = find_resource(&platform, uow.as_mut(), object).await?;
        Ok(!resource.is_some_and(|resource| is_current_auth(&resource)))
    }

    async fn config(&self, cx: &StepContext<'_, UpgradeAuth>) -> Result<Value, StepError> {
        let at = cx.input.at_item(cx.item)?;
        Ok(PlatformObject::AuthWorker.config(at, &cx.kind.iam_url))
    }

    async fn properties(
        &self,
        cx: &JobContext<'_, UpgradeAuth>,
        uow: &mut dyn UnitOfWork,
    ) -> Result<ObjectProperties> {
        let owner = entity_tree::default_tenant(cx, &cx.scope, uow).await?;
        Ok(ObjectProperties {
            entity_id: owner.id.clone(),
            stack_id: None,
            feature_id: None,
            service_name: PlatformObject::AuthWorker.purpose().to_owned(),
            environment: cx.input.at_item(cx.item)?.environment,
        })
    }

    async fn record(
        &self,
        cx: &JobContext<'_, UpgradeAuth>,
        uow: &mut dyn UnitOfWork,
        resource: Stored<Resource>,
    ) -> Result<()> {
        let (name, version) = (AUTH_VERSION_SETTING, json!(AUTH_VERSION));
        resource::record_setting(cx, &cx.scope, uow, &resource, name, version).await?;
        Ok(())
    }
}
