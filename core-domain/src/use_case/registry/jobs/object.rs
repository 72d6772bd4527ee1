//! The step that creates an object at the provider, for all kinds that create objects, and the registry's records of
//! objects.
//!
//! A kind declares each object with [`CreatesObject`]. The step [`CreateObject`] observes and creates the object,
//! records it in the registry, and removes it when the job is undone.

use std::fmt::Debug;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::dns_record_removal;
use super::removal::{delete_resource, undo_creation};
use super::target::{PlatformKind, platform_id_of};
use crate::access::{Batches, PlatformAccess, PlatformWriter};
use crate::kernel::{
    BoundedJson, EntityId, Environment, Error, FeatureActivationId, JobId, Line, PlatformId,
    ResourceId, Result, StackId, Stored, Timestamp,
};
use crate::port::{Infrastructure, ObjectRequest, ProviderObject, ResourceRef, UnitOfWork};
use crate::provisioning::Job;
use crate::registry::{CreateResource, ProviderName, Resource, ResourceQuery, ResourceType};
use crate::use_case::provisioning::{
    JobContext, JobStep, Observation, StepContext, StepError, Undone,
};
use crate::use_case::registry::resource;
use crate::use_case::registry::resource::Creator;

/// An object that a kind creates at the provider.
#[async_trait]
pub(in crate::use_case) trait CreatesObject<K: PlatformKind>:
    Debug + Send + Sync + 'static
{
    /// `true` if cancelling the job removes the object. Default: `true`.
    const CAN_UNDO: bool = true;

    /// Returns the name of the step, unique within the kind.
    fn name(&self) -> &'static str;

    /// Returns the name and type of the object. `item` is the item of a step that runs once for each of several items.
    ///
    /// # Errors
    /// `INTERNAL_ERROR` if the input has no such item.
    fn object(&self, input: &K::Input, item: Option<&str>) -> Result<ResourceRef>;

    /// Checks that the object is still needed.
    ///
    /// # Errors
    /// [`StepError::Precondition`] if it is not.
    async fn ensure_needed(&self, cx: &StepContext<'_, K>) -> Result<(), StepError>;

    /// Returns whether the existing object is created again, which gives it the current settings. Default: `false`.
    ///
    /// # Errors
    /// Only those of the store.
    async fn is_outdated(
        &self,
        _cx: &StepContext<'_, K>,
        _object: &ResourceRef,
    ) -> Result<bool, StepError> {
        Ok(false)
    }

    /// Returns the settings of the object, see [`ObjectRequest::config`].
    ///
    /// # Errors
    /// A [`StepError`] if they cannot be determined.
    async fn config(&self, cx: &StepContext<'_, K>) -> Result<Value, StepError>;

    /// Returns the properties of the object's resource that the provider does not know.
    ///
    /// # Errors
    /// `NOT_FOUND` if the entity that owns the object no longer exists.
    async fn properties(
        &self,
        cx: &JobContext<'_, K>,
        uow: &mut dyn UnitOfWork,
    ) -> Result<ObjectProperties>;

    /// Writes the other consequences of the created object. `resource` is its record. Default: none.
    ///
    /// # Errors
    /// Any error counts as a failed attempt of the step.
    async fn record(
        &self,
        _cx: &JobContext<'_, K>,
        _uow: &mut dyn UnitOfWork,
        _resource: Stored<Resource>,
    ) -> Result<()> {
        Ok(())
    }

    /// Returns the reason why an undo keeps the object; `None` if the undo removes it. `resource` is the
    /// object's record. Default: an object that another job uses or that has DNS records is kept.
    ///
    /// # Errors
    /// Only those of the store.
    async fn reason_to_keep(
        &self,
        cx: &StepContext<'_, K>,
        platform: &PlatformAccess,
        uow: &mut dyn UnitOfWork,
        resource: Option<&Resource>,
    ) -> Result<Option<&'static str>> {
        reason_to_keep(platform, uow, resource, cx.job).await
    }

    /// Returns whether the end of an undo deletes the object's resource. Default: `true` if the object was removed and
    /// this job created it.
    ///
    /// # Errors
    /// Only those of the store.
    async fn undo_deletes(
        &self,
        cx: &JobContext<'_, K>,
        _uow: &mut dyn UnitOfWork,
        resource: &Resource,
        undone: &Undone,
    ) -> Result<bool> {
        Ok(undone.is_removed() && is_created_by(resource, cx.job))
    }
}

/// The properties of an object's resource that the provider does not know.
#[derive(Clone, Debug)]
pub(in crate::use_case) struct ObjectProperties {
    /// The entity that owns the resource.
    pub(in crate::use_case) entity_id: EntityId,
    /// The workspace stack that the object is a part of; `None` for other objects.
    pub(in crate::use_case) stack_id: Option<StackId>,
    /// The feature that owns the object; `None` for other objects.
    pub(in crate::use_case) feature_id: Option<FeatureActivationId>,
    /// The purpose of the object.
    pub(in crate::use_case) service_name: String,
    /// The environment in which the object runs.
    pub(in crate::use_case) environment: Environment,
}

/// The output of [`CreateObject`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::use_case) struct CreatedObject {
    /// The type of the object.
    pub(in crate::use_case) resource_type: ResourceType,
    /// The name of the object at the provider.
    pub(in crate::use_case) cf_name: String,
    /// The id of the object at the provider.
    pub(in crate::use_case) cf_id: String,
    /// The URL of the object; `None` if it has none.
    pub(in crate::use_case) cf_url: Option<String>,
    /// Whether the object existed before the job first tried to create it. Default: `false`.
    #[serde(default)]
    pub(in crate::use_case) adopted: bool,
}

