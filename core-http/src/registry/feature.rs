//! Features of entities.

use core_domain::access::PlatformScope;
use core_domain::kernel::{
    Code, EntityId, FeatureActivationId, JobId, ListQuery, Page, PlatformId, Result, Stored, grant,
};
use core_domain::port::UnitOfWork;
use core_domain::registry::{
    ActivateFeature, DeactivateFeature, FeatureActivation, FeatureId, FeatureManifest,
    FeatureStatus,
};
use core_domain::use_case::registry::feature;
use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;

use super::in_environment::InEnvironment;
use crate::kernel::{Cx, Endpoint, Input, Output, Versioned, get, post};

const ALL: &str = "/api/v1/platforms/{platformId}/entities/{entityId}/features";
const ACTIVATE: &str = "/api/v1/platforms/{platformId}/entities/{entityId}/features/activate";
const DEACTIVATE: &str = "/api/v1/platforms/{platformId}/entities/{entityId}/features/deactivate";
const ONE: &str = "/api/v1/platforms/{platformId}/entities/{entityId}/features/{featureId}";
const MANIFEST: &str = "/api/v1/platforms/{platformId}/entities/{entityId}/manifest";

type Reads = PlatformScope<grant::FeatureRead>;
type Writes = PlatformScope<grant::FeatureWrite>;
type OfEntity = (PlatformId, EntityId);
type One = (PlatformId, EntityId, FeatureId);

pub(super) fn rows() -> Vec<Endpoint> {
    vec![
        get(ALL, "listFeatures")
            .summary("Lists an entity's features, newest first.")
            .reads(list),
        post(ACTIVATE, "activateFeature")
            .summary("Queues the job that makes a feature of an entity; 200 when it is active or on its way.")
            .success(&[StatusCode::ACCEPTED, StatusCode::OK])
            .refuses(&[Code::Conflict, Code::InvalidState, Code::LimitReached])
            .writes(activate),
        post(DEACTIVATE, "deactivateFeature")
            .summary("Queues the job that removes a feature of an entity; 200 when it is on its way.")
            .success(&[StatusCode::ACCEPTED, StatusCode::OK])
            .refuses(&[Code::InvalidState, Code::LimitReached])
            .writes(deactivate),
        get(ONE, "getFeature")
            .summary("Shows a feature of an entity in an environment.")
            .reads(show),
        get(MANIFEST, "getManifest")
            .summary("Shows the active features of an entity in an environment.")
            .reads(manifest),
    ]
}

/// A feature that was asked for.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ActivationView {
    activation_id: FeatureActivationId,
    feature_id: FeatureId,
    status: FeatureStatus,
    /// The job that makes it, or made it.
    provision_job_id: Option<JobId>,
    /// How long such a job takes: the median of the last 20 that completed.
    estimated_duration_seconds: i64,
}

/// A feature that is to be removed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct DeactivationView {
    feature_id: FeatureId,
    status: FeatureStatus,
}

const fn status(queued: bool) -> StatusCode {
    if queued {
        StatusCode::ACCEPTED
    } else {
        StatusCode::OK
    }
}

async fn list(
    _: &Cx,
    scope: Reads,
    uow: &mut dyn UnitOfWork,
    input: Input<OfEntity, ListQuery>,
) -> Result<Page<Stored<FeatureActivation>>> {
    feature::list(&scope, uow, &input.path.1, &input.query).await
}

async fn activate(
    cx: &Cx,
    scope: Writes,
    uow: &mut dyn UnitOfWork,
    input: Input<OfEntity, (), ActivateFeature>,
) -> Result<Output<ActivationView>> {
    let asked = feature::activate(cx, &scope, uow, &input.path.1, input.body).await?;
    let activation = asked.activation.into_inner();
    let view = ActivationView {
        activation_id: activation.id,
        feature_id: activation.feature_id,
        status: activation.status,
        provision_job_id: activation.provision_job_id,
        estimated_duration_seconds: asked.estimated_seconds,
    };
    Ok(Output::new(view).status(status(asked.queued)))
}

async fn deactivate(
    cx: &Cx,
    scope: Writes,
    uow: &mut dyn UnitOfWork,
    input: Input<OfEntity, (), DeactivateFeature>,
) -> Result<Output<DeactivationView>> {
    let asked = feature::deactivate(cx, &scope, uow, &input.path.1, input.body).await?;
    let view = DeactivationView {
        feature_id: asked.activation.feature_id.clone(),
        status: asked.activation.status,
    };
    Ok(Output::new(view).status(status(asked.queued)))
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
