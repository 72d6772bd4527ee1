//! The catalogue of infrastructure resources. Creating and deleting records here does not create or remove objects at
//! the provider; jobs do that.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::jobs::{delete_of_resource, ensure_no_dns_records};
use super::{entity_tree, feature_state};
use crate::access::{
    Batches, Covers, OrganizationScope, PlatformAccess, PlatformScope, PlatformWriter, Reach,
    SystemScope, audited, authorize, authorize_operator, ensure_room_unless_operator,
    unowned_records,
};
use crate::kernel::{
    Code, Context, DeletedFilter, EntityId, Environment, Error, FeatureActivationId, JobId,
    JsonText, ListQuery, Machine, Page, PageQuery, Patch, PlatformOwned, Record, ResourceId,
    Result, StoreError, Stored, permission,
};
use crate::port::UnitOfWork;
use crate::provisioning::Job;
use crate::registry::{
    CreateResource, FeatureId, NameOwner, Platform, PlatformQuery, ProviderName, Resource,
    ResourceEvent, ResourceQuery, ResourceStatus, ResourceType, UpdateResource,
    is_name_of_platform, name_holder, resource_name,
};
use crate::use_case::provisioning;

/// Creates the record of a resource. A feature owns a store if the store's service name is the id of the feature and
/// the feature is in use. Removing the feature with its data then removes the store.
///
/// # Errors
/// - `NOT_FOUND` if the entity does not exist, or the job does not belong to the platform.
/// - `CONFLICT` if the name is taken, or reserved for the jobs of another platform or feature.
/// - `INVALID_STATE` if the entity or one above it is suspended.
/// - `VALIDATION_ERROR` if the settings are too large.
/// - `LIMIT_REACHED` if the platform has its maximum number of resources.
pub async fn create(
    cx: &Context,
    scope: &PlatformScope<permission::ResourceWrite>,
    uow: &mut dyn UnitOfWork,
    entity: &EntityId,
    command: CreateResource,
) -> Result<Stored<Resource>> {
    let entity = entity_tree::not_deleted(scope, uow, entity).await?;
    entity_tree::ensure_not_suspended(scope, uow, &entity).await?;
    check_job(scope, uow, command.provision_job_id.as_ref()).await?;
    let existing = ResourceQuery::All { deleted: false };
    let resources = scope.records::<Resource>(uow);
    let limit = cx.limits.resources_per_platform;
    let message = "The platform has reached its maximum number of resources. Delete one first.";
    ensure_room_unless_operator(cx, resources, &existing, limit, message).await?;
    let now = uow.now().await?;
    let id = ResourceId::generate(now, cx.entropy.as_ref());
    let mut resource = Resource::create(id, scope.platform(), entity.id.clone(), command, now);
    ensure_not_reserved(scope, uow, &resource).await?;
    resource.feature_activation_id = owner_of(scope, uow, &resource).await?;
    let stored = audited::insert(cx, scope, uow, resource, "resource.created").await;
    stored.map_err(name_conflict)
}

/// Deletes the record of a resource. The object at the provider is not removed.
///
/// # Errors
/// `NOT_FOUND` if the resource does not exist or is already deleted; `CONFLICT` if a DNS record points to it or it is
/// the worker of a feature; `VERSION_CONFLICT` if `If-Match` does not match.
pub async fn delete(
    cx: &Context,
    scope: &PlatformScope<permission::ResourceWrite>,
    uow: &mut dyn UnitOfWork,
    resource: &ResourceId,
) -> Result<()> {
    let seen = deletable(cx, scope, uow, resource).await?;
    soft_delete(cx, scope, uow, &seen).await
}

/// Returns the resource if [`delete`] would delete it.
///
/// # Errors
/// Those of [`delete`].
pub(in crate::use_case::registry) async fn deletable(
    cx: &Context,
    scope: &PlatformScope<permission::ResourceWrite>,
    uow: &mut dyn UnitOfWork,
    resource: &ResourceId,
) -> Result<Stored<Resource>> {
    let seen = not_deleted(scope, uow, resource).await?;
    cx.check_if_match(&seen)?;
    ensure_not_needed(scope, uow, &seen).await?;
    Ok(seen)
}

