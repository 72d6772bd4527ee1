//! What a deletion would remove, without removing it. Whoever may not delete may not ask either; that it was asked is in
//! the audit.

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

/// What would go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RemovalPlan {
    /// How many entities.
    pub entities: u64,
    /// How many resources.
    pub resources: u64,
    /// How many workspace stacks.
    pub stacks: u64,
    /// How many features.
    pub features: u64,
    /// How many DNS records. Those of a platform: an entity or a resource that has any is not deleted.
    pub dns_records: u64,
    /// How many custom domains. Those of a platform, as with DNS records.
    pub domains: u64,
}

/// A plan as the audit tells of it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Told {
    dry_run: bool,
    #[serde(flatten)]
    plan: RemovalPlan,
}

/// What a deletion of a platform would remove: with [`PlatformEvent::HardDelete`] everything, otherwise nothing that
/// belongs to it.
///
/// # Errors
/// As the deletion.
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
    planned(cx, scope, uow, action, scope.id().as_str(), plan).await
}

/// What a deletion of an entity would remove.
///
/// # Errors
/// As the deletion.
pub async fn of_entity(
    cx: &Context,
    scope: &PlatformScope<grant::EntityWrite>,
    uow: &mut dyn UnitOfWork,
    entity: &EntityId,
    cascade: bool,
) -> Result<RemovalPlan> {
    let plan = entity::deletion(cx, scope, uow, entity, cascade)
        .await?
        .plan;
    let action = "entity.deletion_planned";
    planned(cx, scope, uow, action, entity.as_str(), plan).await
}

/// What a deletion of a resource would remove: the entry.
///
/// # Errors
/// As the deletion.
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
    planned(cx, scope, uow, action, resource.as_str(), plan).await
}

async fn planned(
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
        details: Some(json!(Told {
            dry_run: true,
            plan,
        })),
    };
    audited::event(cx, uow, event).await?;
    Ok(plan)
}
