//! The catalogue of infrastructure resources. Entering and deleting entries here makes and removes nothing at the
//! provider; jobs do that.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{dns_record, entity, feature};
use crate::access::{
    Batches, Covers, OrganizationScope, PlatformAccess, PlatformScope, PlatformWriter, Reach,
    SystemScope, audited, authorize, authorize_operator, ensure_room_unless_operator, unowned,
};
use crate::kernel::{
    Code, Context, DeletedFilter, EntityId, Error, FeatureActivationId, JobId, JsonText, ListQuery,
    Machine, Page, Patch, PlatformOwned, Record, ResourceId, Result, StoreError, Stored, grant,
};
use crate::port::UnitOfWork;
use crate::provisioning::Job;
use crate::registry::{
    CreateResource, FeatureId, NameHolder, Platform, PlatformQuery, Resource, ResourceEvent,
    ResourceQuery, ResourceStatus, UpdateResource, bears_platform, name_holder,
};
use crate::use_case::provisioning;

/// Enters a resource. A store whose service name is the id of a feature in use belongs to that feature, and goes with its data.
///
/// # Errors
/// `NOT_FOUND` for an unknown entity, and for a job of another platform; `CONFLICT` when the name is taken, or reserved for the
/// jobs of another platform or feature;
/// `INVALID_STATE` below a suspended entity; `VALIDATION_ERROR` for settings that are too large;
/// `LIMIT_REACHED`.
pub async fn create(
    cx: &Context,
    scope: &PlatformScope<grant::ResourceWrite>,
    uow: &mut dyn UnitOfWork,
    entity: &EntityId,
    command: CreateResource,
) -> Result<Stored<Resource>> {
    let entity = entity::not_deleted(scope, uow, entity).await?;
    entity::ensure_not_suspended(scope, uow, &entity).await?;
    check_job(scope, uow, command.provision_job_id.as_ref()).await?;
    let existing = ResourceQuery::All { deleted: false };
    let resources = scope.records::<Resource>(uow);
    let limit = cx.limits.resources_per_platform;
    let message = "The platform has as many resources as it may have. Delete one first.";
    ensure_room_unless_operator(cx, resources, &existing, limit, message).await?;
    let now = uow.now().await?;
    let id = ResourceId::generate(now, cx.entropy.as_ref());
    let mut resource = Resource::create(id, scope.platform(), entity.id.clone(), command, now);
    ensure_not_reserved(scope, uow, &resource).await?;
    resource.feature_activation_id = owner_of(scope, uow, &resource).await?;
    let stored = audited::insert(cx, scope, uow, resource, "resource.created").await;
    stored.map_err(name_conflict)
}

/// Deletes an entry.
///
/// # Errors
/// `NOT_FOUND`, also the second time; `CONFLICT` while a DNS record leads to it or a feature runs as it;
/// `VERSION_CONFLICT`.
pub async fn delete(
    cx: &Context,
    scope: &PlatformScope<grant::ResourceWrite>,
    uow: &mut dyn UnitOfWork,
    resource: &ResourceId,
) -> Result<()> {
    let seen = deletable(cx, scope, uow, resource).await?;
    soft_delete(cx, scope, uow, &seen).await
}

/// Returns the entry, provided that [`delete`] would delete it.
///
/// # Errors
/// As [`delete`].
pub(in crate::use_case::registry) async fn deletable(
    cx: &Context,
    scope: &PlatformScope<grant::ResourceWrite>,
    uow: &mut dyn UnitOfWork,
    resource: &ResourceId,
) -> Result<Stored<Resource>> {
    let seen = not_deleted(scope, uow, resource).await?;
    cx.check_if_match(&seen)?;
    ensure_not_needed(scope, uow, &seen).await?;
    Ok(seen)
}

/// Marks an entry deleted.
pub(in crate::use_case::registry) async fn soft_delete(
    cx: &Context,
    scope: &impl Covers<PlatformOwned>,
    uow: &mut dyn UnitOfWork,
    seen: &Stored<Resource>,
) -> Result<()> {
    delete_for(cx, scope, uow, seen, None).await
}

/// As [`soft_delete`], for an entry whose object `job` removes.
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
    audited::replace(cx, scope, uow, seen, next, event.of_event().action).await?;
    Ok(())
}

