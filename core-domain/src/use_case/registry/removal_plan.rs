//! Dry runs of deletions: count the records that a deletion would remove, without removing them.
//!
//! A dry run requires the same permission as the deletion. It is recorded in the audit log.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::{entity, resource};
use crate::access::{AuditEvent, PlatformAccess, PlatformScope, audited};
use crate::kernel::{Context, EntityId, ResourceId, Result, grant};
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
    scope: &PlatformScope<grant::PlatformManage>,
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
    scope: &PlatformScope<grant::EntityWrite>,
    uow: &mut dyn UnitOfWork,
    entity: &EntityId,
    cascade: bool,
) -> Result<RemovalPlan> {
    let plan = entity::plan_deletion(cx, scope, uow, entity, cascade)
        .await?
        .plan;
    let action = "entity.deletion_planned";
    record_dry_run(cx, scope, uow, action, entity.as_str(), plan).await
}

/// Returns what the deletion of a resource would remove: its record.
///
/// # Errors
/// Those of the deletion.
pub async fn of_resource(
    cx: &Context,
    scope: &PlatformScope<grant::ResourceWrite>,
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
