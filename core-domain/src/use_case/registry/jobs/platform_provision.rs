//! `platform`: creates the default resources of a platform in an environment, one step for each.
//!
//! This module also has the functions that other kinds use to observe, create and record objects.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::dns_record_removal;
use super::removal::{delete_entry, undo_creation};
use super::target::{HasTarget, Target};
use crate::access::{Batches, PlatformAccess, PlatformWriter};
use crate::kernel::{
    BoundedJson, Context, EntityId, Environment, Error, FeatureActivationId, JobId, Line,
    PlatformId, ResourceId, Result, Slug, Stored, Timestamp,
};
use crate::port;
use crate::port::{ProviderObject, ResourceRef, UnitOfWork};
use crate::provisioning::Job;
use crate::registry::{
    CreateResource, DEFAULT_RESOURCES, PlatformStatus, ProviderName, Resource, ResourceQuery,
    ResourceType, purpose_of, resource_name,
};
use crate::use_case::provisioning::{
    JobContext, JobKind, JobStep, Observation, StepContext, StepError, Steps, Undone,
};
use crate::use_case::registry::resource::Creator;
use crate::use_case::registry::{entity_tree, resource};

/// The job kind `platform`.
#[derive(Clone, Copy, Debug)]
pub(in crate::use_case::registry) struct ProvisionPlatform;

impl JobKind for ProvisionPlatform {
    const HAS_HOOKS: bool = false;
    const NAME: &'static str = "platform";
    type Input = Target;

    fn steps() -> Steps<Self> {
        Steps::new().steps(DEFAULT_RESOURCES.map(|(resource_type, _)| MakeResource(resource_type)))
    }
}

/// The initial script of a platform's worker.
const WORKER: &str = include_str!("js/worker.js");

const MAIN_MODULE: &str = "worker.js";

/// Creates the resource of one type.
#[derive(Clone, Copy, Debug)]
pub struct MakeResource(pub ResourceType);

/// The output of a step that creates an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MadeResource {
    /// The type of the object.
    pub resource_type: ResourceType,
    /// The name of the object at the provider.
    pub cf_name: String,
    /// The id of the object at the provider.
    pub cf_id: String,
    /// The URL of the object; `None` if it has none.
    pub cf_url: Option<String>,
    /// Whether the object existed before the job first tried to create it. Default: `false`.
    #[serde(default)]
    pub adopted: bool,
}

impl MadeResource {
    /// Returns the creator of the object when this job records it.
    pub(in crate::use_case::registry) fn maker<'a>(&self, job: &'a JobId) -> Creator<'a> {
        if self.adopted {
            Creator::Existing
        } else {
            Creator::Job(job)
        }
    }
}

/// Returns the name and type of a platform's default resource.
pub(in crate::use_case::registry) fn resource_ref(
    target: &Target,
    resource_type: ResourceType,
) -> ResourceRef {
    let at = (&target.platform_id, &target.slug, target.environment);
    default_ref(at, resource_type)
}

/// A platform, its slug and one of its environments.
pub(in crate::use_case::registry) type PlatformEnvironment<'a> =
    (&'a PlatformId, &'a Slug, Environment);

/// Returns the name and type of a platform's default resource in an environment.
fn default_ref(
    (platform, slug, environment): PlatformEnvironment<'_>,
    resource_type: ResourceType,
) -> ResourceRef {
    let name = resource_name(platform, slug, environment, resource_type);
    ResourceRef {
        resource_type,
        name,
    }
}

/// Returns the request that creates a platform's default resource.
pub(super) fn default_request(
    at: PlatformEnvironment<'_>,
    resource_type: ResourceType,
    effect_key: String,
) -> port::CreateResource {
    port::CreateResource {
        resource: default_ref(at, resource_type),
        owner: at.0.to_string(),
        effect_key,
        config: config(at, resource_type),
    }
}