/// Refuses an entry made by hand under a name that a job derives for an object of somebody else.
async fn ensure_not_reserved(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    resource: &Resource,
) -> Result<()> {
    let is_reserved = match name_holder(resource.cf_name.as_str(), scope.id()) {
        None | Some(NameHolder::Platform | NameHolder::Stack) => false,
        Some(NameHolder::OtherPlatform) => true,
        Some(NameHolder::Feature) => !feature::is_worker_of_entity(scope, uow, resource).await?,
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

/// Returns the feature that owns a store entered by hand: the one in use that its service name is the id of. What jobs make has
/// the owner that its job gives it.
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
    let found = feature::find(scope, uow, entity, &feature, resource.environment).await?;
    let in_use = found.filter(|feature| feature.status.is_in_use());
    Ok(in_use.map(|feature| feature.id.clone()))
}

/// Enters what a job makes. Deletes an entry that another platform made by hand under this name before names were reserved.
///
/// # Errors
/// `CONFLICT` if the name was derived for another platform as well.
pub(in crate::use_case::registry) async fn insert_for_job(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    resource: Resource,
) -> Result<Stored<Resource>> {
    displace(cx, scope, uow, &resource).await?;
    let stored = audited::insert(cx, scope, uow, resource, "resource.created").await;
    stored.map_err(name_conflict)
}

async fn displace(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    wanted: &Resource,
) -> Result<()> {
    let system = SystemScope::new();
    let named = ResourceQuery::Named(wanted.cf_name.to_string());
    let mut entries = Batches::<Resource>::of(named);
    // The other platform is not told who did it.
    let cx = Context::system(Arc::clone(&cx.entropy));
    while let Some(batch) = entries.next(system.records(uow)).await? {
        for entry in batch {
            let is_same = entry.resource_type == wanted.resource_type
                && entry.cf_account_id == wanted.cf_account_id;
            let is_theirs = entry.platform_id == *scope.id()
                || bears_platform(entry.cf_name.as_str(), &entry.platform_id);
            if !is_same || is_theirs {
                continue;
            }
            if let Some(other) = system.platform(uow, &entry.platform_id).await? {
                dns_record::delete_leading_to(&cx, &other, uow, &entry.id).await?;
                soft_delete(&cx, &other, uow, &entry).await?;
            }
        }
    }
    Ok(())
}

/// Which job an object is from now on, for who undoes one.
#[derive(Clone, Copy, Debug)]
pub(in crate::use_case::registry) enum Maker<'a> {
    /// The job has made it, or put it there once more.
    Job(&'a JobId),
    /// It was there before the job, which needs it: no job that is undone takes it back any more.
    Before,
    /// The job only tells of it.
    Unchanged,
}

impl Maker<'_> {
    /// The job of an entry, by the one it has and by whether it tells of the same object.
    fn job(self, known: Option<JobId>, is_same: bool) -> Option<JobId> {
        match self {
            Self::Unchanged => known,
            Self::Before => None,
            // What another job has made is needed by both.
            Self::Job(job) if is_same => known.filter(|known| known == job),
            Self::Job(job) => Some(job.clone()),
        }
    }
}

/// Enters a resource that is there, or brings its entry up to date. `observed` is the entry it would have if it were new;
/// the id, the entity and the settings of an entry that exists stay. What an entry made by hand says of the environment, the
/// stack and the feature does not: the job knows them.
pub(in crate::use_case::registry) async fn upsert_observed(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    observed: Resource,
    maker: Maker<'_>,
) -> Result<Stored<Resource>> {
    let now = uow.now().await?;
    let exactly = ResourceQuery::Exactly {
        resource_type: observed.resource_type,
        cf_name: observed.cf_name.clone(),
    };
    let Some(seen) = scope.records::<Resource>(uow).first(&exactly).await? else {
        let mut resource = observed.observed(now)?;
        resource.id = ResourceId::generate(now, cx.entropy.as_ref());
        resource.provision_job_id = maker.job(None, false);
        return insert_for_job(cx, scope, uow, resource).await;
    };
    let mut next = seen.edit().observed(now)?;
    let is_same = seen.status == ResourceStatus::Active && seen.cf_id == observed.cf_id;
    next.provision_job_id = maker.job(next.provision_job_id, is_same);
    if !matches!(maker, Maker::Unchanged) {
        next.environment = observed.environment;
        next.stack_id = observed.stack_id;
        next.feature_activation_id = observed.feature_activation_id;
    }
    next.cf_id = observed.cf_id;
    next.cf_url = observed.cf_url;
    audited::replace(cx, scope, uow, &seen, next, "resource.updated").await
}

