//! Deployment records: those that the jobs of the command line service update, and those that external systems create
//! and update.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::Upserted;
use crate::access::{
    Batches, PlatformAccess, PlatformScope, PlatformWriter, SystemScope, audited,
    ensure_room_unless_operator,
};
use crate::kernel::{
    Code, Context, DeploymentId, Error, JobId, ListQuery, Machine, Page, Patch, Record, Result,
    Stored, permission,
};
use crate::port::UnitOfWork;
use crate::registry::{
    Branch, CreateDeployment, Deployment, DeploymentChange, DeploymentFilter, DeploymentQuery,
    DeploymentStatus, PRODUCTION,
};

/// Maximum time that a deployment can stay in one status: 15 minutes. The provider has the same time to serve it. After
/// that, a deployment without a job no longer blocks others.
pub(in crate::use_case) const STUCK_AFTER: Duration = Duration::from_secs(15 * 60);

/// Existing deployments that affect whether a new one is created.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::use_case) struct EarlierDeployments {
    /// The deployment with the same idempotency key.
    pub(in crate::use_case) with_key: Option<Stored<Deployment>>,
    /// An unfinished deployment of the same branch that has a job, or that changed within [`STUCK_AFTER`].
    pub(in crate::use_case) in_flight: Option<Stored<Deployment>>,
    /// The newest deployment of the same branch with the same content, if it was created within `short_while` and is
    /// live or has not ended.
    pub(in crate::use_case) same_content: Option<Stored<Deployment>>,
}

/// Finds deployments that a new one would repeat or conflict with.
pub(in crate::use_case) async fn find_earlier(
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
    let live = live(scope, uow, branch).await?;
    // The content of a deployment that another one has replaced can be deployed again at once.
    let is_current = |found: &Stored<Deployment>| {
        !found.status.is_terminal() || live.as_ref().is_some_and(|live| live.id == found.id)
    };
    let same_content = same_content.filter(is_current);
    Ok(EarlierDeployments {
        with_key,
        in_flight: in_flight_of(scope, uow, branch).await?,
        same_content: same_content.filter(|d| d.created_at >= now.minus(short_while)),
    })
}

/// Returns an unfinished deployment of a branch that has a job, or that changed within [`STUCK_AFTER`].
pub(in crate::use_case) async fn in_flight_of(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    branch: &Branch,
) -> Result<Option<Stored<Deployment>>> {
    let in_flight = DeploymentQuery::InFlightOf {
        branch: branch.clone(),
        changed_since: uow.now().await?.minus(STUCK_AFTER),
    };
    scope.records::<Deployment>(uow).first(&in_flight).await
}

/// Returns the live deployment of a branch: the newest active one. `None` if no deployment of the branch was active.
pub(in crate::use_case) async fn live(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    branch: &Branch,
) -> Result<Option<Stored<Deployment>>> {
    let active = DeploymentQuery::ActiveOf(branch.clone());
    scope.records::<Deployment>(uow).first(&active).await
}

/// Refuses a deployment of `production` while another one is pinned.
///
/// # Errors
/// `CONFLICT` if a deployment is pinned and the branch is `production`.
pub(in crate::use_case) async fn ensure_not_pinned(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    branch: &Branch,
) -> Result<()> {
    if branch.as_str() != PRODUCTION {
        return Ok(());
    }
    let deployments = scope.records::<Deployment>(uow);
    match deployments.first(&DeploymentQuery::Pinned).await? {
        None => Ok(()),
        Some(pinned) => Err(Error::Refused {
            code: Code::Conflict,
            message: "The live deployment is pinned. Unpin it before you deploy to production."
                .to_owned(),
            details: json!({ "pinnedDeploymentId": pinned.id }),
        }),
    }
}

/// Maximum number of deployments of a platform that are compared by their key. Different callers rarely choose the same
/// key.
const MAX_WITH_KEY: u32 = 100;

/// Lists the newest deployments of a platform.
///
/// # Errors
/// Only those of the store.
pub async fn list(
    scope: &PlatformScope<permission::DeploymentRead>,
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

/// Returns a deployment of a platform.
///
/// # Errors
/// `NOT_FOUND` if the platform has no such deployment.
pub async fn get(
    scope: &PlatformScope<permission::DeploymentRead>,
    uow: &mut dyn UnitOfWork,
    deployment: &DeploymentId,
) -> Result<Stored<Deployment>> {
    scope.records::<Deployment>(uow).get(deployment).await
}

/// The filter of the list of deployments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct DeploymentListFilter {
    /// Returns only deployments of this branch.
    pub branch: Option<Branch>,
    /// Returns only deployments with this status.
    pub status: Option<DeploymentStatus>,
}

/// A deployment with its place among the others of its branch.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedDeployment {
    /// The record of the deployment.
    pub deployment: Stored<Deployment>,
    /// Whether the deployment is the newest active one of its branch, which visitors see.
    pub is_live: bool,
}

