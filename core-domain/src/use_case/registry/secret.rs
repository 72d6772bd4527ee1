//! Metadata of the secrets of resources: names and statuses. The registry never stores secret values.

use super::resource;
use crate::access::{PlatformScope, audited, ensure_room_unless_operator};
use crate::kernel::{
    Context, Error, ListQuery, Page, ResourceId, ResourceSecretId, Result, StoreError, Stored,
    permission,
};
use crate::port::UnitOfWork;
use crate::registry::{ResourceSecret, ResourceSecretQuery, SecretName, SetResourceSecret};

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
    resource::not_deleted(scope, uow, resource).await?;
    let named = ResourceSecretQuery::Named(resource.clone(), name.clone());
    let known = scope.records::<ResourceSecret>(uow).first(&named).await?;
    let now = uow.now().await?;
    if let Some(seen) = known {
        let next = seen.edit().with_status(command.status, now);
        let action = "resource_secret.updated";
        let stored = audited::replace(cx, scope, uow, &seen, next, action).await?;
        return Ok((stored, false));
    }
    cx.check_absent()?;
    let of_resource = ResourceSecretQuery::OfResource(resource.clone());
    let secrets = scope.records::<ResourceSecret>(uow);
    let limit = cx.limits.secrets_per_resource;
    let message = "The resource has reached its maximum number of secrets.";
    ensure_room_unless_operator(cx, secrets, &of_resource, limit, message).await?;
    let id = ResourceSecretId::generate(now, cx.entropy.as_ref());
    let platform = scope.id().clone();
    let secret = ResourceSecret::create(id, platform, resource.clone(), name, now)
        .with_status(command.status, now);
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
