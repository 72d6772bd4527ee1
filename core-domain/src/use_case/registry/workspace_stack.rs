//! Workspace stacks: entering and finding them. Nothing is provisioned for one that is entered here.

use super::entity;
use crate::access::{
    Batches, PlatformAccess, PlatformScope, PlatformWriter, audited, ensure_room_unless_operator,
};
use crate::kernel::{
    Code, Context, EntityId, Error, ListQuery, Page, Result, StackId, StoreError, Stored, grant,
};
use crate::port::UnitOfWork;
use crate::registry::{
    CreateWorkspaceStack, WorkspaceStack, WorkspaceStackFilter, WorkspaceStackQuery,
};

/// Creates a stack of an entity. A new default takes the place of the one the entity has.
///
/// # Errors
/// `NOT_FOUND` for an unknown entity; `INVALID_STATE` below a suspended one; `CONFLICT` when the entity has a stack of this
/// name; `LIMIT_REACHED`.
pub async fn create(
    cx: &Context,
    scope: &PlatformScope<grant::WorkspaceWrite>,
    uow: &mut dyn UnitOfWork,
    command: CreateWorkspaceStack,
) -> Result<Stored<WorkspaceStack>> {
    let tenant = entity::not_deleted(scope, uow, &command.tenant_id).await?;
    entity::ensure_not_suspended(scope, uow, &tenant).await?;
    ensure_room_for_stack(cx, scope, uow, &tenant.id).await?;
    if command.is_default {
        unset_default(cx, scope, uow, &tenant.id).await?;
    }
    let now = uow.now().await?;
    let id = StackId::generate(now, cx.entropy.as_ref());
    let stack = WorkspaceStack::create(id, scope.id(), command, now);
    let stored = audited::insert(cx, scope, uow, stack, "workspace_stack.created").await;
    stored.map_err(conflict)
}

/// Refuses one more stack of an entity.
///
/// # Errors
/// `LIMIT_REACHED`.
pub(super) async fn ensure_room_for_stack(
    cx: &Context,
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    tenant: &EntityId,
) -> Result<()> {
    let of_tenant = WorkspaceStackQuery::of_tenant(tenant);
    let stacks = scope.records::<WorkspaceStack>(uow);
    let limit = cx.limits.workspace_stacks_per_entity;
    let message = "The entity has as many workspace stacks as it may have.";
    ensure_room_unless_operator(cx, stacks, &of_tenant, limit, message).await
}

async fn unset_default(
    cx: &Context,
    scope: &PlatformScope<grant::WorkspaceWrite>,
    uow: &mut dyn UnitOfWork,
    tenant: &EntityId,
) -> Result<()> {
    let default = WorkspaceStackQuery::DefaultOf(tenant.clone());
    let stacks = scope.records::<WorkspaceStack>(uow);
    let Some(seen) = stacks.first(&default).await? else {
        return Ok(());
    };
    let mut next = seen.edit();
    next.is_default = false;
    let action = "workspace_stack.updated";
    audited::replace(&cx.consequence(), scope, uow, &seen, next, action).await?;
    Ok(())
}

/// What a write that could not be made means: that the name is taken, or that another default was faster, after which the
/// unit runs again and finds it.
fn conflict(error: Error) -> Error {
    match error {
        Error::Store(StoreError::Conflict { index: "name", .. }) => Error::refused(
            Code::Conflict,
            "The entity has a workspace stack of this name already.",
        ),
        Error::Store(error) => error.conflict_as_retry().into(),
        error => error,
    }
}

/// The workspace stacks of a platform, newest first.
///
/// # Errors
/// `INVALID_CURSOR`.
pub async fn list(
    scope: &PlatformScope<grant::WorkspaceRead>,
    uow: &mut dyn UnitOfWork,
    query: &ListQuery<WorkspaceStackFilter>,
) -> Result<Page<Stored<WorkspaceStack>>> {
    let listed = WorkspaceStackQuery::Listed(query.filter.clone());
    let stacks = scope.records::<WorkspaceStack>(uow);
    stacks.page(&listed, &query.page()).await
}

/// A workspace stack of the platform.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn get(
    scope: &PlatformScope<grant::WorkspaceRead>,
    uow: &mut dyn UnitOfWork,
    stack: &StackId,
) -> Result<Stored<WorkspaceStack>> {
    scope.records::<WorkspaceStack>(uow).get(stack).await
}

/// Removes the stacks of an entity that is deleted with all that it has.
pub(super) async fn remove_all_of(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    tenant: &EntityId,
) -> Result<()> {
    let of_tenant = WorkspaceStackQuery::of_tenant(tenant);
    let mut stacks = Batches::<WorkspaceStack>::of(of_tenant);
    while let Some(batch) = stacks.next(scope.records(uow)).await? {
        for stack in batch {
            audited::remove(cx, scope, uow, &stack, "workspace_stack.deleted").await?;
        }
    }
    Ok(())
}