/// Keeps a setting of a resource beside those it has.
pub(in crate::use_case::registry) async fn record_setting(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    seen: &Stored<Resource>,
    (name, value): (&str, Value),
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

/// Keeps that the object of an active entry is not there any more.
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
    audited::replace(cx, scope, uow, &seen, next, event.of_event().action).await?;
    Ok(())
}

/// Records that a job has removed the object of an entry that was deleted with its entity.
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

/// The resources of a platform, newest first.
///
/// # Errors
/// `INVALID_CURSOR`.
pub async fn list(
    cx: &Context,
    scope: &PlatformScope<grant::ResourceRead>,
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

/// The resources of an entity, newest first.
///
/// # Errors
/// `NOT_FOUND` for an unknown entity; `INVALID_CURSOR`.
pub async fn list_of_entity(
    cx: &Context,
    scope: &PlatformScope<grant::ResourceRead>,
    uow: &mut dyn UnitOfWork,
    entity: &EntityId,
    query: &ListQuery<DeletedFilter>,
) -> Result<Page<Stored<Resource>>> {
    entity::not_deleted(scope, uow, entity).await?;
    let of_entity = ResourceQuery::OfEntity {
        entity_id: entity.clone(),
        deleted: query.filter.include_deleted && cx.caller.is_operator(),
    };
    scope
        .records::<Resource>(uow)
        .page(&of_entity, &query.page())
        .await
}

/// A resource that is not deleted.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn get(
    scope: &PlatformScope<grant::ResourceRead>,
    uow: &mut dyn UnitOfWork,
    resource: &ResourceId,
) -> Result<Stored<Resource>> {
    not_deleted(scope, uow, resource).await
}

/// The newest resource with this name at the provider that is not deleted, of those the caller reaches. Among several
/// platforms of an organization the one that was created last counts; suspended ones are passed over.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn look_up(
    cx: &Context,
    scope: &OrganizationScope<grant::ResourceRead>,
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
    while let Some(batch) = reached.next(unowned(uow)).await? {
        for platform in batch {
            let Ok(scope) = authorize::<grant::ResourceRead>(cx, uow, &platform.id).await else {
                continue;
            };
            if let Some(found) = scope.records::<Resource>(uow).first(&named).await? {
                return Ok(found);
            }
        }
    }
    Err(missing)
}

/// A resource of the platform that is not deleted.
pub(in crate::use_case::registry) async fn not_deleted(
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

/// Refuses the deletion of a resource that something of the platform needs.
async fn ensure_not_needed(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    resource: &Resource,
) -> Result<()> {
    dns_record::ensure_none_leads_to(scope, uow, &resource.id).await?;
    feature::ensure_none_runs_as(scope, uow, resource).await
}

/// Refuses a job that is not one of the platform's.
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

/// What a write that could not be made means: that the name is taken, or that the store failed.
fn name_conflict(error: Error) -> Error {
    match error {
        Error::Store(StoreError::Conflict { index: "name", .. }) => Error::refused(
            Code::Conflict,
            "A resource of this type has this name already in the provider account.",
        ),
        error => error,
    }
}

/// Changes an entry.
///
/// # Errors
/// `NOT_FOUND`, also for a job of another platform; `INVALID_STATE` for a move that is not in the table; `CONFLICT` when it
/// is to be deleted and a DNS record leads to it or a feature runs as it; `VALIDATION_ERROR` for settings that are too large; `VERSION_CONFLICT`.
pub async fn update(
    cx: &Context,
    scope: &PlatformScope<grant::ResourceWrite>,
    uow: &mut dyn UnitOfWork,
    resource: &ResourceId,
    command: UpdateResource,
) -> Result<Stored<Resource>> {
    let seen = not_deleted(scope, uow, resource).await?;
    let (mut next, mut action) = (seen.edit(), "resource.updated");
    if let Some(status) = command.status
        && let Some(event) = ResourceEvent::said(seen.status, status)?
    {
        if event == ResourceEvent::Delete {
            ensure_not_needed(scope, uow, &seen).await?;
        }
        next = next.after(event, uow.now().await?)?;
        action = event.of_event().action;
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
