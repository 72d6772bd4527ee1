//! What the command line's service and its jobs do with deployment records.

use crate::access::{
    Batches, PlatformAccess, PlatformWriter, SystemScope, audited, ensure_room_unless_operator,
};
use crate::kernel::{
    Code, Context, DeploymentId, Error, JobId, Machine, Patch, Record, Result, Stored,
};
use crate::port::UnitOfWork;
use crate::registry::{Deployment, DeploymentChange, DeploymentQuery, DeploymentStatus};

/// Enters a deployment whose key no other of the same person was found to have. When one was faster, the unit runs again and
/// finds it.
///
/// # Errors
/// `LIMIT_REACHED`.
pub(in crate::use_case) async fn create(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    deployment: Deployment,
) -> Result<Stored<Deployment>> {
    let open = DeploymentQuery::All { in_flight: true };
    let deployments = scope.records::<Deployment>(uow);
    let limit = cx.limits.open_deployments_per_platform;
    let message =
        "As many deployments are in progress as there may be. Try again when one has ended.";
    ensure_room_unless_operator(cx, deployments, &open, limit, message).await?;
    let stored = audited::insert(cx, scope, uow, deployment, "deployment.created").await;
    stored.map_err(|error| match error {
        Error::Store(error) => error.conflict_as_retry().into(),
        error => error,
    })
}

/// The refusal of a key that belongs to another deployment of the platform.
pub(in crate::use_case) fn key_reused() -> Error {
    Error::refused(
        Code::IdempotencyKeyReused,
        "This idempotency key was used with another deployment.",
    )
}

/// Changes a deployment; a change that changes nothing leaves all as it is.
///
/// # Errors
/// `NOT_FOUND`; `INVALID_STATE` for one that has ended.
pub(in crate::use_case) async fn change(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    deployment: &DeploymentId,
    change: &DeploymentChange,
) -> Result<Stored<Deployment>> {
    let seen = scope.records::<Deployment>(uow).get(deployment).await?;
    let (next, event) = seen.after(change, uow.now().await?)?;
    let action = event.map_or("deployment.updated", |event| event.of_event().action);
    audited::replace(cx, scope, uow, &seen, next, action).await
}

/// Calls off every deployment of a platform that has not ended.
pub(in crate::use_case::registry) async fn cancel_all(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    why: &str,
) -> Result<()> {
    let called_off = DeploymentChange {
        status: Some(DeploymentStatus::Canceled),
        error_message: Patch::Set(why.to_owned()),
        ..DeploymentChange::default()
    };
    let open = DeploymentQuery::All { in_flight: true };
    let mut deployments = Batches::<Deployment>::of(open);
    while let Some(batch) = deployments.next(scope.records(uow)).await? {
        for deployment in batch {
            change(cx, scope, uow, &deployment.id, &called_off).await?;
        }
    }
    Ok(())
}

/// The deployment a job works on at the moment: the newest of those it worked on.
pub(in crate::use_case) async fn of_job(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    job: &JobId,
) -> Result<Option<Stored<Deployment>>> {
    let of_job = DeploymentQuery::OfJob(job.clone());
    scope.records::<Deployment>(uow).first(&of_job).await
}

/// A deployment of a platform, if there is one.
pub(in crate::use_case) async fn find(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    deployment: &DeploymentId,
) -> Result<Option<Stored<Deployment>>> {
    scope.records::<Deployment>(uow).find(deployment).await
}

/// A deployment, whoever's it is.
pub(in crate::use_case) async fn find_anywhere(
    scope: SystemScope,
    uow: &mut dyn UnitOfWork,
    deployment: &DeploymentId,
) -> Result<Option<Stored<Deployment>>> {
    scope.records::<Deployment>(uow).find(deployment).await
}

/// The refusal of a deployment that does not exist.
pub(in crate::use_case) const fn missing() -> Error {
    Error::NotFound(Deployment::KIND)
}
