//! Who may enter which name. The names that jobs derive are reserved for the objects they are derived for, from the creation of
//! their platform on; an entry made by hand never keeps a job from entering its own.

use std::sync::Arc;

use serde_json::json;

use super::delete::soft_delete;
use super::rules::name_conflict;
use crate::access::{Batches, PlatformAccess, PlatformWriter, SystemScope, audited};
use crate::kernel::{Code, Context, Error, FeatureActivationId, Result, Stored};
use crate::port::UnitOfWork;
use crate::registry::{
    FeatureId, NameHolder, Resource, ResourceQuery, bears_platform, name_holder,
};
use crate::use_case::registry::{dns, feature};

/// Refuses an entry made by hand under a name that a job derives for an object of somebody else.
pub(super) async fn ensure_not_reserved(
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
pub(super) async fn owner_of(
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
                dns::delete_leading_to(&cx, &other, uow, &entry.id).await?;
                soft_delete(&cx, &other, uow, &entry).await?;
            }
        }
    }
    Ok(())
}
