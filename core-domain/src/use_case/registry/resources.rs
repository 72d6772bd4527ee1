//! The catalogue of infrastructure resources. Entering and deleting entries here makes and removes nothing at the
//! provider; jobs do that.

use serde_json::{Value, json};

use super::access::{reach, reach_living, shows_deleted};
use super::entities::{find_entity, in_use, living_entity};
use crate::kernel::{
    Code, Context, EntityId, Environment, Error, JobId, Membership, Page, PageRequest, Permission,
    PlatformId, ResourceId, Result, StackId,
};
use crate::port::{Record, StoreError, Stored, UnitOfWork};
use crate::registry::{PlatformQuery, Resource, ResourceQuery, ResourceStatus, ResourceType};
use crate::shared::{Happening, audited};

/// The largest free-form value, in bytes of JSON.
const MAX_CONFIG_BYTES: usize = 64 * 1024;

/// How many platforms are read at once.
const BATCH: u32 = 100;

/// What a new entry is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct NewResource {
    /// The workspace stack it is for.
    pub stack_id: Option<StackId>,
    /// What kind of object it is.
    pub resource_type: ResourceType,
    /// What it is there for.
    pub service_name: String,
    /// Where it runs.
    pub environment: Environment,
    /// Its name at the provider.
    pub cf_name: String,
    /// Its id at the provider.
    pub cf_id: Option<String>,
    /// Where it can be reached.
    pub cf_url: Option<String>,
    /// The job that makes it.
    pub provision_job_id: Option<JobId>,
    /// Free-form settings.
    pub config: Value,
}

/// What changes about an entry; `None` stays as it is, `Some(None)` is taken away.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResourceChange {
    /// Where it stands.
    pub status: Option<ResourceStatus>,
    /// Its id at the provider.
    pub cf_id: Option<Option<String>>,
    /// Where it can be reached.
    pub cf_url: Option<Option<String>>,
    /// Free-form settings.
    pub config: Option<Value>,
    /// The job that makes it.
    pub provision_job_id: Option<Option<JobId>>,
}

/// The resources of a platform, newest first.
///
/// # Errors
/// As [`reach`] with `resource:read`; `INVALID_CURSOR`.
pub async fn list_resources(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
    include_deleted: bool,
    page: &PageRequest,
) -> Result<Page<Stored<Resource>>> {
    reach(cx, uow, Permission::ResourceRead, platform).await?;
    let query = ResourceQuery::OfPlatform {
        platform_id: platform.clone(),
        deleted: shows_deleted(cx, include_deleted),
    };
    Ok(uow.resources().page(&query, page).await?)
}

/// The resources of an entity, newest first.
///
/// # Errors
/// As [`list_resources`]; `NOT_FOUND` for an unknown entity.
pub async fn list_resources_of_entity(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
    entity: &EntityId,
    include_deleted: bool,
    page: &PageRequest,
) -> Result<Page<Stored<Resource>>> {
    reach(cx, uow, Permission::ResourceRead, platform).await?;
    find_entity(cx, uow, platform, entity).await?;
    let query = ResourceQuery::OfEntity {
        entity_id: entity.clone(),
        deleted: shows_deleted(cx, include_deleted),
    };
    Ok(uow.resources().page(&query, page).await?)
}

/// A resource that is not deleted.
///
/// # Errors
/// As [`reach`] with `resource:read`; `NOT_FOUND`.
pub async fn find_resource(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
    resource: &ResourceId,
) -> Result<Stored<Resource>> {
    reach(cx, uow, Permission::ResourceRead, platform).await?;
    living_resource(uow, platform, resource).await
}

pub(super) async fn living_resource(
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
    resource: &ResourceId,
) -> Result<Stored<Resource>> {
    let found = uow.resources().get(resource.as_str()).await?;
    found
        .filter(|r| r.platform_id == *platform && r.status != ResourceStatus::Deleted)
        .ok_or(Error::NotFound(Resource::KIND))
}

/// The newest living resource with this name at the provider, of those the caller reaches. Among several platforms of an
/// organization the one that was made last counts.
///
/// # Errors
/// `UNAUTHORIZED`, `NOT_FOUND`; `FORBIDDEN` without `resource:read`.
pub async fn look_up_resource(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    cf_name: &str,
) -> Result<Stored<Resource>> {
    cx.caller.signed_in()?;
    let found = if cx.caller.is_operator() {
        named(uow, cf_name, None).await?
    } else {
        let own = cx
            .caller
            .membership()
            .ok_or(Error::NotFound(Resource::KIND))?;
        if !own.permissions.allows(Permission::ResourceRead) {
            return Err(Error::Forbidden);
        }
        named_within(uow, cf_name, own).await?
    };
    found.ok_or(Error::NotFound(Resource::KIND))
}

async fn named(
    uow: &mut dyn UnitOfWork,
    cf_name: &str,
    platform: Option<&PlatformId>,
) -> Result<Option<Stored<Resource>>> {
    let query = ResourceQuery::Named {
        cf_name: cf_name.to_owned(),
        platform_id: platform.cloned(),
    };
    Ok(uow.resources().first(&query).await?)
}

async fn named_within(
    uow: &mut dyn UnitOfWork,
    cf_name: &str,
    own: &Membership,
) -> Result<Option<Stored<Resource>>> {
    let platforms = PlatformQuery::Of {
        organization_id: own.organization_id.clone(),
        platform_id: own.platform_id.clone(),
    };
    let mut page = PageRequest::first(BATCH);
    loop {
        let reached = uow.platforms().page(&platforms, &page).await?;
        for platform in &reached.items {
            if let Some(found) = named(uow, cf_name, Some(&platform.id)).await? {
                return Ok(Some(found));
            }
        }
        page.cursor = reached.next;
        if page.cursor.is_none() {
            return Ok(None);
        }
    }
}

