//! Comparing the registry records of a platform with the provider.

use schemars::JsonSchema;
use serde::Deserialize;

use super::jobs::{Reconcile, Reconciliation};
use super::provision::record_queued;
use crate::access::{PlatformScope, ensure_not_deleted};
use crate::kernel::{Context, Environment, PlatformId, Result, Stored, permission};
use crate::port::UnitOfWork;
use crate::provisioning::Job;
use crate::use_case::provisioning::enqueue;

/// Compares the registry records of a platform with the objects at the provider.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReconcileCommand {
    /// The platform that is compared.
    pub platform_id: PlatformId,
    /// The environment to compare; `null` compares all environments. Default: `null`.
    pub environment: Option<Environment>,
    /// Whether the differences are repaired. Missing default resources are created again or recorded. Other resources
    /// without an object become `failed`. Objects whose resource was deleted are removed. Default: `false`, which only
    /// reports.
    #[serde(default)]
    pub repair: bool,
    /// Whether a repair may also remove objects that store data (`d1`, `r2`, `kv`, `queue`). Default: `false`.
    #[serde(default)]
    pub delete_data: bool,
}

/// Queues the job that compares a platform's resources, DNS records and custom domains with the provider and reports
/// the differences.
///
/// # Errors
/// `INVALID_STATE` if the platform is deleted; `LIMIT_REACHED` if too many jobs of the platform are queued.
pub async fn reconcile(
    cx: &Context,
    scope: &PlatformScope<permission::PlatformManage>,
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
