//! Deployment records: those of the command line's service, which its jobs move, and those that others enter and move.

use std::time::Duration;

use super::Upserted;
use crate::access::{
    Batches, PlatformAccess, PlatformScope, PlatformWriter, SystemScope, audited,
    ensure_room_unless_operator,
};
use crate::kernel::{
    Code, Context, DeploymentId, Error, JobId, Machine, Patch, Record, Result, Stored, grant,
};
use crate::port::UnitOfWork;
use crate::registry::{
    Branch, CreateDeployment, Deployment, DeploymentChange, DeploymentFilter, DeploymentQuery,
    DeploymentStatus,
};

/// How long a deployment may stay where it is: the provider has as long to serve one, and one that no job works on is not
/// waited for any longer.
pub(in crate::use_case) const STUCK_AFTER: Duration = Duration::from_secs(15 * 60);

/// What is known of a deployment that is about to be asked for.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::use_case) struct EarlierDeployments {
    /// The one with the same key.
    pub(in crate::use_case) with_key: Option<Stored<Deployment>>,
    /// One of the same branch that has not ended, and that a job works on or somebody moved within [`STUCK_AFTER`].
    pub(in crate::use_case) in_flight: Option<Stored<Deployment>>,
    /// The newest of the same branch with the same content, entered a short while ago.
    pub(in crate::use_case) same_content: Option<Stored<Deployment>>,
}

/// Looks for deployments that a new one could be a repetition of, or get in the way of.
pub(in crate::use_case) async fn earlier(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    branch: &Branch,
    key: Option<DeploymentQuery>,
    content_hash: &str,
    short_while: Duration,
) -> Result<EarlierDeployments> {
    let now = uow.now().await?;
    let with_key = match key {
        Some(key) => scope.records::<Deployment>(uow).first(&key).await?,
        None => None,
    };
    let same_content = DeploymentQuery::WithContent {
        branch: branch.clone(),
        content_hash: content_hash.to_owned(),
    };
    let same_content = scope
        .records::<Deployment>(uow)
        .first(&same_content)
        .await?;
    let in_flight = DeploymentQuery::InFlightOf {
        branch: branch.clone(),
        moved_since: now.minus(STUCK_AFTER),
    };
    Ok(EarlierDeployments {
        with_key,
        in_flight: scope.records::<Deployment>(uow).first(&in_flight).await?,
        same_content: same_content.filter(|d| d.created_at >= now.minus(short_while)),
    })
}

/// Maximum number of deployments of a platform that are compared by their key. Callers have keys of their own, and few choose the same.
const MAX_WITH_KEY: u32 = 100;

/// The newest deployments of a platform.
///
/// # Errors
/// When the store failed.
pub async fn list(
    scope: &PlatformScope<grant::DeploymentRead>,
    uow: &mut dyn UnitOfWork,
    filter: &DeploymentFilter,
) -> Result<Vec<Stored<Deployment>>> {
    let in_flight = filter.status.is_some();
    let query = match &filter.idempotency_key {
        Some(key) => DeploymentQuery::WithKey(key.clone()),
        None => DeploymentQuery::All { in_flight },
    };
    let deployments = scope.records::<Deployment>(uow);
    let mut found = deployments.list(&query, filter.limit).await?;
    found.retain(|deployment| !in_flight || !deployment.status.is_terminal());
    Ok(found)
}

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

/// Enters a deployment that something else than the suite makes, unless it was entered before.
///
/// # Errors
/// `IDEMPOTENCY_KEY_REUSED` when another deployment of the platform has the key; `LIMIT_REACHED`.
pub async fn enter(
    cx: &Context,
    scope: &PlatformScope<grant::DeploymentWrite>,
    uow: &mut dyn UnitOfWork,
    command: CreateDeployment,
) -> Result<Upserted<Deployment>> {
    let with_key = DeploymentQuery::WithKey(command.idempotency_key.to_string());
    let deployments = scope.records::<Deployment>(uow);
    let mut known = deployments.list(&with_key, MAX_WITH_KEY).await?;
    if let Some(at) = known.iter().position(|one| one.is_repeated_by(&command)) {
        return Ok(Upserted::existing(known.swap_remove(at)));
    }
    if !known.is_empty() {
        return Err(key_reused());
    }
    let now = uow.now().await?;
    let id = DeploymentId::generate(now, cx.entropy.as_ref());
    let deployment = Deployment::create(id, scope.id(), command, now);
    let stored = create(cx, scope.writer(), uow, deployment).await?;
    Ok(Upserted::new(stored))
}

/// Changes a deployment. A job that works on one that was ended here ends as well.
///
/// # Errors
/// `NOT_FOUND`; `INVALID_STATE` for one that has ended, and for a move backwards; `VERSION_CONFLICT`.
pub async fn update(
    cx: &Context,
    scope: &PlatformScope<grant::DeploymentWrite>,
    uow: &mut dyn UnitOfWork,
    deployment: &DeploymentId,
    change: &DeploymentChange,
) -> Result<Stored<Deployment>> {
    apply_change(cx, scope.writer(), uow, deployment, change).await
}

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
pub(in crate::use_case) async fn apply_change(
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
            apply_change(cx, scope, uow, &deployment.id, &called_off).await?;
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
