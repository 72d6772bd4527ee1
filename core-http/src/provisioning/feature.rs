//! Endpoints that queue the jobs of features.

use core_domain::access::PlatformScope;
use core_domain::kernel::{Code, EntityId, Environment, PlatformId, Result, permission};
use core_domain::port::UnitOfWork;
use core_domain::registry::{
    ActivateFeature, DeactivateFeature, FeatureId, FeatureVersion, NewFeatureId,
};
use core_domain::use_case::registry::feature;
use schemars::JsonSchema;
use serde::Deserialize;

use super::queued::{QueuedResponse, SUCCESS, queued_response};
use crate::kernel::{Cx, DryRunQuery, Endpoint, Input, OnPlatform, post};

type Writes = PlatformScope<permission::FeatureWrite>;

pub(super) fn rows() -> Vec<Endpoint> {
    vec![
        post("/api/v1/provision/feature/activate", "provisionFeature")
            .summary("Activates a feature of an entity.")
            .description(
                "Queues a job that creates the feature in the environment. If the feature is \
                 active or pending in this version, no job is queued, and the response has the \
                 existing job. A feature that is active in another version must be deactivated \
                 first. With `dryRun=true` nothing is queued, and the response has the plan of \
                 the job.",
            )
            .success(SUCCESS)
            .refuses(&[
                Code::NotFound,
                Code::Conflict,
                Code::InvalidState,
                Code::LimitReached,
            ])
            .writes(activate),
        post("/api/v1/provision/feature/deactivate", "deprovisionFeature")
            .summary("Deactivates a feature of an entity.")
            .description(
                "Queues a job that removes the feature from the environment. Its data is kept \
                 unless `deleteData` is set. If the removal is already queued, no further job is \
                 queued, and the response has the existing job; a call with `deleteData` always \
                 queues one. With `dryRun=true` nothing is queued, and the response has the plan \
                 of the job.",
            )
            .success(SUCCESS)
            .refuses(&[Code::NotFound, Code::InvalidState, Code::LimitReached])
            .writes(deactivate),
    ]
}

/// A request to activate a feature of an entity.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ProvisionFeature {
    /// The id of the platform.
    platform_id: PlatformId,
    /// The id of the entity that gets the feature.
    entity_id: EntityId,
    /// The id of the feature to activate.
    feature_id: NewFeatureId,
    /// The version of the feature to activate.
    feature_version: FeatureVersion,
    /// The environment in which the feature will run.
    environment: Environment,
}

/// A request to deactivate a feature of an entity.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct DeprovisionFeature {
    /// The id of the platform.
    platform_id: PlatformId,
    /// The id of the entity that has the feature.
    entity_id: EntityId,
    /// The id of the feature to deactivate.
    feature_id: FeatureId,
    /// The environment in which the feature runs.
    environment: Environment,
    /// Whether the data of the feature is removed as well. Default: `false`.
    ///
    /// This removes the databases, buckets, key-value namespaces and queues that the feature owns in the environment.
    /// It owns those that were recorded with its id as their service name while it was in use. Those of the platform
    /// and of stacks stay.
    #[serde(default)]
    delete_data: bool,
}

impl OnPlatform for Input<(), DryRunQuery, ProvisionFeature> {
    fn platform_id(&self) -> &PlatformId {
        &self.body.platform_id
    }
}

impl OnPlatform for Input<(), DryRunQuery, DeprovisionFeature> {
    fn platform_id(&self) -> &PlatformId {
        &self.body.platform_id
    }
}

async fn activate(
    cx: &Cx,
    scope: Writes,
    uow: &mut dyn UnitOfWork,
    input: Input<(), DryRunQuery, ProvisionFeature>,
) -> Result<QueuedResponse> {
    let body = input.body;
    let command = ActivateFeature {
        feature_id: body.feature_id,
        version: body.feature_version,
        environment: body.environment,
        config: None,
    };
    let asked = feature::activate(cx, &scope, uow, &body.entity_id, command).await?;
    let job = feature::job_of(&scope, uow, &asked.activation).await?;
    queued_response(uow, input.query, &job).await
}

async fn deactivate(
    cx: &Cx,
    scope: Writes,
    uow: &mut dyn UnitOfWork,
    input: Input<(), DryRunQuery, DeprovisionFeature>,
) -> Result<QueuedResponse> {
    let body = input.body;
    let command = DeactivateFeature {
        feature_id: body.feature_id,
        environment: body.environment,
    };
    let (entity, delete_data) = (&body.entity_id, body.delete_data);
    let asked = feature::deactivate_with(cx, &scope, uow, entity, command, delete_data).await?;
    let job = feature::job_of(&scope, uow, &asked.activation).await?;
    queued_response(uow, input.query, &job).await
}
