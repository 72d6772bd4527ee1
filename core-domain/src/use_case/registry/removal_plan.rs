//! Dry runs of deletions: count the records that a deletion would remove, without removing them.
//!
//! A dry run requires the same permission as the deletion. It is recorded in the audit log.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::entity_tree::not_deleted;
use super::jobs::ensure_entity_has_no_dns_records;
use super::resource;
use crate::access::{
    AuditEvent, Batches, PlatformAccess, PlatformScope, audited, authorize_operator, ensure_below,
};
use crate::kernel::{Code, Context, EntityId, Error, ResourceId, Result, Stored, permission};
use crate::port::UnitOfWork;
use crate::registry::{
    CustomDomain, CustomDomainQuery, DnsRecord, DnsRecordQuery, Entity, EntityFilter, EntityQuery,
    FeatureActivation, FeatureActivationQuery, PlatformEvent, Resource, ResourceQuery,
    WorkspaceStack, WorkspaceStackFilter, WorkspaceStackQuery,
};

/// The numbers of records that a deletion would remove.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RemovalPlan {
    /// The number of entities that would be deleted.
    pub entities: u64,
    /// The number of resources that would be deleted.
    pub resources: u64,
    /// The number of workspace stacks that would be deleted.
    pub stacks: u64,
    /// The number of features that would be deactivated.
    pub features: u64,
    /// The number of DNS records that would be deleted. Always 0 for entities and resources, which cannot be deleted
    /// while they have DNS records.
    pub dns_records: u64,
    /// The number of custom domains that would be deleted. Always 0 for entities and resources.
    pub domains: u64,
}

/// The details of a dry run in the audit log.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DryRunDetails {
    dry_run: bool,
    #[serde(flatten)]
    plan: RemovalPlan,
}

/// Returns what the deletion of a platform would remove. Only [`PlatformEvent::HardDelete`] removes records that belong
/// to the platform; for other events all numbers are 0.
///
/// # Errors
/// Those of the deletion.
pub async fn of_platform(
    cx: &Context,
    scope: &PlatformScope<permission::PlatformManage>,
    uow: &mut dyn UnitOfWork,
    event: PlatformEvent,
) -> Result<RemovalPlan> {
    cx.check_if_match(scope.platform())?;
    let now = uow.now().await?;
    scope.platform().edit().after(event, None, now)?;
    let mut plan = RemovalPlan::default();
    if event == PlatformEvent::HardDelete {
        let entities = EntityQuery::Listed(EntityFilter::default());
        plan.entities = scope.records::<Entity>(uow).count(&entities).await?;
        let resources = ResourceQuery::All { deleted: false };
        plan.resources = scope.records::<Resource>(uow).count(&resources).await?;
        let stacks = WorkspaceStackQuery::Listed(WorkspaceStackFilter::default());
        plan.stacks = scope.records::<WorkspaceStack>(uow).count(&stacks).await?;
        let features = FeatureActivationQuery::OfPlatform {
            environment: None,
            inactive: false,
        };
        let ended = scope.records::<FeatureActivation>(uow).count(&features);
        plan.features = ended.await?;
        let records = scope.records::<DnsRecord>(uow);
        plan.dns_records = records
            .count(&DnsRecordQuery::All { deleted: false })
            .await?;
        let domains = CustomDomainQuery::All { deleted: false };
        plan.domains = scope.records::<CustomDomain>(uow).count(&domains).await?;
    }
    let action = "platform.deletion_planned";
    record_dry_run(cx, scope, uow, action, scope.id().as_str(), plan).await
}

/// Returns what the deletion of an entity would remove.
///
/// # Errors
/// Those of the deletion.
pub async fn of_entity(
    cx: &Context,
    scope: &PlatformScope<permission::EntityWrite>,
    uow: &mut dyn UnitOfWork,
    entity: &EntityId,
    cascade: bool,
) -> Result<RemovalPlan> {
    let plan = plan_deletion(cx, scope, uow, entity, cascade).await?.plan;
    let action = "entity.deletion_planned";
    record_dry_run(cx, scope, uow, action, entity.as_str(), plan).await
}

/// Returns what the deletion of a resource would remove: its record.
///
/// # Errors
/// Those of the deletion.
pub async fn of_resource(
    cx: &Context,
    scope: &PlatformScope<permission::ResourceWrite>,
    uow: &mut dyn UnitOfWork,
    resource: &ResourceId,
) -> Result<RemovalPlan> {
    resource::deletable(cx, scope, uow, resource).await?;
    let plan = RemovalPlan {
        resources: 1,
        ..RemovalPlan::default()
    };
    let action = "resource.deletion_planned";
    record_dry_run(cx, scope, uow, action, resource.as_str(), plan).await
}