/// Enters a resource.
///
/// # Errors
/// As [`reach_living`] with `resource:write`; `NOT_FOUND` for an unknown entity; `CONFLICT` when the name is taken;
/// `INVALID_STATE` below a suspended entity; `VALIDATION_ERROR` for settings that are too large.
pub async fn create_resource(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
    entity: &EntityId,
    new: NewResource,
) -> Result<Stored<Resource>> {
    reach_living(cx, uow, Permission::ResourceWrite, platform).await?;
    let entity = living_entity(uow, platform, entity).await?;
    in_use(uow, &entity).await?;
    fits(&new.config)?;
    enter(cx, uow, platform, &entity.id, ResourceStatus::Pending, new).await
}

/// Enters a resource with any status. Asks nobody for permission.
pub(super) async fn enter(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
    entity: &EntityId,
    status: ResourceStatus,
    new: NewResource,
) -> Result<Stored<Resource>> {
    let now = uow.now().await?;
    let resource = Resource {
        id: ResourceId::generate(now, cx.entropy.as_ref()),
        platform_id: platform.clone(),
        entity_id: entity.clone(),
        stack_id: new.stack_id,
        service_name: new.service_name,
        resource_type: new.resource_type,
        environment: new.environment,
        cf_name: new.cf_name,
        cf_id: new.cf_id,
        cf_url: new.cf_url,
        status,
        provision_job_id: new.provision_job_id,
        config: new.config,
        created_at: now,
        updated_at: now,
        deleted_at: None,
    };
    let stored = match uow.resources().insert(resource).await {
        Err(StoreError::Conflict { .. }) => return Err(name_taken()),
        outcome => outcome?,
    };
    let after = Some(picture(&stored));
    audit(cx, uow, &stored, "resource.created", None, after).await?;
    Ok(stored)
}

fn name_taken() -> Error {
    Error::refused(
        Code::Conflict,
        "A resource of this platform, type and environment has this name already.",
    )
}

fn fits(config: &Value) -> Result<()> {
    if config.to_string().len() <= MAX_CONFIG_BYTES {
        return Ok(());
    }
    let message = format!("must have at most {MAX_CONFIG_BYTES} bytes");
    Err(Error::invalid("config", "too_long", message))
}

/// Changes an entry. A change that changes nothing leaves the record, its version and the audit alone.
///
/// # Errors
/// As [`reach_living`] with `resource:write`; `NOT_FOUND`; `INVALID_STATE` for a move that is not in the table;
/// `VALIDATION_ERROR` for settings that are too large.
pub async fn update_resource(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
    resource: &ResourceId,
    change: ResourceChange,
) -> Result<Stored<Resource>> {
    reach_living(cx, uow, Permission::ResourceWrite, platform).await?;
    let seen = living_resource(uow, platform, resource).await?;
    fits(change.config.as_ref().unwrap_or(&Value::Null))?;
    let now = uow.now().await?;
    let mut next = seen.with_status(change.status.unwrap_or(seen.status), now)?;
    next.cf_id = change.cf_id.unwrap_or(next.cf_id);
    next.cf_url = change.cf_url.unwrap_or(next.cf_url);
    next.config = change.config.unwrap_or(next.config);
    next.provision_job_id = change.provision_job_id.unwrap_or(next.provision_job_id);
    let action = if next.status == ResourceStatus::Deleted {
        "resource.deleted"
    } else {
        "resource.updated"
    };
    put(cx, uow, &seen, next, action).await
}

/// Stores a changed entry, unless nothing changed.
pub(super) async fn put(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    seen: &Stored<Resource>,
    mut next: Resource,
    action: &'static str,
) -> Result<Stored<Resource>> {
    if next == **seen {
        return Ok(seen.clone());
    }
    next.updated_at = uow.now().await?;
    let stored = uow.resources().replace(seen, next).await?;
    let (before, after) = (Some(picture(seen)), Some(picture(&stored)));
    audit(cx, uow, &stored, action, before, after).await?;
    Ok(stored)
}

/// Deletes an entry.
///
/// # Errors
/// As [`reach_living`] with `resource:write`; `NOT_FOUND`, also the second time.
pub async fn delete_resource(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
    resource: &ResourceId,
) -> Result<()> {
    reach_living(cx, uow, Permission::ResourceWrite, platform).await?;
    let seen = living_resource(uow, platform, resource).await?;
    bury(cx, uow, &seen).await
}

/// Marks an entry deleted. Asks nobody for permission.
pub(super) async fn bury(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    seen: &Stored<Resource>,
) -> Result<()> {
    let now = uow.now().await?;
    let next = seen.with_status(ResourceStatus::Deleted, now)?;
    put(cx, uow, seen, next, "resource.deleted").await?;
    Ok(())
}

async fn audit(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    resource: &Resource,
    action: &'static str,
    before: Option<Value>,
    after: Option<Value>,
) -> Result<()> {
    let happening = Happening {
        platform_id: Some(resource.platform_id.clone()),
        action,
        entity_id: resource.id.to_string(),
        before,
        after,
    };
    audited(cx, uow, happening).await
}

/// The entry as the audit shows it. Settings are left out: they are free-form, and may hold what no audit should keep.
fn picture(resource: &Resource) -> Value {
    json!({
        "entityId": resource.entity_id,
        "resourceType": resource.resource_type,
        "serviceName": resource.service_name,
        "environment": resource.environment,
        "cfName": resource.cf_name,
        "cfId": resource.cf_id,
        "cfUrl": resource.cf_url,
        "status": resource.status,
        "provisionJobId": resource.provision_job_id,
    })
}
