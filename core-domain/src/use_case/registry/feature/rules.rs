//! What other use cases ask of features.

use serde_json::json;

use super::read::all;
use crate::access::PlatformAccess;
use crate::kernel::{Code, Error, Result, Stored};
use crate::port::UnitOfWork;
use crate::registry::{
    FeatureActivation, FeatureActivationQuery, FeatureStatus, Resource, ResourceType,
};

/// Refuses while a feature of the resource's entity that has not ended runs as the resource. Its deactivation removes both.
pub(in crate::use_case::registry) async fn ensure_none_runs_as(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    resource: &Resource,
) -> Result<()> {
    if resource.resource_type != ResourceType::Worker {
        return Ok(());
    }
    let features = with_worker(scope, uow, resource).await?;
    let runs_as = |feature: &FeatureActivation| feature.status != FeatureStatus::Inactive;
    match features.iter().find(|feature| runs_as(feature)) {
        None => Ok(()),
        Some(feature) => Err(Error::Refused {
            code: Code::Conflict,
            message: "A feature runs as this resource; deactivate it.".to_owned(),
            details: json!({ "featureId": feature.feature_id, "status": feature.status }),
        }),
    }
}

/// Whether the resource has the name of the worker of a feature of its entity.
pub(in crate::use_case::registry) async fn is_worker_of_entity(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    resource: &Resource,
) -> Result<bool> {
    Ok(!with_worker(scope, uow, resource).await?.is_empty())
}

/// The features of the resource's entity whose worker has the resource's name.
async fn with_worker(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    resource: &Resource,
) -> Result<Vec<Stored<FeatureActivation>>> {
    let in_environment = FeatureActivationQuery::ByFeature {
        entity_id: resource.entity_id.clone(),
        environment: resource.environment,
        active: false,
    };
    let mut features = all(scope, uow, in_environment).await?;
    let slug = &scope.platform().slug;
    features.retain(|feature| feature.worker_name(slug) == resource.cf_name.as_str());
    Ok(features)
}