impl CreatedObject {
    /// Returns the step output for an existing object.
    pub(super) fn of(object: &ResourceRef, found: ProviderObject) -> Self {
        Self {
            resource_type: object.resource_type,
            cf_name: object.name.clone(),
            cf_id: found.id,
            cf_url: found.url,
            adopted: false,
        }
    }

    /// Returns the creator of the object when this job records it.
    fn creator<'a>(&self, job: &'a JobId) -> Creator<'a> {
        if self.adopted {
            Creator::Existing
        } else {
            Creator::Job(job)
        }
    }
}

/// The step that creates the object `D`.
#[derive(Clone, Copy, Debug)]
pub(in crate::use_case) struct CreateObject<D>(pub(in crate::use_case) D);

#[async_trait]
impl<K: PlatformKind, D: CreatesObject<K>> JobStep<K> for CreateObject<D> {
    const CAN_UNDO: bool = D::CAN_UNDO;
    type Output = CreatedObject;

    fn name(&self) -> &'static str {
        self.0.name()
    }

    async fn observe(
        &self,
        cx: &StepContext<'_, K>,
    ) -> Result<Observation<CreatedObject>, StepError> {
        self.0.ensure_needed(cx).await?;
        let object = self.0.object(cx.input, cx.item)?;
        let found = observe_owned(cx.infrastructure, platform_id_of(cx.input)?, &object).await?;
        let Observation::Present(created) = found else {
            return Ok(found);
        };
        if self.0.is_outdated(cx, &object).await? {
            return Ok(Observation::Outdated);
        }
        Ok(Observation::Present(CreatedObject {
            adopted: cx.existed_before(),
            ..created
        }))
    }

    async fn apply(&self, cx: &StepContext<'_, K>) -> Result<CreatedObject, StepError> {
        let request = ObjectRequest {
            resource: self.0.object(cx.input, cx.item)?,
            owner: platform_id_of(cx.input)?.to_string(),
            effect_key: cx.effect_key.to_owned(),
            config: self.0.config(cx).await?,
        };
        let created = cx.infrastructure.create(&request).await?;
        Ok(CreatedObject::of(&request.resource, created))
    }

    async fn record(
        &self,
        cx: &JobContext<'_, K>,
        uow: &mut dyn UnitOfWork,
        output: &CreatedObject,
    ) -> Result<()> {
        let properties = self.0.properties(cx, uow).await?;
        let creator = output.creator(&cx.job.id);
        let resource = upsert_resource(cx, &cx.scope, uow, properties, output, creator).await?;
        self.0.record(cx, uow, resource).await
    }

    /// Removes an object whose platform no longer exists, because nothing else can use it.
    async fn undo(&self, cx: &StepContext<'_, K>) -> Result<Undone, StepError> {
        let object = self.0.object(cx.input, cx.item)?;
        let (mut uow, platform) = cx.read().await?;
        if let Some(platform) = &platform {
            let uow = uow.as_mut();
            let resource = find_resource(platform, uow, &object).await?;
            let why = self
                .0
                .reason_to_keep(cx, platform, uow, resource.as_deref());
            if let Some(why) = why.await? {
                return Ok(Undone::kept_because(why));
            }
        }
        drop(uow);
        undo_creation(cx, platform_id_of(cx.input)?, &object).await
    }

    async fn record_undo(
        &self,
        cx: &JobContext<'_, K>,
        uow: &mut dyn UnitOfWork,
        undone: &Undone,
    ) -> Result<()> {
        let object = self.0.object(cx.input, cx.item)?;
        let Some(resource) = find_resource(&cx.scope, uow, &object).await? else {
            return Ok(());
        };
        if !self.0.undo_deletes(cx, uow, &resource, undone).await? {
            return Ok(());
        }
        delete_resource(cx, &cx.scope, uow, &resource).await
    }
}