#[async_trait]
impl<K> JobStep<K> for MakeResource
where
    K: JobKind<Input: HasTarget>,
{
    const CAN_UNDO: bool = true;
    type Output = MadeResource;

    fn name(&self) -> &'static str {
        self.0.as_str()
    }

    async fn observe(
        &self,
        cx: &StepContext<'_, K>,
    ) -> Result<Observation<MadeResource>, StepError> {
        let target = cx.input.target();
        let (mut uow, platform) = cx.read().await?;
        let entity = target.entity_id.as_ref();
        ensure_not_deleted(uow.as_mut(), platform.as_deref(), entity).await?;
        drop(uow);
        observe_made(cx, &target.platform_id, &resource_ref(target, self.0)).await
    }

    async fn apply(&self, cx: &StepContext<'_, K>) -> Result<MadeResource, StepError> {
        let target = cx.input.target();
        let at = (&target.platform_id, &target.slug, target.environment);
        let request = default_request(at, self.0, cx.effect_key.to_owned());
        let created = cx.infrastructure.create(&request).await?;
        Ok(made_resource(&request.resource, created))
    }

    async fn record(
        &self,
        cx: &JobContext<'_, K>,
        uow: &mut dyn UnitOfWork,
        output: &MadeResource,
    ) -> Result<()> {
        let target = cx.input.target();
        let entity_id = owner_of(cx, &cx.scope, uow, target).await?;
        let entry = CatalogueEntry {
            entity_id,
            feature: None,
            service_name: purpose_of(self.0),
            environment: target.environment,
        };
        upsert_resource(cx, &cx.scope, uow, entry, output, output.maker(&cx.job.id)).await?;
        Ok(())
    }

    /// Keeps an object that another job uses or that has DNS records.
    async fn undo(&self, cx: &StepContext<'_, K>) -> Result<Undone, StepError> {
        let target = cx.input.target();
        let resource = resource_ref(target, self.0);
        let (mut uow, platform) = cx.read().await?;
        if let Some(platform) = platform {
            let uow = uow.as_mut();
            let entry = find_resource(&platform, uow, &resource).await?;
            if let Some(entry) = entry
                && let Some(why) = reason_to_keep(&platform, uow, &entry, cx.job).await?
            {
                return Ok(Undone::left(why));
            }
        }
        drop(uow);
        undo_creation(cx, &target.platform_id, &resource).await
    }

    async fn record_undo(
        &self,
        cx: &JobContext<'_, K>,
        uow: &mut dyn UnitOfWork,
        undone: &Undone,
    ) -> Result<()> {
        if !undone.is_removed() {
            return Ok(());
        }
        let target = cx.input.target();
        let resource = resource_ref(target, self.0);
        let entry = find_resource(&cx.scope, uow, &resource).await?;
        match entry.filter(|entry| is_made_by(entry, cx.job)) {
            Some(entry) => delete_entry(cx, &cx.scope, uow, &entry).await,
            None => Ok(()),
        }
    }
}

/// Returns the resource of an object; `None` if there is none or it is deleted.
pub(in crate::use_case::registry) async fn find_resource(
    platform: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    resource: &ResourceRef,
) -> Result<Option<Stored<Resource>>> {
    let Ok(cf_name) = ProviderName::parse(&resource.name) else {
        return Ok(None);
    };
    let exactly = ResourceQuery::Exactly {
        resource_type: resource.resource_type,
        cf_name,
    };
    platform.records::<Resource>(uow).first(&exactly).await
}

/// Returns whether the resource records the job as the creator of the object.
pub(super) fn is_made_by(entry: &Resource, job: &Job) -> bool {
    entry.provision_job_id.as_ref() == Some(&job.id)
}

/// Returns the reason why an undo keeps the object of a resource; `None` if the undo can remove it.
pub(super) async fn reason_to_keep(
    platform: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    entry: &Resource,
    job: &Job,
) -> Result<Option<&'static str>> {
    if !is_made_by(entry, job) {
        return Ok(Some("another job uses it"));
    }
    let leading = dns_record_removal::count_leading_to(platform, uow, &entry.id).await?;
    Ok((leading > 0).then_some("it has DNS records"))
}

/// The properties of a resource that the provider does not know.
pub(super) struct CatalogueEntry<'a> {
    pub(super) entity_id: EntityId,
    /// The feature that owns the object; `None` for other objects.
    pub(super) feature: Option<&'a FeatureActivationId>,
    pub(super) service_name: &'a str,
    pub(super) environment: Environment,
}

