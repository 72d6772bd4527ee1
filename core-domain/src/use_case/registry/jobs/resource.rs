//! The step that creates one resource of a platform: at the provider, then in the registry.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::target::{HasTarget, Target};
use crate::access::{PlatformAccess, PlatformWriter};
use crate::kernel::{
    Context, EntityId, Environment, Error, JsonText, Line, PlatformId, ResourceId, Result,
};
use crate::port::{self, Mode, Provisioned, ResourceRef, UnitOfWork};
use crate::registry::{
    CreateResource, DEFAULT_RESOURCES, PlatformStatus, ProviderName, Resource, ResourceType,
    purpose_of, resource_name,
};
use crate::use_case::provisioning::{
    JobContext, JobKind, JobStep, Observation, StepContext, StepError,
};
use crate::use_case::registry::{entity, resource};

/// The file a platform's worker begins with.
const WORKER: &str = include_str!("worker.js");
const MAIN_MODULE: &str = "worker.js";

/// Creates the resource of one type.
#[derive(Clone, Copy, Debug)]
pub struct MakeResource(pub ResourceType);

/// What such a step leaves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MadeResource {
    /// What kind of object it is.
    pub resource_type: ResourceType,
    /// Its name at the provider.
    pub cf_name: String,
    /// Its id at the provider.
    pub cf_id: String,
    /// Where it can be reached.
    pub cf_url: Option<String>,
}

/// What a platform's resource of a type is called at the provider.
pub(in crate::use_case::registry) fn resource_ref(
    target: &Target,
    resource_type: ResourceType,
) -> ResourceRef {
    let name = resource_name(
        &target.platform_id,
        &target.slug,
        target.environment,
        resource_type,
    );
    ResourceRef {
        resource_type,
        name,
    }
}

#[async_trait]
impl<K> JobStep<K> for MakeResource
where
    K: JobKind<Input: HasTarget>,
{
    type Output = MadeResource;

    fn name(&self) -> &'static str {
        self.0.as_str()
    }

    async fn observe(
        &self,
        cx: &StepContext<'_, K>,
    ) -> Result<Observation<MadeResource>, StepError> {
        let target = cx.input.target();
        let mut uow = cx.store.begin(Mode::Read).await?;
        let platform = cx.platform(uow.as_mut()).await?;
        let entity = target.entity_id.as_ref();
        ensure_wanted(uow.as_mut(), platform.as_deref(), entity).await?;
        drop(uow);
        let resource = resource_ref(target, self.0);
        observe_owned(cx.infrastructure, &target.platform_id, &resource).await
    }

    async fn apply(&self, cx: &StepContext<'_, K>) -> Result<MadeResource, StepError> {
        let target = cx.input.target();
        let request = port::CreateResource {
            resource: resource_ref(target, self.0),
            owner: target.platform_id.to_string(),
            effect_key: cx.effect_key.to_owned(),
            config: config(target, self.0),
        };
        let created = cx.infrastructure.create(&request).await?;
        Ok(made(&request.resource, created))
    }

    async fn record(
        &self,
        cx: &JobContext<'_, K>,
        uow: &mut dyn UnitOfWork,
        output: &MadeResource,
    ) -> Result<()> {
        let platform = cx.platform(uow).await?;
        let platform = platform.ok_or(Error::NotFound("platform"))?;
        let target = cx.input.target();
        let entity_id = owner_of(cx, &platform, uow, target).await?;
        let entry = CatalogueEntry {
            entity_id,
            service_name: purpose_of(self.0),
            environment: target.environment,
        };
        enter_made(cx, &platform, uow, entry, output).await
    }
}

/// What the catalogue tells of an object besides what the provider does.
pub(super) struct CatalogueEntry<'a> {
    pub(super) entity_id: EntityId,
    pub(super) service_name: &'a str,
    pub(super) environment: Environment,
}

/// Enters what a step of the job made or found.
pub(super) async fn enter_made<K: JobKind>(
    cx: &JobContext<'_, K>,
    platform: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    entry: CatalogueEntry<'_>,
    made: &MadeResource,
) -> Result<()> {
    let name =
        |text: &str| ProviderName::parse(text).map_err(|error| Error::Internal(error.to_string()));
    let command = CreateResource {
        stack_id: None,
        resource_type: made.resource_type,
        service_name: name(entry.service_name)?,
        environment: entry.environment,
        cf_name: name(&made.cf_name)?,
        cf_id: Line::parse(&made.cf_id).ok(),
        cf_url: made.cf_url.clone(),
        provision_job_id: Some(cx.job.id.clone()),
        config: JsonText::of(&json!({})),
    };
    let now = uow.now().await?;
    let id = ResourceId::generate(now, cx.entropy.as_ref());
    let observed = Resource::create(id, platform.platform(), entry.entity_id, command, now);
    resource::upsert_observed(cx, platform, uow, observed).await?;
    Ok(())
}

/// Jobs behind a deletion fail fast. Answers the platform.
pub(super) async fn ensure_wanted<'p>(
    uow: &mut dyn UnitOfWork,
    platform: Option<&'p PlatformAccess>,
    entity: Option<&EntityId>,
) -> Result<&'p PlatformAccess, StepError> {
    let platform = platform.filter(|p| p.platform().status != PlatformStatus::Deleted);
    let Some(platform) = platform else {
        return Err(StepError::Precondition("the platform is gone".to_owned()));
    };
    let Some(entity) = entity else {
        return Ok(platform);
    };
    match entity::not_deleted(platform, uow, entity).await {
        Err(Error::NotFound(_)) => Err(StepError::Precondition("the entity is gone".to_owned())),
        outcome => Ok(outcome.map(|_| platform)?),
    }
}

/// Looks for an object of the platform's.
pub(super) async fn observe_owned(
    infrastructure: &dyn port::Infrastructure,
    platform: &PlatformId,
    resource: &ResourceRef,
) -> Result<Observation<MadeResource>, StepError> {
    Ok(match infrastructure.observe(resource).await? {
        None => Observation::Absent,
        Some(found) if found.belongs_to(&resource.name, platform) => {
            Observation::Present(made(resource, found))
        }
        Some(_) => Observation::Conflict(format!(
            "the name {} belongs to something else",
            resource.name
        )),
    })
}

/// What a step leaves of an object that is there.
pub(super) fn made(resource: &ResourceRef, found: Provisioned) -> MadeResource {
    MadeResource {
        resource_type: resource.resource_type,
        cf_name: resource.name.clone(),
        cf_id: found.id,
        cf_url: found.url,
    }
}

/// A worker is bound to the stores created before it; everything else needs no settings.
fn config(target: &Target, resource_type: ResourceType) -> Value {
    if resource_type != ResourceType::Worker {
        return json!({});
    }
    let stores = DEFAULT_RESOURCES
        .iter()
        .take_while(|(t, _)| *t != resource_type);
    let bindings = stores.map(|(store, purpose)| {
        json!({
            "name": purpose.to_uppercase(),
            "type": store,
            "resource": resource_ref(target, *store).name,
        })
    });
    json!({
        "mainModule": MAIN_MODULE,
        "modules": { MAIN_MODULE: WORKER },
        "bindings": bindings.collect::<Vec<_>>(),
    })
}

async fn owner_of(
    cx: &Context,
    platform: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    target: &Target,
) -> Result<EntityId> {
    let entity = match &target.entity_id {
        Some(entity) => entity::not_deleted(platform, uow, entity).await?,
        None => entity::default_tenant(cx, platform, uow).await?,
    };
    Ok(entity.id.clone())
}
