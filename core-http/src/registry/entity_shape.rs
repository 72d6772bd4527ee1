//! The shapes of entities (interface: "Entity").

use core_domain::kernel::{EntityId, Name, PlatformId, Slug, Timestamp};
use core_domain::port::Stored;
use core_domain::registry::{Entity, EntityStatus, EntityType};
use core_domain::use_case::registry::{EntityChange, NewEntity};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kernel::Limit;

/// Query of `GET /api/v1/platforms/{platformId}/entities`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct WhichEntities {
    /// Of this type alone.
    #[serde(rename = "type")]
    pub(super) entity_type: Option<EntityType>,
    #[serde(default)]
    pub(super) limit: Limit,
    pub(super) cursor: Option<String>,
    /// Deleted ones too; for operators.
    #[serde(default)]
    pub(super) include_deleted: bool,
}

/// Query of `DELETE /api/v1/platforms/{platformId}/entities/{entityId}`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct HowToDeleteEntity {
    /// Delete what lives below it as well; for operators.
    #[serde(default)]
    pub(super) cascade: bool,
    /// Only tell what would go.
    #[serde(default)]
    pub(super) dry_run: bool,
}

/// Body of `POST /api/v1/platforms/{platformId}/entities`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CreateEntity {
    name: Name,
    slug: Slug,
    #[serde(rename = "type")]
    entity_type: EntityType,
    /// The entity above it; required for a subtenant, none for a tenant.
    parent_id: Option<EntityId>,
}

impl From<CreateEntity> for NewEntity {
    fn from(body: CreateEntity) -> Self {
        Self {
            name: body.name,
            slug: body.slug,
            entity_type: body.entity_type,
            parent_id: body.parent_id,
        }
    }
}

/// Body of `PATCH /api/v1/platforms/{platformId}/entities/{entityId}`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct UpdateEntity {
    name: Option<Name>,
    status: Option<EntityStatus>,
}

impl From<UpdateEntity> for EntityChange {
    fn from(body: UpdateEntity) -> Self {
        Self {
            name: body.name,
            status: body.status,
        }
    }
}

/// An entity.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct EntityShape {
    id: EntityId,
    platform_id: PlatformId,
    parent_id: Option<EntityId>,
    #[serde(rename = "type")]
    entity_type: EntityType,
    name: Name,
    slug: Slug,
    status: EntityStatus,
    created_at: Timestamp,
    updated_at: Timestamp,
    deleted_at: Option<Timestamp>,
}

impl From<Stored<Entity>> for EntityShape {
    fn from(stored: Stored<Entity>) -> Self {
        let entity = stored.into_inner();
        Self {
            id: entity.id,
            platform_id: entity.platform_id,
            parent_id: entity.parent_id,
            entity_type: entity.entity_type,
            name: entity.name,
            slug: entity.slug,
            status: entity.status,
            created_at: entity.created_at,
            updated_at: entity.updated_at,
            deleted_at: entity.deleted_at,
        }
    }
}
