//! Reading the audit (interface: "Audit entry").

use core_domain::kernel::{AuditId, PlatformId, Result, Timestamp};
use core_domain::port::{Stored, UnitOfWork};
use core_domain::shared::{AuditEntry, AuditQuery};
use core_domain::use_case::registry as use_case;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::kernel::{Cx, Input, Limit, ListP1, Output, page_request};

/// Query of `GET /api/v1/platforms/{platformId}/audit`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct OfPlatform {
    /// Exactly this action.
    action: Option<String>,
    /// With this kind of thing, or this very thing.
    entity: Option<String>,
    #[serde(default)]
    limit: Limit,
    cursor: Option<String>,
}

/// Query of `GET /api/v1/audit`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Across {
    /// Of this platform.
    platform_id: Option<PlatformId>,
    /// By this actor.
    actor_id: Option<String>,
    /// This action, or any action with this first segment.
    event_type: Option<String>,
    /// Not before this instant.
    from: Option<Timestamp>,
    /// Before this instant.
    to: Option<Timestamp>,
    #[serde(default)]
    limit: Limit,
    cursor: Option<String>,
}

/// An entry of the audit.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AuditShape {
    id: AuditId,
    platform_id: Option<PlatformId>,
    actor_id: String,
    actor_type: String,
    action: String,
    entity_type: String,
    entity_id: String,
    before: Option<Value>,
    after: Option<Value>,
    metadata: Value,
    created_at: Timestamp,
}

impl From<Stored<AuditEntry>> for AuditShape {
    fn from(stored: Stored<AuditEntry>) -> Self {
        let entry = stored.into_inner();
        Self {
            id: entry.id,
            platform_id: entry.platform_id,
            actor_id: entry.actor_id,
            actor_type: entry.actor_type,
            action: entry.action,
            entity_type: entry.entity_type,
            entity_id: entry.entity_id,
            before: entry.before,
            after: entry.after,
            metadata: entry.metadata,
            created_at: entry.created_at,
        }
    }
}

pub(super) async fn of_platform(
    cx: &Cx,
    uow: &mut dyn UnitOfWork,
    input: Input<(PlatformId,), OfPlatform>,
) -> Result<Output<ListP1<AuditShape>>> {
    let (platform, query) = (input.path.0, input.query);
    let page = page_request(query.limit.0, query.cursor);
    let query = AuditQuery {
        action: query.action,
        entity: query.entity,
        ..AuditQuery::default()
    };
    let page = use_case::list_platform_audit(cx, uow, &platform, query, &page).await?;
    Ok(Output::new(page.map(AuditShape::from).into()))
}

pub(super) async fn across(
    cx: &Cx,
    uow: &mut dyn UnitOfWork,
    input: Input<(), Across>,
) -> Result<Output<ListP1<AuditShape>>> {
    let query = input.query;
    let page = page_request(query.limit.0, query.cursor);
    let query = AuditQuery {
        platform_id: query.platform_id,
        actor_id: query.actor_id,
        event_type: query.event_type,
        from: query.from,
        to: query.to,
        ..AuditQuery::default()
    };
    let page = use_case::list_audit(cx, uow, query, &page).await?;
    Ok(Output::new(page.map(AuditShape::from).into()))
}