/// Lists the deployments of a platform, newest first.
///
/// # Errors
/// `INVALID_CURSOR` if the cursor does not belong to this list.
pub async fn page(
    scope: &PlatformScope<permission::DeploymentRead>,
    uow: &mut dyn UnitOfWork,
    query: &ListQuery<DeploymentListFilter>,
) -> Result<Page<ListedDeployment>> {
    let wanted = DeploymentQuery::Listed {
        branch: query.filter.branch.clone(),
        status: query.filter.status,
    };
    let deployments = scope.records::<Deployment>(uow);
    let page = deployments.page(&wanted, &query.uncounted_page()).await?;
    let mut live_ids: BTreeMap<Branch, Option<DeploymentId>> = BTreeMap::new();
    for found in &page.items {
        if found.status == DeploymentStatus::Active && !live_ids.contains_key(&found.branch) {
            let newest = live(scope, uow, &found.branch).await?;
            live_ids.insert(found.branch.clone(), newest.map(|newest| newest.id.clone()));
        }
    }
    Ok(page.map(|found| ListedDeployment {
        is_live: live_ids
            .get(&found.branch)
            .is_some_and(|id| id.as_ref() == Some(&found.id)),
        deployment: found,
    }))
}

/// Pins the live deployment of `production`: it stays live until it is unpinned. Does nothing if it is pinned.
///
/// # Errors
/// - `NOT_FOUND` if the platform has no such deployment.
/// - `INVALID_STATE` if the deployment is not the live one of `production`.
/// - `CONFLICT` while another deployment of `production` is in progress.
pub async fn pin(
    cx: &Context,
    scope: &PlatformScope<permission::DeploymentCreate>,
    uow: &mut dyn UnitOfWork,
    id: &DeploymentId,
) -> Result<ListedDeployment> {
    let seen = scope.records::<Deployment>(uow).get(id).await?;
    let production = Branch::production();
    let live = live(scope, uow, &production).await?;
    if live.is_none_or(|live| live.id != seen.id) {
        return Err(Error::refused(
            Code::InvalidState,
            "Only the live deployment of production can be pinned. Roll back to this deployment first.",
        ));
    }
    ensure_none_in_flight(scope, uow, &production).await?;
    let mut next = seen.edit();
    if next.pinned_at.is_none() {
        next.pinned_at = Some(uow.now().await?);
    }
    let deployment =
        audited::replace(cx, scope.writer(), uow, &seen, next, "deployment.pinned").await?;
    Ok(ListedDeployment {
        deployment,
        is_live: true,
    })
}

/// Unpins a deployment. Does nothing if it is not pinned.
///
/// # Errors
/// `NOT_FOUND` if the platform has no such deployment.
pub async fn unpin(
    cx: &Context,
    scope: &PlatformScope<permission::DeploymentCreate>,
    uow: &mut dyn UnitOfWork,
    id: &DeploymentId,
) -> Result<ListedDeployment> {
    let seen = scope.records::<Deployment>(uow).get(id).await?;
    let mut next = seen.edit();
    next.pinned_at = None;
    let action = "deployment.unpinned";
    let deployment = audited::replace(cx, scope.writer(), uow, &seen, next, action).await?;
    let live = live(scope, uow, &deployment.branch).await?;
    Ok(ListedDeployment {
        is_live: live.is_some_and(|live| live.id == deployment.id),
        deployment,
    })
}

/// Refuses a new deployment of a branch while another one has not ended.
///
/// # Errors
/// `CONFLICT` with the unfinished deployment.
pub(in crate::use_case) async fn ensure_none_in_flight(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    branch: &Branch,
) -> Result<()> {
    match in_flight_of(scope, uow, branch).await? {
        None => Ok(()),
        Some(other) => Err(in_flight_conflict(&other)),
    }
}

/// Returns the error for a branch that has an unfinished deployment.
pub(in crate::use_case) fn in_flight_conflict(other: &Deployment) -> Error {
    Error::Refused {
        code: Code::Conflict,
        message: "Another deployment of this branch has not ended yet.".to_owned(),
        details: json!({ "deploymentId": other.id, "status": other.status }),
    }
}

