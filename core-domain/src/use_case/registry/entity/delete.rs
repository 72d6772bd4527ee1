//! Deleting entities, one or a whole tree.

use std::collections::VecDeque;

use super::tree::{ensure_no_children, not_deleted};
use crate::access::{Batches, PlatformScope, audited, authorize_operator, ensure_below};
use crate::kernel::{Context, EntityId, JobId, Machine, Result, Stored, grant};
use crate::port::UnitOfWork;
use crate::registry::{
    Entity, EntityEvent, EntityQuery, FeatureActivation, FeatureActivationQuery, Resource,
    ResourceQuery, WorkspaceStack, WorkspaceStackQuery,
};
use crate::use_case::provisioning::enqueue;
use crate::use_case::registry::feature::{self, Ending};
use crate::use_case::registry::jobs::{DeletedEntity, RemoveEntity};
use crate::use_case::registry::provision::record_queued;
use crate::use_case::registry::removal_plan::RemovalPlan;
use crate::use_case::registry::{dns, resource, workspace_stack};

/// What a deletion removes.
#[derive(Debug)]
pub(in crate::use_case::registry) struct Deletion {
    /// The entities, the highest first.
    entities: Vec<Stored<Entity>>,
    /// The number of records of each kind.
    pub(in crate::use_case::registry) plan: RemovalPlan,
}

/// Deletes an entity; with `cascade` all that stands below it too: entities, their resources' entries and their workspace
/// stacks, and their features end. A job removes the objects of the resources.
///
/// # Errors
/// `NOT_FOUND`; `CONFLICT` when something stands below it, and when a DNS record leads to a resource below it; `FORBIDDEN`
/// for a cascade by anybody but operators; `LIMIT_REACHED` for a cascade that removes more than the limit; `VERSION_CONFLICT`.
pub async fn delete(
    cx: &Context,
    scope: &PlatformScope<grant::EntityWrite>,
    uow: &mut dyn UnitOfWork,
    entity: &EntityId,
    cascade: bool,
) -> Result<()> {
    let Deletion { entities, plan } = deletion(cx, scope, uow, entity, cascade).await?;
    let cx = cx.consequence();
    let job = if plan.resources > 0 {
        Some(queue_removal(&cx, scope, uow, entity).await?)
    } else {
        None
    };
    for entity in entities.into_iter().rev() {
        if cascade {
            delete_resources(&cx, scope, uow, &entity, job.as_ref()).await?;
            workspace_stack::remove_all_of(&cx, scope.writer(), uow, &entity.id).await?;
            let ending = Ending::Entity(entity.id.clone());
            feature::end_all(&cx, scope.writer(), uow, ending).await?;
        }
        soft_delete(&cx, scope, uow, entity).await?;
    }
    Ok(())
}

/// Returns what a deletion removes, without removing it.
///
/// # Errors
/// As [`delete`].
pub(in crate::use_case::registry) async fn deletion(
    cx: &Context,
    scope: &PlatformScope<grant::EntityWrite>,
    uow: &mut dyn UnitOfWork,
    entity: &EntityId,
    cascade: bool,
) -> Result<Deletion> {
    let seen = not_deleted(scope, uow, entity).await?;
    cx.check_if_match(&seen)?;
    if !cascade {
        ensure_no_children(scope, uow, &seen).await?;
        let plan = RemovalPlan {
            entities: 1,
            ..RemovalPlan::default()
        };
        let entities = vec![seen];
        return Ok(Deletion { entities, plan });
    }
    authorize_operator(cx)?;
    let (mut entities, mut plan) = (Vec::new(), RemovalPlan::default());
    let mut level = VecDeque::from([seen]);
    while let Some(entity) = level.pop_front() {
        add_to(&mut plan, scope, uow, &entity).await?;
        // The children that wait count as well, so that neither work nor memory grows with the tree.
        ensure_small(cx, &plan, level.len())?;
        let mut children = Batches::<Entity>::of(EntityQuery::ChildrenOf(entity.id.clone()));
        while let Some(batch) = children.next(scope.records(uow)).await? {
            level.extend(batch);
            ensure_small(cx, &plan, level.len())?;
        }
        entities.push(entity);
    }
    Ok(Deletion { entities, plan })
}

/// Adds an entity and its records to the plan. Refuses an entity with a DNS record that leads to one of its resources.
async fn add_to(
    plan: &mut RemovalPlan,
    scope: &PlatformScope<grant::EntityWrite>,
    uow: &mut dyn UnitOfWork,
    entity: &Entity,
) -> Result<()> {
    dns::ensure_none_leads_into(scope, uow, &entity.id).await?;
    let stacks = WorkspaceStackQuery::of_tenant(&entity.id);
    plan.stacks += scope.records::<WorkspaceStack>(uow).count(&stacks).await?;
    let features = FeatureActivationQuery::OfEntity {
        entity_id: entity.id.clone(),
        in_use: true,
    };
    let features = scope.records::<FeatureActivation>(uow).count(&features);
    plan.features += features.await?;
    let resources = of_entity(entity);
    plan.resources += scope.records::<Resource>(uow).count(&resources).await?;
    plan.entities += 1;
    Ok(())
}

/// Refuses a cascade above the limit: it removes everything in one unit of work.
fn ensure_small(cx: &Context, plan: &RemovalPlan, waiting: usize) -> Result<()> {
    let limit = cx.limits.records_per_cascade;
    let count = plan.entities + plan.stacks + plan.features + plan.resources;
    let count = count + u64::try_from(waiting).unwrap_or(u64::MAX);
    let message =
        "The deletion would remove more than one deletion may. Delete parts of the tree first.";
    ensure_below(count.saturating_sub(1), limit, message)
}

/// Queues the job that removes the objects at the provider.
async fn queue_removal(
    cx: &Context,
    scope: &PlatformScope<grant::EntityWrite>,
    uow: &mut dyn UnitOfWork,
    entity: &EntityId,
) -> Result<JobId> {
    let deleted = DeletedEntity {
        platform_id: scope.id().clone(),
        entity_id: entity.clone(),
    };
    let job = enqueue::<RemoveEntity>(cx, scope.writer(), uow, &deleted).await?;
    record_queued(cx, scope, uow, &job, "entity.removal_queued").await?;
    Ok(job.id.clone())
}

async fn delete_resources(
    cx: &Context,
    scope: &PlatformScope<grant::EntityWrite>,
    uow: &mut dyn UnitOfWork,
    entity: &Entity,
    job: Option<&JobId>,
) -> Result<()> {
    let mut resources = Batches::<Resource>::of(of_entity(entity));
    while let Some(batch) = resources.next(scope.records(uow)).await? {
        for resource in batch {
            resource::delete_for(cx, scope, uow, &resource, job).await?;
        }
    }
    Ok(())
}

fn of_entity(entity: &Entity) -> ResourceQuery {
    ResourceQuery::OfEntity {
        entity_id: entity.id.clone(),
        deleted: false,
    }
}

async fn soft_delete(
    cx: &Context,
    scope: &PlatformScope<grant::EntityWrite>,
    uow: &mut dyn UnitOfWork,
    seen: Stored<Entity>,
) -> Result<()> {
    let event = EntityEvent::Delete;
    let next = seen.edit().after(event, uow.now().await?)?;
    audited::replace(cx, scope, uow, &seen, next, event.of_event().action).await?;
    Ok(())
}
