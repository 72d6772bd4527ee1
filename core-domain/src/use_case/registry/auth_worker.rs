//! Upgrades of the auth workers of platforms.

use schemars::JsonSchema;
use serde::Deserialize;

use super::jobs::{AuthTarget, UpgradeAuth};
use super::provision::record_queued;
use crate::access::PlatformScope;
use crate::kernel::{Code, Context, Environment, Error, PlatformId, Result, Stored, permission};
use crate::port::UnitOfWork;
use crate::provisioning::Job;
use crate::registry::{Resource, ResourceQuery};
use crate::use_case::provisioning::enqueue;

/// Upgrades the auth workers of a platform to the current version.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpgradeAuthCommand {
    /// The platform whose auth workers are upgraded.
    pub platform_id: PlatformId,
}

/// Queues the job that upgrades a platform's auth workers to the current version.
///
/// The job covers every environment in which the platform has resources. Where the worker is missing, the job creates
/// it. The secrets of the workers are kept.
///
/// # Errors
/// `CONFLICT` if the platform has no resources; `LIMIT_REACHED` if too many jobs of the platform are queued.
pub async fn upgrade(
    cx: &Context,
    scope: &PlatformScope<permission::JobCreate>,
    uow: &mut dyn UnitOfWork,
) -> Result<Stored<Job>> {
    let mut environments = Vec::new();
    for environment in Environment::ALL {
        let there = ResourceQuery::InEnvironment(*environment);
        let first = scope.records::<Resource>(uow).first(&there).await?;
        environments.extend(first.map(|_| *environment));
    }
    if environments.is_empty() {
        let message = "The platform has no resources in any environment.";
        return Err(Error::refused(Code::Conflict, message));
    }
    let target = AuthTarget {
        platform_id: scope.id().clone(),
        slug: scope.platform().slug.clone(),
        environments,
    };
    let job = enqueue::<UpgradeAuth>(cx, scope, uow, &target).await?;
    record_queued(cx, scope, uow, &job, "platform.auth_upgrade_queued").await?;
    Ok(job)
}
