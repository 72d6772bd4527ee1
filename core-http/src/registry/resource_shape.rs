//! The shapes of resources (interface: "Infrastructure resource").

use core_domain::kernel::{
    EntityId, Environment, JobId, PlatformId, ResourceId, StackId, Timestamp,
};
use core_domain::port::Stored;
use core_domain::registry::{Resource, ResourceStatus, ResourceType};
use core_domain::use_case::registry::{NewResource, ResourceChange};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::kernel::Patch;

/// Query of `GET /api/v1/lookup`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct WhichName {
    /// The name at the provider.
    #[schemars(length(min = 1, max = 255))]
    pub(super) cf_name: String,
}

/// Body of `POST /api/v1/platforms/{platformId}/entities/{entityId}/resources`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CreateResource {
    /// The workspace stack it is for.
    stack_id: StackId,
    resource_type: ResourceType,
    /// What it is there for.
    #[schemars(length(min = 1, max = 255))]
    service_name: String,
    environment: Environment,
    /// Its name at the provider.
    #[schemars(length(min = 1, max = 255))]
    cf_name: String,
    /// Its id at the provider.
    #[schemars(length(max = 255))]
    cf_id: Option<String>,
    /// Where it can be reached.
    #[schemars(length(max = 2048), extend("format" = "uri"))]
    cf_url: Option<String>,
    /// The job that makes it.
    provision_job_id: Option<JobId>,
    /// Free-form settings of at most 64 KiB.
    #[serde(default)]
    config: Value,
}

impl From<CreateResource> for NewResource {
    fn from(body: CreateResource) -> Self {
        Self {
            stack_id: Some(body.stack_id),
            resource_type: body.resource_type,
            service_name: body.service_name,
            environment: body.environment,
            cf_name: body.cf_name,
            cf_id: body.cf_id,
            cf_url: body.cf_url,
            provision_job_id: body.provision_job_id,
            config: body.config,
        }
    }
}

/// Body of `PATCH /api/v1/platforms/{platformId}/resources/{resourceId}`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct UpdateResource {
    status: Option<ResourceStatus>,
    /// Its id at the provider; `null` takes it away.
    #[serde(default)]
    #[schemars(length(max = 255))]
    cf_id: Patch<String>,
    /// Where it can be reached; `null` takes it away.
    #[serde(default)]
    #[schemars(length(max = 2048), extend("format" = "uri"))]
    cf_url: Patch<String>,
    /// Free-form settings of at most 64 KiB; they replace the ones there are.
    #[serde(default)]
    config: Patch<Value>,
    /// The job that makes it; `null` takes it away.
    #[serde(default)]
    provision_job_id: Patch<JobId>,
}

impl From<UpdateResource> for ResourceChange {
    fn from(body: UpdateResource) -> Self {
        Self {
            status: body.status,
            cf_id: body.cf_id.into_change(),
            cf_url: body.cf_url.into_change(),
            config: body.config.into_change().map(Option::unwrap_or_default),
            provision_job_id: body.provision_job_id.into_change(),
        }
    }
}

/// A resource.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResourceShape {
    id: ResourceId,
    platform_id: PlatformId,
    entity_id: EntityId,
    service_name: String,
    resource_type: ResourceType,
    environment: Environment,
    cf_name: String,
    cf_id: Option<String>,
    #[schemars(extend("format" = "uri"))]
    cf_url: Option<String>,
    status: ResourceStatus,
    provision_job_id: Option<JobId>,
    config: Value,
    created_at: Timestamp,
    updated_at: Timestamp,
    deleted_at: Option<Timestamp>,
}

impl From<Stored<Resource>> for ResourceShape {
    fn from(stored: Stored<Resource>) -> Self {
        let resource = stored.into_inner();
        Self {
            id: resource.id,
            platform_id: resource.platform_id,
            entity_id: resource.entity_id,
            service_name: resource.service_name,
            resource_type: resource.resource_type,
            environment: resource.environment,
            cf_name: resource.cf_name,
            cf_id: resource.cf_id,
            cf_url: resource.cf_url,
            status: resource.status,
            provision_job_id: resource.provision_job_id,
            config: resource.config,
            created_at: resource.created_at,
            updated_at: resource.updated_at,
            deleted_at: resource.deleted_at,
        }
    }
}