/// Returns whether the resource records the job as the creator of the object.
pub(super) fn is_created_by(resource: &Resource, job: &Job) -> bool {
    resource.provision_job_id.as_ref() == Some(&job.id)
}

/// Returns the reason why an undo keeps the object of a resource; `None` if the undo can remove it. An object without a
/// resource can be removed.
pub(super) async fn reason_to_keep(
    platform: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    resource: Option<&Resource>,
    job: &Job,
) -> Result<Option<&'static str>> {
    let Some(resource) = resource else {
        return Ok(None);
    };
    if !is_created_by(resource, job) {
        return Ok(Some("another job uses it"));
    }
    let leading = dns_record_removal::count_leading_to(platform, uow, &resource.id).await?;
    Ok((leading > 0).then_some("it has DNS records"))
}

/// Observes an object that must belong to the platform. An object of another owner is a conflict.
pub(super) async fn observe_owned(
    infrastructure: &dyn Infrastructure,
    platform: &PlatformId,
    object: &ResourceRef,
) -> Result<Observation<CreatedObject>, StepError> {
    Ok(match infrastructure.observe(object).await? {
        None => Observation::Absent,
        Some(found) if found.belongs_to(&object.name, platform) => {
            Observation::Present(CreatedObject::of(object, found))
        }
        Some(_) => Observation::Conflict(format!(
            "the name {} belongs to another object",
            object.name
        )),
    })
}

/// Creates or updates the resource of an object that a step of the job created or found.
pub(super) async fn upsert_resource<K: PlatformKind>(
    cx: &JobContext<'_, K>,
    platform: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    properties: ObjectProperties,
    created: &CreatedObject,
    creator: Creator<'_>,
) -> Result<Stored<Resource>> {
    let command = CreateResource {
        stack_id: properties.stack_id,
        resource_type: created.resource_type,
        service_name: provider_name(&properties.service_name)?,
        environment: properties.environment,
        cf_name: provider_name(&created.cf_name)?,
        cf_id: Line::parse(&created.cf_id).ok(),
        cf_url: created.cf_url.clone(),
        provision_job_id: None,
        config: BoundedJson::empty_object(),
    };
    let now = uow.now().await?;
    let id = ResourceId::generate(now, cx.entropy.as_ref());
    let entity = properties.entity_id;
    let mut observed = Resource::create(id, platform.platform(), entity, command, now);
    observed.feature_activation_id = properties.feature_id;
    resource::upsert_observed(cx, platform, uow, observed, creator).await
}

/// Parses a name at the provider. An invalid name is an internal error.
pub(super) fn provider_name(text: &str) -> Result<ProviderName> {
    ProviderName::parse(text).map_err(|error| Error::Internal(error.to_string()))
}

/// Returns the resource of an object; `None` if there is none or it is deleted.
pub(in crate::use_case::registry) async fn find_resource(
    platform: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    object: &ResourceRef,
) -> Result<Option<Stored<Resource>>> {
    let Ok(cf_name) = ProviderName::parse(&object.name) else {
        return Ok(None);
    };
    let exactly = ResourceQuery::Exactly {
        resource_type: object.resource_type,
        cf_name,
    };
    platform.records::<Resource>(uow).first(&exactly).await
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
        let mut resources = Batches::<Resource>::of(named);
        let mut known = Self::default();
        while let Some(batch) = resources.next(platform.records(uow)).await? {
            let of_type = batch
                .iter()
                .filter(|resource| resource.resource_type == object.resource_type);
            // The query returns the newest resource first.
            for resource in of_type {
                known.is_entered |= resource.deleted_at.is_none();
                known.environment = known.environment.or(Some(resource.environment));
                known.deleted_at = known.deleted_at.max(resource.deleted_at);
            }
        }
        Ok(known)
    }
}
