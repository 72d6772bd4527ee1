//! `platform`: creates the default resources of a platform in an environment, one step for each.

use async_trait::async_trait;
use serde_json::Value;

use super::object::{CreateObject, CreatesObject, ObjectProperties};
use super::platform_object::{PlatformObject, default_config};
use super::target::{HasTarget, Target, ensure_not_deleted};
use crate::access::PlatformWriter;
use crate::kernel::{Context, EntityId, Result};
use crate::port::{ResourceRef, UnitOfWork};
use crate::registry::ResourceType;
use crate::use_case::provisioning::{JobContext, JobKind, StepContext, StepError, Steps};
use crate::use_case::registry::entity_tree;

/// The job kind `platform`.
#[derive(Clone, Copy, Debug)]
pub(in crate::use_case::registry) struct ProvisionPlatform;

impl JobKind for ProvisionPlatform {
    const HAS_HOOKS: bool = false;
    const NAME: &'static str = "platform";
    type Input = Target;

    fn steps() -> Steps<Self> {
        let objects = PlatformObject::defaults().map(PlatformObject::resource_type);
        Steps::new().steps(objects.map(|of_type| CreateObject(DefaultResource(of_type))))
    }
}

/// The default resource of one type.
#[derive(Clone, Copy, Debug)]
pub(in crate::use_case) struct DefaultResource(pub(in crate::use_case) ResourceType);

#[async_trait]
impl<K: JobKind<Input: HasTarget>> CreatesObject<K> for DefaultResource {
    fn name(&self) -> &'static str {
        self.0.as_str()
    }

    fn object(&self, input: &K::Input, _item: Option<&str>) -> Result<ResourceRef> {
        Ok(PlatformObject::Default(self.0).in_environment(input.target().at()))
    }

    async fn ensure_needed(&self, cx: &StepContext<'_, K>) -> Result<(), StepError> {
        let (mut uow, platform) = cx.read().await?;
        let entity = cx.input.target().entity_id.as_ref();
        ensure_not_deleted(uow.as_mut(), platform.as_deref(), entity).await?;
        Ok(())
    }

    async fn config(&self, cx: &StepContext<'_, K>) -> Result<Value, StepError> {
        Ok(default_config(cx.input.target().at(), self.0))
    }

    async fn properties(
        &self,
        cx: &JobContext<'_, K>,
        uow: &mut dyn UnitOfWork,
    ) -> Result<ObjectProperties> {
        let target = cx.input.target();
        Ok(ObjectProperties {
            entity_id: owner_of(cx, &cx.scope, uow, target).await?,
            stack_id: None,
            feature_id: None,
            service_name: PlatformObject::Default(self.0).purpose().to_owned(),
            environment: target.environment,
        })
    }
}

/// Returns the entity that owns the resources.
async fn owner_of(
    cx: &Context,
    platform: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    target: &Target,
) -> Result<EntityId> {
    let entity = match &target.entity_id {
        Some(entity) => entity_tree::not_deleted(platform, uow, entity).await?,
        None => entity_tree::default_tenant(cx, platform, uow).await?,
    };
    Ok(entity.id.clone())
}