/// Marks a resource as deleted.
pub(in crate::use_case::registry) async fn soft_delete(
    cx: &Context,
    scope: &impl Covers<PlatformOwned>,
    uow: &mut dyn UnitOfWork,
    seen: &Stored<Resource>,
) -> Result<()> {
    delete_for(cx, scope, uow, seen, None).await
}

/// Marks a resource as deleted. `job` is the job that removes its object; `None` if no job does.
pub(in crate::use_case::registry) async fn delete_for(
    cx: &Context,
    scope: &impl Covers<PlatformOwned>,
    uow: &mut dyn UnitOfWork,
    seen: &Stored<Resource>,
    job: Option<&JobId>,
) -> Result<()> {
    let event = ResourceEvent::Delete;
    let mut next = seen.edit().after(event, uow.now().await?)?;
    next.removal_job_id = job.cloned();
    audited::replace(cx, scope, uow, seen, next, event.transition().action).await?;
    Ok(())
}

/// Returns `CONFLICT` for a resource that a person creates under a name that a job derives for another owner's object.
async fn ensure_not_reserved(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    resource: &Resource,
) -> Result<()> {
    let is_reserved = match name_holder(resource.cf_name.as_str(), scope.id()) {
        None | Some(NameOwner::Platform | NameOwner::Stack) => false,
        Some(NameOwner::OtherPlatform) => true,
        Some(NameOwner::Feature) => {
            !feature_state::is_worker_of_entity(scope, uow, resource).await?
        }
    };
    if !is_reserved {
        return Ok(());
    }
    Err(Error::Refused {
        code: Code::Conflict,
        message: "The name is reserved for the jobs of another platform or feature.".to_owned(),
        details: json!({ "cfName": resource.cf_name }),
    })
}

/// Returns the feature that owns a store which a person creates: the feature in use whose id is the store's service
/// name. Resources that jobs create get their owner from the job.
async fn owner_of(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    resource: &Resource,
) -> Result<Option<FeatureActivationId>> {
    let is_derived = name_holder(resource.cf_name.as_str(), scope.id()).is_some();
    let Ok(feature) = FeatureId::parse(resource.service_name.as_str()) else {
        return Ok(None);
    };
    if is_derived || !resource.resource_type.is_store() {
        return Ok(None);
    }
    let entity = &resource.entity_id;
    let found = feature_state::find(scope, uow, entity, &feature, resource.environment).await?;
    let in_use = found.filter(|feature| feature.status.is_in_use());
    Ok(in_use.map(|feature| feature.id.clone()))
}

/// Creates the record of an object that a job creates. If a person on another platform created a record with this name
/// before names were reserved, deletes that record.
///
/// # Errors
/// `CONFLICT` if the name was derived for another platform as well.
pub(in crate::use_case::registry) async fn insert_for_job(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    resource: Resource,
) -> Result<Stored<Resource>> {
    delete_conflicting(cx, scope, uow, &resource).await?;
    let stored = audited::insert(cx, scope, uow, resource, "resource.created").await;
    stored.map_err(name_conflict)
}

/// Deletes the record of another platform for the object of this resource, unless the name was derived for that platform.
async fn delete_conflicting(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    wanted: &Resource,
) -> Result<()> {
    let system = SystemScope::new();
    let same = ResourceQuery::OfObject {
        cf_account_id: wanted.cf_account_id.clone(),
        resource_type: wanted.resource_type,
        cf_name: wanted.cf_name.clone(),
    };
    let Some(found) = system.records::<Resource>(uow).first(&same).await? else {
        return Ok(());
    };
    let is_own = found.platform_id == *scope.id()
        || is_name_of_platform(found.cf_name.as_str(), &found.platform_id);
    if is_own {
        return Ok(());
    }
    // The audit log of the other platform must not reveal who caused the deletion.
    let cx = Context::system(Arc::clone(&cx.entropy));
    if let Some(other) = system.platform(uow, &found.platform_id).await? {
        delete_of_resource(&cx, &other, uow, &found.id).await?;
        soft_delete(&cx, &other, uow, &found).await?;
    }
    Ok(())
}

