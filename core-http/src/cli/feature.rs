//! Endpoints for the features of a platform, which are those of its default tenant in production.

use core_domain::access::PlatformScope;
use core_domain::kernel::{Code, JsonText, PlatformId, Result, Timestamp, permission};
use core_domain::port::UnitOfWork;
use core_domain::registry::{FeatureActivation, FeatureId, FeatureStatus, FeatureVersion};
use core_domain::use_case::registry::feature;
use http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kernel::{Cx, Data, Endpoint, Input, Output, call_with_body, get, post};

const ALL: &str = "/api/v1/platforms/{platformId}/features";
const ACTIVATE: &str = "/api/v1/platforms/{platformId}/features/activate";
const DEACTIVATE: &str = "/api/v1/platforms/{platformId}/features/deactivate";

pub(super) fn rows() -> Vec<Endpoint> {
    vec![
        get(ALL, "listPlatformFeatures")
            .summary("Lists the features of a platform in production, ordered by id.")
            .description(
                "These are the features of the platform's default tenant. Inactive ones are \
                 included.",
            )
            .reads(list),
        post(ACTIVATE, "activatePlatformFeature")
            .summary("Activates a feature of a platform in production.")
            .description(
                "The feature belongs to the platform's default tenant. A job creates its worker, \
                 which gets the configuration as the module `config.js`. The response has status \
                 202 if a job was queued, and 200 if the feature is already active or pending in \
                 this version and with this configuration. For another version or configuration, \
                 deactivate it first.",
            )
            .success(&[StatusCode::ACCEPTED, StatusCode::OK])
            .refuses(&[Code::Conflict, Code::InvalidState, Code::LimitReached])
            .writes(call_with_body(feature::activate_on_platform).map(activation_response)),
        post(DEACTIVATE, "deactivatePlatformFeature")
            .summary("Deactivates a feature of a platform in production.")
            .description(
                "A job removes the worker of the feature; its data is kept. The response has \
                 status 202 if a job was queued, and 200 if the removal is already queued.",
            )
            .success(&[StatusCode::ACCEPTED, StatusCode::OK])
            .refuses(&[Code::NotFound, Code::InvalidState, Code::LimitReached])
            .writes(deactivate),
    ]
}

/// The request to deactivate a feature of a platform.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct DeactivatePlatformFeature {
    /// The id of the feature to deactivate.
    feature_id: FeatureId,
}

/// The status of a request to activate a feature.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum ActivationStatus {
    /// The feature is active, or a job activates it.
    Activated,
}

/// The response to the activation of a feature.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct PlatformActivationView {
    /// Always `activated`: the feature is active, or a job activates it.
    status: ActivationStatus,
    /// The id of the feature.
    feature_id: FeatureId,
    /// The version of the feature.
    version: FeatureVersion,
}

/// The status of a request to deactivate a feature.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum DeactivationStatus {
    /// A job removes the feature.
    Deactivated,
}

/// The response to the deactivation of a feature.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct PlatformDeactivationView {
    /// Always `deactivated`: a job removes the feature.
    status: DeactivationStatus,
    /// The id of the feature.
    feature_id: FeatureId,
}

/// A feature of a platform.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct PlatformFeatureView {
    /// The id of the feature.
    feature_id: FeatureId,
    /// The version of the feature that was requested last.
    version: FeatureVersion,
    /// The status of the feature.
    status: FeatureStatus,
    /// The configuration of the feature; `{}` if it was activated without one.
    config: JsonText,
    /// The URL at which the feature is served; `null` if it is unknown or the feature is not active.
    service_url: Option<String>,
    /// The time at which the feature last became active; `null` before.
    activated_at: Option<Timestamp>,
}

impl From<FeatureActivation> for PlatformFeatureView {
    fn from(feature: FeatureActivation) -> Self {
        Self {
            config: feature.effective_config(),
            feature_id: feature.feature_id,
            version: feature.feature_version,
            status: feature.status,
            service_url: feature.service_url,
            activated_at: feature.activated_at,
        }
    }
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
    scope: PlatformScope<permission::FeatureRead>,
    uow: &mut dyn UnitOfWork,
    _: Input<(PlatformId,)>,
) -> Result<Output<Data<PlatformFeatureView>>> {
    let features = feature::list_of_platform(&scope, uow).await?;
    let features = features
        .into_iter()
        .map(|feature| feature.into_inner().into());
    Ok(Output::new(Data {
        data: features.collect(),
    }))
}

/// Returns the response to an activation.
fn activation_response(asked: feature::Activation) -> Output<PlatformActivationView> {
    let activation = asked.activation.into_inner();
    let view = PlatformActivationView {
        status: ActivationStatus::Activated,
        feature_id: activation.feature_id,
        version: activation.feature_version,
    };
    Output::new(view).status(status(asked.queued))
}

async fn deactivate(
    cx: &Cx,
    scope: PlatformScope<permission::FeatureWrite>,
    uow: &mut dyn UnitOfWork,
    input: Input<(PlatformId,), (), DeactivatePlatformFeature>,
) -> Result<Output<PlatformDeactivationView>> {
    let feature = input.body.feature_id;
    let asked = feature::deactivate_on_platform(cx, &scope, uow, feature.clone()).await?;
    let view = PlatformDeactivationView {
        status: DeactivationStatus::Deactivated,
        feature_id: feature,
    };
    Ok(Output::new(view).status(status(asked.queued)))
}
