//! What every use case of resources asks.

use serde_json::Value;

use crate::access::PlatformAccess;
use crate::kernel::{Code, Error, JobId, Record, ResourceId, Result, StoreError, Stored};
use crate::port::UnitOfWork;
use crate::provisioning::Job;
use crate::registry::{Resource, ResourceStatus};
use crate::use_case::provisioning;

/// The largest free-form value, in bytes of JSON.
const MAX_CONFIG_BYTES: usize = 64 * 1024;

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

pub(super) fn check_config(config: &Value) -> Result<()> {
    if config.to_string().len() <= MAX_CONFIG_BYTES {
        return Ok(());
    }
    let message = format!("must have at most {MAX_CONFIG_BYTES} bytes");
    Err(Error::invalid("config", "too_long", message))
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