/// The job that counts as the creator of an object. Undoing a job removes only objects that the job created.
#[derive(Clone, Copy, Debug)]
pub(in crate::use_case::registry) enum Creator<'a> {
    /// The job created the object, or created it again.
    Job(&'a JobId),
    /// The object existed before the job, which needs it. Undoing any job keeps the object from now on.
    Existing,
    /// The job only updates the record; the creator stays.
    Unchanged,
}

impl Creator<'_> {
    /// Returns the new creator of an object. `known` is the current creator; `is_same` tells whether the job observed
    /// the same object.
    fn job(self, known: Option<JobId>, is_same: bool) -> Option<JobId> {
        match self {
            Self::Unchanged => known,
            Self::Existing => None,
            // An object that another job created is now used by both jobs, so it gets no creator.
            Self::Job(job) if is_same => known.filter(|known| known == job),
            Self::Job(job) => Some(job.clone()),
        }
    }
}

/// Creates or updates the record of an object that exists at the provider. `observed` is the record that a new object
/// would get.
///
/// An existing record keeps its id, entity and settings. Its environment, stack and feature are overwritten, because
/// the job knows them better than a person who created the record. [`Creator::Unchanged`] keeps them.
pub(in crate::use_case::registry) async fn upsert_observed(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    observed: Resource,
    maker: Creator<'_>,
) -> Result<Stored<Resource>> {
    let now = uow.now().await?;
    let exactly = ResourceQuery::Exactly {
        resource_type: observed.resource_type,
        cf_name: observed.cf_name.clone(),
    };
    let Some(seen) = scope.records::<Resource>(uow).first(&exactly).await? else {
        let mut resource = observed.mark_present(now)?;
        resource.id = ResourceId::generate(now, cx.entropy.as_ref());
        resource.provision_job_id = maker.job(None, false);
        return insert_for_job(cx, scope, uow, resource).await;
    };
    let mut next = seen.edit().mark_present(now)?;
    let is_same = seen.status == ResourceStatus::Active && seen.cf_id == observed.cf_id;
    next.provision_job_id = maker.job(next.provision_job_id, is_same);
    if !matches!(maker, Creator::Unchanged) {
        next.environment = observed.environment;
        next.stack_id = observed.stack_id;
        next.feature_activation_id = observed.feature_activation_id;
    }
    next.cf_id = observed.cf_id;
    next.cf_url = observed.cf_url;
    audited::replace(cx, scope, uow, &seen, next, "resource.updated").await
}

/// Adds or replaces one setting of a resource and keeps its other settings.
pub(in crate::use_case::registry) async fn record_setting(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    seen: &Stored<Resource>,
    name: &str,
    value: Value,
) -> Result<Stored<Resource>> {
    let mut settings = match seen.config.value() {
        Value::Object(settings) => settings,
        _ => Map::new(),
    };
    settings.insert(name.to_owned(), value);
    let next = Resource {
        config: JsonText::of(&settings),
        ..seen.edit()
    };
    audited::replace(cx, scope, uow, seen, next, "resource.updated").await
}

/// Records that the object of an active resource no longer exists. Does nothing for other resources.
pub(in crate::use_case::registry) async fn record_loss(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    resource: &ResourceId,
) -> Result<()> {
    let event = ResourceEvent::Lose;
    let found = scope.records::<Resource>(uow).find(resource).await?;
    let Some(seen) = found.filter(|seen| event.next(seen.status).is_ok()) else {
        return Ok(());
    };
    let next = seen.edit().after(event, uow.now().await?)?;
    audited::replace(cx, scope, uow, &seen, next, event.transition().action).await?;
    Ok(())
}

