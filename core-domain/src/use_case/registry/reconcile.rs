//! Comparing what the registry knows of a platform with what the provider has.

use schemars::JsonSchema;
use serde::Deserialize;

use super::jobs::{Reconcile, Reconciliation};
use super::provision::record_queued;
use crate::access::{PlatformScope, ensure_not_deleted};
use crate::kernel::{Context, Environment, PlatformId, Result, Stored, grant};
use crate::port::UnitOfWork;
use crate::provisioning::Job;
use crate::use_case::provisioning::enqueue;

/// Asks what differs between registry and provider.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReconcileCommand {
    /// The platform.
    pub platform_id: PlatformId,
    /// In this environment; in all when it is not given.
    pub environment: Option<Environment>,
    /// Whether what differs is mended: what provisioning makes is made again or entered, other entries without an object
    /// become `failed`, and objects whose entries were deleted are removed.
    #[serde(default)]
    pub repair: bool,
    /// Whether a repair removes objects that hold data as well (`d1`, `r2`, `kv`, `queue`).
    #[serde(default)]
    pub delete_data: bool,
}

/// Queues the job that compares a platform's entries and domains with what the provider has, and reports the differences.
///
/// # Errors
/// `INVALID_STATE` for a deleted platform.
pub async fn reconcile(
    cx: &Context,
    scope: &PlatformScope<grant::PlatformManage>,
    uow: &mut dyn UnitOfWork,
    command: ReconcileCommand,
) -> Result<Stored<Job>> {
    ensure_not_deleted(scope.platform())?;
    let wanted = Reconciliation {
        platform_id: scope.id().clone(),
        slug: scope.platform().slug.clone(),
        environment: command.environment,
        repair: command.repair,
        delete_data: command.delete_data,
    };
    let job = enqueue::<Reconcile>(cx, scope, uow, &wanted).await?;
    record_queued(cx, scope, uow, &job, "platform.reconcile_queued").await?;
    Ok(job)
}
