//! What every use case of resources asks.

use crate::access::PlatformAccess;
use crate::kernel::{Code, Error, JobId, Record, ResourceId, Result, StoreError, Stored};
use crate::port::UnitOfWork;
use crate::provisioning::Job;
use crate::registry::{Resource, ResourceStatus};
use crate::use_case::provisioning;
use crate::use_case::registry::{dns, feature};

/// A resource of the platform that is not deleted.
pub(in crate::use_case::registry) async fn not_deleted(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    resource: &ResourceId,
) -> Result<Stored<Resource>> {
    let found = scope.records::<Resource>(uow).get(resource).await?;
    if found.status == ResourceStatus::Deleted {
        return Err(Error::NotFound(Resource::KIND));
    }
    Ok(found)
}

/// Refuses the deletion of a resource that something of the platform needs.
pub(super) async fn ensure_not_needed(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    resource: &Resource,
) -> Result<()> {
    dns::ensure_none_leads_to(scope, uow, &resource.id).await?;
    feature::ensure_none_runs_as(scope, uow, resource).await
}

/// Refuses a job that is not one of the platform's.
pub(super) async fn check_job(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    job: Option<&JobId>,
) -> Result<()> {
    match job {
        Some(job) if !provisioning::belongs_to(scope, uow, job).await? => {
            Err(Error::NotFound(Job::KIND))
        }
        _ => Ok(()),
    }
}

/// What a write that could not be made means: that the name is taken, or that the store failed.
pub(super) fn name_conflict(error: Error) -> Error {
    match error {
        Error::Store(StoreError::Conflict { index: "name", .. }) => Error::refused(
            Code::Conflict,
            "A resource of this type has this name already in the provider account.",
        ),
        error => error,
    }
}