/// Records that a job has removed the object of a resource that was deleted with its entity.
pub(in crate::use_case::registry) async fn record_removal(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    resource: &ResourceId,
    job: &JobId,
) -> Result<()> {
    let found = scope.records::<Resource>(uow).find(resource).await?;
    let Some(seen) = found.filter(|seen| seen.removal_job_id.as_ref() == Some(job)) else {
        return Ok(());
    };
    let mut next = seen.edit();
    next.removal_job_id = None;
    audited::replace(cx, scope, uow, &seen, next, "resource.object_removed").await?;
    Ok(())
}

/// Lists the resources of a platform, newest first. Only operators can include deleted resources.
///
/// # Errors
/// `INVALID_CURSOR` if the cursor does not belong to this list.
pub async fn list(
    cx: &Context,
    scope: &PlatformScope<permission::ResourceRead>,
    uow: &mut dyn UnitOfWork,
    query: &ListQuery<DeletedFilter>,
) -> Result<Page<Stored<Resource>>> {
    let all = ResourceQuery::All {
        deleted: query.filter.include_deleted && cx.caller.is_operator(),
    };
    scope
        .records::<Resource>(uow)
        .page(&all, &query.page())
        .await
}

/// Returns a page of the resources of all platforms that are not deleted.
///
/// # Errors
/// Only those of the store.
pub(in crate::use_case) async fn page_of_all(
    scope: &SystemScope,
    uow: &mut dyn UnitOfWork,
    page: &PageQuery,
) -> Result<Page<Stored<Resource>>> {
    let all = ResourceQuery::All { deleted: false };
    scope.records::<Resource>(uow).page(&all, page).await
}

/// Lists the resources of an entity, newest first. Only operators can include deleted resources.
///
/// # Errors
/// `NOT_FOUND` if the entity does not exist; `INVALID_CURSOR` if the cursor does not belong to this list.
pub async fn list_of_entity(
    cx: &Context,
    scope: &PlatformScope<permission::ResourceRead>,
    uow: &mut dyn UnitOfWork,
    entity: &EntityId,
    query: &ListQuery<DeletedFilter>,
) -> Result<Page<Stored<Resource>>> {
    entity_tree::not_deleted(scope, uow, entity).await?;
    let of_entity = ResourceQuery::OfEntity {
        entity_id: entity.clone(),
        deleted: query.filter.include_deleted && cx.caller.is_operator(),
    };
    scope
        .records::<Resource>(uow)
        .page(&of_entity, &query.page())
        .await
}

/// Returns a resource.
///
/// # Errors
/// `NOT_FOUND` if the resource does not exist or is deleted.
pub async fn get(
    scope: &PlatformScope<permission::ResourceRead>,
    uow: &mut dyn UnitOfWork,
    resource: &ResourceId,
) -> Result<Stored<Resource>> {
    not_deleted(scope, uow, resource).await
}

/// Returns the newest resource with this name at the provider that the caller can access.
///
/// If several platforms of an organization have such a resource, the platform that was created last wins. Suspended
/// platforms are skipped.
///
/// # Errors
/// `NOT_FOUND` if no accessible resource has the name.
pub async fn look_up(
    cx: &Context,
    scope: &OrganizationScope<permission::ResourceRead>,
    uow: &mut dyn UnitOfWork,
    cf_name: &str,
) -> Result<Stored<Resource>> {
    let named = ResourceQuery::Named(cf_name.to_owned());
    let missing = Error::NotFound(Resource::KIND);
    let platforms = match scope.reach() {
        Reach::Nowhere => return Err(missing),
        Reach::Installation => {
            let everywhere = authorize_operator(cx)?.records::<Resource>(uow);
            return everywhere.first(&named).await?.ok_or(missing);
        }
        Reach::Organization(organization) => PlatformQuery::Of(organization.clone()),
        Reach::Platform(platform) => PlatformQuery::WithId(platform.clone()),
    };
    let mut reached = Batches::<Platform>::of(platforms);
    while let Some(batch) = reached.next(unowned_records(uow)).await? {
        for platform in batch {
            let Ok(scope) = authorize::<permission::ResourceRead>(cx, uow, &platform.id).await
            else {
                continue;
            };
            if let Some(found) = scope.records::<Resource>(uow).first(&named).await? {
                return Ok(found);
            }
        }
    }
    Err(missing)
}

