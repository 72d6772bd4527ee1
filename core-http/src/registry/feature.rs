//! Endpoints for the features of entities.

use core_domain::access::PlatformScope;
use core_domain::kernel::{
    Code, EntityId, FeatureActivationId, JobId, PlatformId, Result, Stored, permission,
};
use core_domain::port::UnitOfWork;
use core_domain::registry::{FeatureActivation, FeatureId, FeatureManifest, FeatureStatus};
use core_domain::use_case::registry::feature;
use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;

use super::in_environment::InEnvironment;
use crate::kernel::{
    Cx, Endpoint, Input, Output, Versioned, call_with_id_and_body, call_with_id_and_query, get,
    post,
};

const ALL: &str = "/api/v1/platforms/{platformId}/entities/{entityId}/features";
const ACTIVATE: &str = "/api/v1/platforms/{platformId}/entities/{entityId}/features/activate";
const DEACTIVATE: &str = "/api/v1/platforms/{platformId}/entities/{entityId}/features/deactivate";
const ONE: &str = "/api/v1/platforms/{platformId}/entities/{entityId}/features/{featureId}";
const MANIFEST: &str = "/api/v1/platforms/{platformId}/entities/{entityId}/manifest";

type Reads = PlatformScope<permission::FeatureRead>;
type OfEntity = (PlatformId, EntityId);
type One = (PlatformId, EntityId, FeatureId);

pub(super) fn rows() -> Vec<Endpoint> {
    vec![
        get(ALL, "listFeatures")
            .summary("Lists the feature activations of an entity, newest first.")
            .description("The list covers all environments and includes inactive features.")
            .reads(call_with_id_and_query(feature::list)),
        post(ACTIVATE, "activateFeature")
            .summary("Activates a feature of an entity.")
            .description(
                "Queues a job that creates the feature in the environment, and returns 202. If \
                 the feature is active or pending in this version, no job is queued, and the \
                 response has status 200. A feature that is active in another version must be \
                 deactivated first.",
            )
            .success(&[StatusCode::ACCEPTED, StatusCode::OK])
            .refuses(&[Code::Conflict, Code::InvalidState, Code::LimitReached])
            .writes(call_with_id_and_body(feature::activate).map(activation_response)),
        post(DEACTIVATE, "deactivateFeature")
            .summary("Deactivates a feature of an entity.")
            .description(
                "Queues a job that removes the feature from the environment, and returns 202. The \
                 data of the feature is kept. If the removal is already queued, no further job is \
                 queued, and the response has status 200.",
            )
            .success(&[StatusCode::ACCEPTED, StatusCode::OK])
            .refuses(&[Code::InvalidState, Code::LimitReached])
            .writes(call_with_id_and_body(feature::deactivate).map(deactivation_response)),
        get(ONE, "getFeature")
            .summary("Returns a feature activation of an entity in an environment.")
            .description(
                "The query parameter `env` selects the environment. Default: `prod`. Inactive \
                 features are returned too.",
            )
            .reads(show),
        get(MANIFEST, "getManifest")
            .summary("Returns the active features of an entity in an environment.")
            .description(
                "The query parameter `env` selects the environment. Default: `prod`. The entity \
                 tag changes only if the set of features changes, so clients can poll with \
                 `If-None-Match`.",
            )
            .reads(manifest),
    ]
}

/// The response to the activation of a feature.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ActivationView {
    /// The id of the activation. It stays the same if the feature is activated again.
    activation_id: FeatureActivationId,
    /// The id of the feature.
    feature_id: FeatureId,
    /// The status of the feature after the request.
    status: FeatureStatus,
    /// The id of the job that creates the feature, or created it; `null` if there is none.
    provision_job_id: Option<JobId>,
    /// The expected duration of such a job, in seconds: the median of the last 20 that completed.
    estimated_duration_seconds: i64,
}

/// The response to the deactivation of a feature.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct DeactivationView {
    /// The id of the feature.
    feature_id: FeatureId,
    /// The status of the feature after the request.
    status: FeatureStatus,
}

const fn status(queued: bool) -> StatusCode {
    if queued {
        StatusCode::ACCEPTED
    } else {
        StatusCode::OK
    }
}

/// Returns the response to an activation.
fn activation_response(asked: feature::Activation) -> Output<ActivationView> {
    let activation = asked.activation.into_inner();
    let view = ActivationView {
        activation_id: activation.id,
        feature_id: activation.feature_id,
        status: activation.status,
        provision_job_id: activation.provision_job_id,
        estimated_duration_seconds: asked.estimated_seconds,
    };
    Output::new(view).status(status(asked.queued))
}

/// Returns the response to a deactivation.
fn deactivation_response(asked: feature::Deactivation) -> Output<DeactivationView> {
    let view = DeactivationView {
        feature_id: asked.activation.feature_id.clone(),
        status: asked.activation.status,
    };
    Output::new(view).status(status(asked.queued))
}

async fn show(
    _: &Cx,
    scope: Reads,
    uow: &mut dyn UnitOfWork,
    input: Input<One, InEnvironment>,
) -> Result<Stored<FeatureActivation>> {
    let (_, entity, wanted) = input.path;
    feature::get(&scope, uow, &entity, &wanted, input.query.env).await
}

async fn manifest(
    _: &Cx,
    scope: Reads,
    uow: &mut dyn UnitOfWork,
    input: Input<OfEntity, InEnvironment>,
) -> Result<Versioned<FeatureManifest>> {
    let manifest = feature::manifest(&scope, uow, &input.path.1, input.query.env).await?;
    let etag = manifest.digest();
    Ok(Output::new(manifest).etag(etag))
}
