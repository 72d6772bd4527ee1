//! Metadata of the secrets of resources: names and statuses. The registry never stores secret values.

use super::resource;
use crate::access::{
    Batches, PlatformAccess, PlatformScope, PlatformWriter, audited, ensure_below,
    ensure_room_unless_operator,
};
use crate::kernel::{
    Context, Error, ListQuery, Page, ResourceId, ResourceSecretId, Result, StoreError, Stored,
    permission,
};
use crate::port::UnitOfWork;
use crate::registry::{
    ResourceSecret, ResourceSecretQuery, SecretName, SecretStatus, SetResourceSecret,
};

/// The refusal of another secret.
const FULL: &str = "The resource has reached its maximum number of secrets.";

/// Lists the secrets of a resource, newest first.
///
/// # Errors
/// `NOT_FOUND` if the resource does not exist; `INVALID_CURSOR` if the cursor does not belong to this list.
pub async fn list(
    scope: &PlatformScope<permission::SecretRead>,
    uow: &mut dyn UnitOfWork,
    resource: &ResourceId,
    query: &ListQuery,
) -> Result<Page<Stored<ResourceSecret>>> {
    resource::not_deleted(scope, uow, resource).await?;
    let of_resource = ResourceSecretQuery::OfResource(resource.clone());
    let secrets = scope.records::<ResourceSecret>(uow);
    secrets.page(&of_resource, &query.page()).await
}

/// Creates or updates the record of a resource's secret. Returns the record and whether it was created.
///
/// # Errors
/// `NOT_FOUND` if the resource does not exist; `VERSION_CONFLICT` if `If-Match` does not match; `LIMIT_REACHED` if the
/// resource has its maximum number of secrets.
pub async fn set(
    cx: &Context,
    scope: &PlatformScope<permission::SecretWrite>,
    uow: &mut dyn UnitOfWork,
    resource: &ResourceId,
    name: SecretName,
    command: SetResourceSecret,
) -> Result<(Stored<ResourceSecret>, bool)> {
    upsert(cx, scope.writer(), uow, resource, name, command.status).await
}

/// Creates or updates the record of a resource's secret, see [`set`].
pub(in crate::use_case) async fn upsert(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    resource: &ResourceId,
    name: SecretName,
    status: SecretStatus,
) -> Result<(Stored<ResourceSecret>, bool)> {
    resource::not_deleted(scope, uow, resource).await?;
    let known = find(scope, uow, resource, &name).await?;
    let now = uow.now().await?;
    if let Some(seen) = known {
        let next = seen.edit().with_status(status, now);
        let action = "resource_secret.updated";
        let stored = audited::replace(cx, scope, uow, &seen, next, action).await?;
        return Ok((stored, false));
    }
    cx.check_absent()?;
    let of_resource = ResourceSecretQuery::OfResource(resource.clone());
    let secrets = scope.records::<ResourceSecret>(uow);
    let (limit, message) = (cx.limits.secrets_per_resource, FULL);
    ensure_room_unless_operator(cx, secrets, &of_resource, limit, message).await?;
    let id = ResourceSecretId::generate(now, cx.entropy.as_ref());
    let platform = scope.id().clone();
    let secret =
        ResourceSecret::create(id, platform, resource.clone(), name, now).with_status(status, now);
    let action = "resource_secret.created";
    let stored = audited::insert(cx, scope, uow, secret, action).await;
    let stored = stored.map_err(|error| match error {
        // A concurrent call created the record. The retry of this unit of work finds and updates it.
        Error::Store(conflict @ StoreError::Conflict { index: "name", .. }) => {
            conflict.conflict_as_retry().into()
        }
        error => error,
    })?;
    Ok((stored, true))
}

/// Returns a secret of a resource; `None` if it was never reported.
pub(in crate::use_case) async fn find(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    resource: &ResourceId,
    name: &SecretName,
) -> Result<Option<Stored<ResourceSecret>>> {
    let named = ResourceSecretQuery::Named(resource.clone(), name.clone());
    scope.records::<ResourceSecret>(uow).first(&named).await
}

/// Returns all secrets of a resource, ordered by name. A limit keeps their number small.
pub(in crate::use_case) async fn all(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    resource: &ResourceId,
) -> Result<Vec<Stored<ResourceSecret>>> {
    let of_resource = ResourceSecretQuery::OfResource(resource.clone());
    let mut batches = Batches::<ResourceSecret>::of(of_resource);
    let mut secrets = Vec::new();
    while let Some(batch) = batches.next(scope.records(uow)).await? {
        secrets.extend(batch);
    }
    secrets.sort_by(|a, b| a.secret_name.cmp(&b.secret_name));
    Ok(secrets)
}

/// Checks that a resource can have these secrets as well as its own. Operators have no limit.
///
/// # Errors
/// `LIMIT_REACHED` if there would be too many.
pub(in crate::use_case) async fn ensure_room_for(
    cx: &Context,
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    resource: &ResourceId,
    names: &[SecretName],
) -> Result<()> {
    let known = all(scope, uow, resource).await?;
    let is_new = |name: &&SecretName| known.iter().all(|known| known.secret_name != **name);
    let new = names.iter().filter(is_new).count();
    if new == 0 || cx.caller.is_operator() {
        return Ok(());
    }
    // The last of the new secrets must be below the limit.
    let before_last = (known.len() + new - 1) as u64;
    ensure_below(before_last, cx.limits.secrets_per_resource, FULL)
}