/// Returns a resource of the platform; `NOT_FOUND` if it does not exist or is deleted.
pub(in crate::use_case) async fn not_deleted(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    resource: &ResourceId,
) -> Result<Stored<Resource>> {
    let found = scope.records::<Resource>(uow).get(resource).await?;
    if found.status == ResourceStatus::Deleted {
        return Err(Error::NotFound(Resource::KIND));
    }
    Ok(found)
}

/// Returns the platform's default resource of a type; `None` if it does not exist or is deleted.
pub(in crate::use_case) async fn find_default(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    environment: Environment,
    resource_type: ResourceType,
) -> Result<Option<Stored<Resource>>> {
    let slug = &scope.platform().slug;
    let name = resource_name(scope.id(), slug, environment, resource_type);
    let Ok(cf_name) = ProviderName::parse(&name) else {
        return Ok(None);
    };
    let exactly = ResourceQuery::Exactly {
        resource_type,
        cf_name,
    };
    scope.records::<Resource>(uow).first(&exactly).await
}

/// Returns `CONFLICT` if a DNS record or a feature of the platform needs the resource.
async fn ensure_not_needed(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    resource: &Resource,
) -> Result<()> {
    ensure_no_dns_records(scope, uow, &resource.id).await?;
    feature_state::ensure_none_runs_as(scope, uow, resource).await
}

/// Returns `NOT_FOUND` if the job does not belong to the platform.
async fn check_job(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    job: Option<&JobId>,
) -> Result<()> {
    match job {
        Some(job) if !provisioning::belongs_to(scope, uow, job).await? => {
            Err(Error::NotFound(Job::KIND))
        }
        _ => Ok(()),
    }
}

/// Converts a conflict on the unique index `name` to `CONFLICT`. Other errors are returned unchanged.
fn name_conflict(error: Error) -> Error {
    match error {
        Error::Store(StoreError::Conflict { index: "name", .. }) => Error::refused(
            Code::Conflict,
            "A resource of this type already has this name in the provider account.",
        ),
        error => error,
    }
}

/// Updates the record of a resource.
///
/// # Errors
/// - `NOT_FOUND` if the resource does not exist, or the job does not belong to the platform.
/// - `INVALID_STATE` if the status cannot change to the new one.
/// - `CONFLICT` if the new status is `deleted` and a DNS record or a feature needs the resource.
/// - `VALIDATION_ERROR` if the settings are too large.
/// - `VERSION_CONFLICT` if `If-Match` does not match.
pub async fn update(
    cx: &Context,
    scope: &PlatformScope<permission::ResourceWrite>,
    uow: &mut dyn UnitOfWork,
    resource: &ResourceId,
    command: UpdateResource,
) -> Result<Stored<Resource>> {
    let seen = not_deleted(scope, uow, resource).await?;
    let (mut next, mut action) = (seen.edit(), "resource.updated");
    if let Some(status) = command.status
        && let Some(event) = ResourceEvent::between_for_caller(seen.status, status)?
    {
        if event == ResourceEvent::Delete {
            ensure_not_needed(scope, uow, &seen).await?;
        }
        next = next.after(event, uow.now().await?)?;
        action = event.transition().action;
    }
    match &command.config {
        Patch::Keep => {}
        Patch::Clear => next.config = JsonText::default(),
        Patch::Set(config) => next.config = config.clone().into(),
    }
    if let Patch::Set(job) = &command.provision_job_id {
        check_job(scope, uow, Some(job)).await?;
    }
    command.apply_to(&mut next);
    audited::replace(cx, scope, uow, &seen, next, action).await
}
