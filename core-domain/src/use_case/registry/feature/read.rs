//! Finding features.

use crate::access::{Batches, PlatformAccess, PlatformScope, SystemScope};
use crate::kernel::{EntityId, Environment, Error, ListQuery, Page, Record, Result, Stored, grant};
use crate::port::UnitOfWork;
use crate::provisioning::Job;
use crate::registry::{
    FeatureActivation, FeatureActivationQuery, FeatureId, FeatureManifest, ManifestFeature,
};
use crate::use_case::provisioning;
use crate::use_case::registry::entity;

type Reads = PlatformScope<grant::FeatureRead>;

/// The features of an entity, newest first; inactive ones too.
///
/// # Errors
/// `NOT_FOUND` for an unknown entity; `INVALID_CURSOR`.
pub async fn list(
    scope: &Reads,
    uow: &mut dyn UnitOfWork,
    entity: &EntityId,
    query: &ListQuery,
) -> Result<Page<Stored<FeatureActivation>>> {
    entity::not_deleted(scope, uow, entity).await?;
    let of_entity = FeatureActivationQuery::OfEntity {
        entity_id: entity.clone(),
        in_use: false,
    };
    let features = scope.records::<FeatureActivation>(uow);
    features.page(&of_entity, &query.page()).await
}

/// A feature of an entity in an environment.
///
/// # Errors
/// `NOT_FOUND` for an unknown entity, and for a feature it never had there.
pub async fn get(
    scope: &Reads,
    uow: &mut dyn UnitOfWork,
    entity: &EntityId,
    feature: &FeatureId,
    environment: Environment,
) -> Result<Stored<FeatureActivation>> {
    entity::not_deleted(scope, uow, entity).await?;
    let found = find(scope, uow, entity, feature, environment).await?;
    found.ok_or(Error::NotFound(FeatureActivation::KIND))
}

/// A feature of an entity in an environment, if it ever had it there.
pub(in crate::use_case::registry) async fn find(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    entity: &EntityId,
    feature: &FeatureId,
    environment: Environment,
) -> Result<Option<Stored<FeatureActivation>>> {
    let exactly = FeatureActivationQuery::Exactly {
        entity_id: entity.clone(),
        environment,
        feature_id: feature.clone(),
    };
    let features = scope.records::<FeatureActivation>(uow);
    features.first(&exactly).await
}

/// Returns all features that answer the query, in the query's order. A limit keeps those of an entity few.
pub(super) async fn all(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    query: FeatureActivationQuery,
) -> Result<Vec<Stored<FeatureActivation>>> {
    let mut batches = Batches::<FeatureActivation>::of(query);
    let mut features = Vec::new();
    while let Some(batch) = batches.next(scope.records(uow)).await? {
        features.extend(batch);
    }
    Ok(features)
}

/// What an entity runs with in an environment.
///
/// # Errors
/// `NOT_FOUND` for an unknown entity.
pub async fn manifest(
    scope: &Reads,
    uow: &mut dyn UnitOfWork,
    entity: &EntityId,
    environment: Environment,
) -> Result<FeatureManifest> {
    entity::not_deleted(scope, uow, entity).await?;
    let active = FeatureActivationQuery::ByFeature {
        entity_id: entity.clone(),
        environment,
        active: true,
    };
    let features = all(scope, uow, active).await?;
    Ok(FeatureManifest {
        platform_id: scope.id().clone(),
        entity_id: entity.clone(),
        environment,
        generated_at: uow.now().await?,
        features: features
            .iter()
            .map(|f| ManifestFeature::from(&**f))
            .collect(),
    })
}

/// The job that moves a feature, or moved it last.
///
/// # Errors
/// `NOT_FOUND` when there is none, because the feature ended with its place.
pub async fn job_of(
    _: &PlatformScope<grant::FeatureWrite>,
    uow: &mut dyn UnitOfWork,
    feature: &FeatureActivation,
) -> Result<Stored<Job>> {
    let job = feature.provision_job_id.as_ref();
    let job = job.ok_or(Error::NotFound(Job::KIND))?;
    let found = provisioning::find(SystemScope::new(), uow, job).await?;
    found.ok_or(Error::NotFound(Job::KIND))
}
