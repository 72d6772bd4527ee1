//! The auth workers of platforms.

use schemars::JsonSchema;
use serde::Deserialize;

use super::jobs::{AuthTarget, UpgradeAuth};
use super::provision::record_queued;
use crate::access::PlatformScope;
use crate::kernel::{Code, Context, Environment, Error, PlatformId, Result, Stored, grant};
use crate::port::UnitOfWork;
use crate::provisioning::Job;
use crate::registry::{Resource, ResourceQuery};
use crate::use_case::provisioning::enqueue;

/// Asks for the current auth worker of a platform.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpgradeAuthCommand {
    /// The platform.
    pub platform_id: PlatformId,
}

/// Queues the job that brings a platform's auth worker to the current version, in every environment in which the platform
/// has resources; where there is none yet it is made. Its secrets stay.
///
/// # Errors
/// `CONFLICT` for a platform without resources.
pub async fn upgrade(
    cx: &Context,
    scope: &PlatformScope<grant::JobCreate>,
    uow: &mut dyn UnitOfWork,
) -> Result<Stored<Job>> {
    let mut environments = Vec::new();
    for environment in Environment::ALL {
        let there = ResourceQuery::InEnvironment(*environment);
        let first = scope.records::<Resource>(uow).first(&there).await?;
        environments.extend(first.map(|_| *environment));
    }
    if environments.is_empty() {
        let message = "The platform has resources in no environment.";
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