/// Creates the record of a deployment that an external system performs. Returns the existing record if the same command
/// created it before.
///
/// # Errors
/// `IDEMPOTENCY_KEY_REUSED` if another deployment of the platform has the key; `CONFLICT` if the deployment is for
/// `production` and another one is pinned; `LIMIT_REACHED` if the platform has its maximum number of deployments in
/// progress.
pub async fn create_external(
    cx: &Context,
    scope: &PlatformScope<permission::DeploymentWrite>,
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

/// Updates a deployment. If the update ends it, the job that works on it ends too.
///
/// # Errors
/// `NOT_FOUND` if the deployment does not exist; `INVALID_STATE` if it has ended, or if the status would move
/// backwards; `VERSION_CONFLICT` if `If-Match` does not match.
pub async fn update(
    cx: &Context,
    scope: &PlatformScope<permission::DeploymentWrite>,
    uow: &mut dyn UnitOfWork,
    deployment: &DeploymentId,
    change: &DeploymentChange,
) -> Result<Stored<Deployment>> {
    apply_change(cx, scope.writer(), uow, deployment, change).await
}

/// Creates a deployment record after the caller found no other with its key. If a concurrent call created one, the unit
/// of work is retried and finds it.
///
/// # Errors
/// `CONFLICT` if the deployment is for `production` and another one is pinned; `LIMIT_REACHED` if the platform has its
/// maximum number of deployments in progress.
pub(in crate::use_case) async fn create(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    deployment: Deployment,
) -> Result<Stored<Deployment>> {
    ensure_not_pinned(scope, uow, &deployment.branch).await?;
    let open = DeploymentQuery::All { in_flight: true };
    let deployments = scope.records::<Deployment>(uow);
    let limit = cx.limits.open_deployments_per_platform;
    let message =
        "The maximum number of deployments is in progress. Try again after one of them has ended.";
    ensure_room_unless_operator(cx, deployments, &open, limit, message).await?;
    let stored = audited::insert(cx, scope, uow, deployment, "deployment.created").await;
    stored.map_err(|error| match error {
        Error::Store(error) => error.conflict_as_retry().into(),
        error => error,
    })
}

/// Returns the error for an idempotency key of another deployment of the platform.
pub(in crate::use_case) fn key_reused() -> Error {
    Error::refused(
        Code::IdempotencyKeyReused,
        "This idempotency key was used with another deployment.",
    )
}

/// Applies a change to a deployment. Writes nothing if the change has no effect.
///
/// # Errors
/// `NOT_FOUND` if the deployment does not exist; `INVALID_STATE` if it has ended.
pub(in crate::use_case) async fn apply_change(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    deployment: &DeploymentId,
    change: &DeploymentChange,
) -> Result<Stored<Deployment>> {
    let seen = scope.records::<Deployment>(uow).get(deployment).await?;
    let (next, event) = seen.after(change, uow.now().await?)?;
    let action = event.map_or("deployment.updated", |event| event.transition().action);
    audited::replace(cx, scope, uow, &seen, next, action).await
}

/// Cancels every unfinished deployment of a platform. `why` becomes the error message of the deployments.
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

/// Maximum number of stuck deployments that one call ends.
const MAX_STUCK: u32 = 100;

/// Ends deployments that an external system performs and has not updated for 15 minutes: they fail with the message
/// `TIMEOUT`. Returns their number; call it again if it is 100. Deployments with a job have a timeout of their own.
///
/// # Errors
/// Only those of the store.
pub async fn fail_stuck(cx: &Context, uow: &mut dyn UnitOfWork) -> Result<usize> {
    let stuck = DeploymentQuery::Stuck {
        unchanged_since: uow.now().await?.minus(STUCK_AFTER),
    };
    let stuck = SystemScope::new()
        .records::<Deployment>(uow)
        .list(&stuck, MAX_STUCK)
        .await?;
    let failed = DeploymentChange {
        status: Some(DeploymentStatus::Failure),
        error_message: Patch::Set(
            "TIMEOUT: the deployment was not updated for 15 minutes".to_owned(),
        ),
        ..DeploymentChange::default()
    };
    for deployment in &stuck {
        let platform = SystemScope::new()
            .platform(uow, &deployment.platform_id)
            .await?;
        if let Some(platform) = platform {
            apply_change(cx, &platform, uow, &deployment.id, &failed).await?;
        }
    }
    Ok(stuck.len())
}

/// Returns the newest deployment of a job, which is the one that it works on.
pub(in crate::use_case) async fn of_job(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    job: &JobId,
) -> Result<Option<Stored<Deployment>>> {
    let of_job = DeploymentQuery::OfJob(job.clone());
    scope.records::<Deployment>(uow).first(&of_job).await
}

/// Returns a deployment of a platform; `None` if it does not exist.
pub(in crate::use_case) async fn find(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    deployment: &DeploymentId,
) -> Result<Option<Stored<Deployment>>> {
    scope.records::<Deployment>(uow).find(deployment).await
}

/// Returns a deployment of any platform; `None` if it does not exist.
pub(in crate::use_case) async fn find_anywhere(
    scope: SystemScope,
    uow: &mut dyn UnitOfWork,
    deployment: &DeploymentId,
) -> Result<Option<Stored<Deployment>>> {
    scope.records::<Deployment>(uow).find(deployment).await
}

/// Returns the `NOT_FOUND` error of a deployment.
pub(in crate::use_case) const fn missing() -> Error {
    Error::NotFound(Deployment::KIND)
}