/// Creates or updates the resource of an object that a step of the job created or found.
pub(super) async fn upsert_resource<K: JobKind>(
    cx: &JobContext<'_, K>,
    platform: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    entry: CatalogueEntry<'_>,
    made: &MadeResource,
    maker: Creator<'_>,
) -> Result<Stored<Resource>> {
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
        provision_job_id: None,
        config: BoundedJson::empty_object(),
    };
    let now = uow.now().await?;
    let id = ResourceId::generate(now, cx.entropy.as_ref());
    let mut observed = Resource::create(id, platform.platform(), entry.entity_id, command, now);
    observed.feature_activation_id = entry.feature.cloned();
    resource::upsert_observed(cx, platform, uow, observed, maker).await
}

/// Returns the platform. Returns [`StepError::Precondition`] if the platform or the entity no longer exists, so that
/// jobs after a deletion fail fast.
pub(super) async fn ensure_not_deleted<'p>(
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
    match entity_tree::not_deleted(platform, uow, entity).await {
        Err(Error::NotFound(_)) => Err(StepError::Precondition("the entity is gone".to_owned())),
        outcome => Ok(outcome.map(|_| platform)?),
    }
}

/// Observes an object that must belong to the platform. An object of another owner is a conflict.
pub(super) async fn observe_owned(
    infrastructure: &dyn port::Infrastructure,
    platform: &PlatformId,
    resource: &ResourceRef,
) -> Result<Observation<MadeResource>, StepError> {
    Ok(match infrastructure.observe(resource).await? {
        None => Observation::Absent,
        Some(found) if found.belongs_to(&resource.name, platform) => {
            Observation::Present(made_resource(resource, found))
        }
        Some(_) => Observation::Conflict(format!(
            "the name {} belongs to another object",
            resource.name
        )),
    })
}

/// Observes an object that the step creates. Marks an object that existed before the job as adopted.
pub(super) async fn observe_made<K: JobKind>(
    cx: &StepContext<'_, K>,
    platform: &PlatformId,
    resource: &ResourceRef,
) -> Result<Observation<MadeResource>, StepError> {
    let found = observe_owned(cx.infrastructure, platform, resource).await?;
    Ok(match found {
        Observation::Present(made) => Observation::Present(MadeResource {
            adopted: cx.existed_before(),
            ..made
        }),
        found => found,
    })
}

/// Returns the step output for an existing object.
pub(super) fn made_resource(resource: &ResourceRef, found: ProviderObject) -> MadeResource {
    MadeResource {
        resource_type: resource.resource_type,
        cf_name: resource.name.clone(),
        cf_id: found.id,
        cf_url: found.url,
        adopted: false,
    }
}

/// Returns the settings of a default resource. A worker is bound to the stores that were created before it; other types
/// have no settings.
fn config(at: PlatformEnvironment<'_>, resource_type: ResourceType) -> Value {
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
            "resource": default_ref(at, *store).name,
        })
    });
    json!({
        "mainModule": MAIN_MODULE,
        "modules": { MAIN_MODULE: WORKER },
        "bindings": bindings.collect::<Vec<_>>(),
    })
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

/// The state of an object in the registry of a platform.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ObjectRecords {
    /// Whether a resource that is not deleted exists for the object.
    pub(super) is_entered: bool,
    /// The environment of its newest resource, including deleted ones.
    pub(super) environment: Option<Environment>,
    /// The time of the last deletion of a resource for the object.
    pub(super) deleted_at: Option<Timestamp>,
}

impl ObjectRecords {
    /// Reads the state of an object from all resources that ever had its name.
    pub(super) async fn of(
        platform: &PlatformAccess,
        uow: &mut dyn UnitOfWork,
        object: &ResourceRef,
    ) -> Result<Self> {
        let named = ResourceQuery::EverNamed(object.name.clone());
        let mut entries = Batches::<Resource>::of(named);
        let mut known = Self::default();
        while let Some(batch) = entries.next(platform.records(uow)).await? {
            let of_type = batch
                .iter()
                .filter(|entry| entry.resource_type == object.resource_type);
            // The query returns the newest resource first.
            for entry in of_type {
                known.is_entered |= entry.deleted_at.is_none();
                known.environment = known.environment.or(Some(entry.environment));
                known.deleted_at = known.deleted_at.max(entry.deleted_at);
            }
        }
        Ok(known)
    }
}
