//! The operations that queue the jobs of features.

use core_domain::access::PlatformScope;
use core_domain::kernel::{Code, EntityId, Environment, PlatformId, Result, grant};
use core_domain::port::UnitOfWork;
use core_domain::registry::{
    ActivateFeature, DeactivateFeature, FeatureId, FeatureVersion, NewFeatureId,
};
use core_domain::use_case::registry::feature;
use schemars::JsonSchema;
use serde::Deserialize;

use super::queued::{Queued, SUCCESS, queued};
use crate::kernel::{Cx, DryRunQuery, Endpoint, Input, OnPlatform, post};

type Writes = PlatformScope<grant::FeatureWrite>;

pub(super) fn rows() -> Vec<Endpoint> {
    vec![
        post("/api/v1/provision/feature/activate", "provisionFeature")
            .summary("Queues the job that makes a feature of an entity; the one there is when it is active or on its way With dryRun only tells what it would do.")
            .success(SUCCESS)
            .refuses(&[Code::NotFound, Code::Conflict, Code::InvalidState, Code::LimitReached])
            .writes(activate),
        post("/api/v1/provision/feature/deactivate", "deprovisionFeature")
            .summary("Queues the job that removes a feature of an entity; the one there is when it is on its way With dryRun only tells what it would do.")
            .success(SUCCESS)
            .refuses(&[Code::NotFound, Code::InvalidState, Code::LimitReached])
            .writes(deactivate),
    ]
}

/// Asks for a feature of an entity.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ProvisionFeature {
    /// The platform.
    platform_id: PlatformId,
    /// The entity that shall have it.
    entity_id: EntityId,
    /// The feature.
    feature_id: NewFeatureId,
    /// The version.
    feature_version: FeatureVersion,
    /// Where it shall run.
    environment: Environment,
}

/// Asks for the removal of a feature of an entity.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct DeprovisionFeature {
    /// The platform.
    platform_id: PlatformId,
    /// The entity that has it.
    entity_id: EntityId,
    /// The feature.
    feature_id: FeatureId,
    /// Where it runs.
    environment: Environment,
    /// Remove its data as well: the databases, buckets, key-value namespaces and queues in the environment that the feature
    /// owns, because they were entered with its id as their service name while it was in use. Stores of the platform and of
    /// stacks stay.
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
) -> Result<Queued> {
    let body = input.body;
    let command = ActivateFeature {
        feature_id: body.feature_id,
        version: body.feature_version,
        environment: body.environment,
    };
    let asked = feature::activate(cx, &scope, uow, &body.entity_id, command).await?;
    let job = feature::job_of(&scope, uow, &asked.activation).await?;
    queued(uow, input.query, &job).await
}

async fn deactivate(
    cx: &Cx,
    scope: Writes,
    uow: &mut dyn UnitOfWork,
    input: Input<(), DryRunQuery, DeprovisionFeature>,
) -> Result<Queued> {
    let body = input.body;
    let command = DeactivateFeature {
        feature_id: body.feature_id,
        environment: body.environment,
    };
    let (entity, delete_data) = (&body.entity_id, body.delete_data);
    let asked = feature::deactivate_with(cx, &scope, uow, entity, command, delete_data).await?;
    let job = feature::job_of(&scope, uow, &asked.activation).await?;
    queued(uow, input.query, &job).await
}
