//! Deployment records. The command line's service creates them; its jobs move them.

use std::time::Duration;

use crate::access::{PlatformAccess, PlatformScope, PlatformWriter, SystemScope, audited};
use crate::kernel::{
    Code, Context, DeploymentId, Error, JobId, Machine, Record, Result, StoreError, Stored, grant,
};
use crate::port::UnitOfWork;
use crate::registry::{Deployment, DeploymentChange, DeploymentQuery, DeploymentStatus};

/// How many rows are read at once.
const BATCH: u32 = 100;

/// A deployment of a platform.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn get(
    scope: &PlatformScope<grant::DeploymentRead>,
    uow: &mut dyn UnitOfWork,
    deployment: &DeploymentId,
) -> Result<Stored<Deployment>> {
    scope.records::<Deployment>(uow).get(deployment).await
}

/// Enters a deployment.
///
/// # Errors
/// `IDEMPOTENCY_KEY_REUSED` when another deployment of the platform has the key.
pub(in crate::use_case) async fn create(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    deployment: Deployment,
) -> Result<Stored<Deployment>> {
    let stored = audited::insert(cx, scope, uow, deployment, "deployment.created").await;
    stored.map_err(|error| match error {
        Error::Store(StoreError::Conflict {
            index: "idempotency_key",
            ..
        }) => key_reused(),
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
pub(super) async fn cancel_all(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    why: &str,
) -> Result<()> {
    let called_off = DeploymentChange {
        status: Some(DeploymentStatus::Canceled),
        error_message: Some(why.to_owned()),
        ..DeploymentChange::default()
    };
    let open = DeploymentQuery::All { in_flight: true };
    loop {
        let batch = scope.records::<Deployment>(uow).list(&open, BATCH).await?;
        if batch.is_empty() {
            return Ok(());
        }
        for deployment in batch {
            change(cx, scope, uow, &deployment.id, &called_off).await?;
        }
    }
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

/// What is known of a deployment that is about to be asked for.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::use_case) struct EarlierDeployments {
    /// The one with the same key.
    pub(in crate::use_case) with_key: Option<Stored<Deployment>>,
    /// One of the same branch that has not ended.
    pub(in crate::use_case) in_flight: Option<Stored<Deployment>>,
    /// The newest of the same branch with the same content, entered a short while ago.
    pub(in crate::use_case) same_content: Option<Stored<Deployment>>,
}

/// Looks for deployments that a new one could be a repetition of, or get in the way of.
pub(in crate::use_case) async fn earlier(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    branch: &str,
    key: Option<&str>,
    content_hash: &str,
    short_while: Duration,
) -> Result<EarlierDeployments> {
    let since = uow.now().await?.minus(short_while);
    let with_key = match key {
        Some(key) => {
            let query = DeploymentQuery::WithKey(key.to_owned());
            scope.records::<Deployment>(uow).first(&query).await?
        }
        None => None,
    };
    let same_content = DeploymentQuery::WithContent {
        branch: branch.to_owned(),
        content_hash: content_hash.to_owned(),
    };
    let same_content = scope
        .records::<Deployment>(uow)
        .first(&same_content)
        .await?;
    let in_flight = DeploymentQuery::InFlightOf(branch.to_owned());
    Ok(EarlierDeployments {
        with_key,
        in_flight: scope.records::<Deployment>(uow).first(&in_flight).await?,
        same_content: same_content.filter(|d| d.created_at >= since),
    })
}

/// The refusal of a deployment that does not exist.
pub(in crate::use_case) const fn missing() -> Error {
    Error::NotFound(Deployment::KIND)
}