/// Records the dry run in the audit log and returns the plan.
async fn record_dry_run(
    cx: &Context,
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    action: &'static str,
    thing: &str,
    plan: RemovalPlan,
) -> Result<RemovalPlan> {
    let event = AuditEvent {
        platform_id: Some(scope.id().clone()),
        action,
        entity_id: thing.to_owned(),
        details: Some(json!(DryRunDetails {
            dry_run: true,
            plan,
        })),
    };
    audited::record_event(cx, uow, event).await?;
    Ok(plan)
}

/// The records that a deletion removes.
#[derive(Debug)]
pub(super) struct Deletion {
    /// The entities from top to bottom.
    pub(super) entities: Vec<Stored<Entity>>,
    /// The number of records of each kind.
    pub(super) plan: RemovalPlan,
}

/// Returns the records that a deletion removes, without removing them.
///
/// # Errors
/// Those of [`entity::delete`](super::entity::delete).
pub(super) async fn plan_deletion(
    cx: &Context,
    scope: &PlatformScope<permission::EntityWrite>,
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
        // The pending children are counted too. That bounds the work and the memory for large trees.
        ensure_below_cascade_limit(cx, &plan, level.len())?;
        let mut children = Batches::<Entity>::of(EntityQuery::ChildrenOf(entity.id.clone()));
        while let Some(batch) = children.next(scope.records(uow)).await? {
            level.extend(batch);
            ensure_below_cascade_limit(cx, &plan, level.len())?;
        }
        entities.push(entity);
    }
    Ok(Deletion { entities, plan })
}

/// Adds an entity and its records to the plan. Returns `CONFLICT` if the entity has DNS records.
async fn add_to(
    plan: &mut RemovalPlan,
    scope: &PlatformScope<permission::EntityWrite>,
    uow: &mut dyn UnitOfWork,
    entity: &Entity,
) -> Result<()> {
    ensure_entity_has_no_dns_records(scope, uow, &entity.id).await?;
    let stacks = WorkspaceStackQuery::of_tenant(&entity.id);
    plan.stacks += scope.records::<WorkspaceStack>(uow).count(&stacks).await?;
    let features = FeatureActivationQuery::OfEntity {
        entity_id: entity.id.clone(),
        in_use: true,
    };
    let features = scope.records::<FeatureActivation>(uow).count(&features);
    plan.features += features.await?;
    let resources = resources_of(entity);
    plan.resources += scope.records::<Resource>(uow).count(&resources).await?;
    plan.entities += 1;
    Ok(())
}

/// Returns `LIMIT_REACHED` for a cascade above the limit. The limit exists because one unit of work removes everything.
fn ensure_below_cascade_limit(cx: &Context, plan: &RemovalPlan, waiting: usize) -> Result<()> {
    let limit = cx.limits.records_per_cascade;
    let count = plan.entities + plan.stacks + plan.features + plan.resources;
    let count = count + u64::try_from(waiting).unwrap_or(u64::MAX);
    let message =
        "The deletion would remove too many records at once. Delete parts of the tree first.";
    ensure_below(count.saturating_sub(1), limit, message)
}

/// Returns `CONFLICT` if the entity has children, resources, workspace stacks or features in use.
pub(super) async fn ensure_no_children(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    entity: &Entity,
) -> Result<()> {
    let children = EntityQuery::ChildrenOf(entity.id.clone());
    let children = scope.records::<Entity>(uow).count(&children).await?;
    let resources = ResourceQuery::OfEntity {
        entity_id: entity.id.clone(),
        deleted: false,
    };
    let resources = scope.records::<Resource>(uow).count(&resources).await?;
    let stacks = WorkspaceStackQuery::of_tenant(&entity.id);
    let stacks = scope.records::<WorkspaceStack>(uow).count(&stacks).await?;
    let features = FeatureActivationQuery::OfEntity {
        entity_id: entity.id.clone(),
        in_use: true,
    };
    let features = scope
        .records::<FeatureActivation>(uow)
        .count(&features)
        .await?;
    if children == 0 && resources == 0 && stacks == 0 && features == 0 {
        return Ok(());
    }
    Err(Error::Refused {
        code: Code::Conflict,
        message: "This entity still has child entities, resources, workspace stacks or features. \
                  Delete or deactivate them first."
            .to_owned(),
        details: json!({
            "children": children, "resources": resources, "stacks": stacks, "features": features,
        }),
    })
}

/// Selects the resources of an entity that are not deleted.
pub(super) fn resources_of(entity: &Entity) -> ResourceQuery {
    ResourceQuery::OfEntity {
        entity_id: entity.id.clone(),
        deleted: false,
    }
}
