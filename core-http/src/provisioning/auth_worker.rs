//! The endpoint that upgrades the auth workers of platforms.

use core_domain::access::{OperatorScope, authorize};
use core_domain::kernel::{Code, JobId, PlatformId, Result};
use core_domain::port::UnitOfWork;
use core_domain::use_case::registry::auth_worker::{self, UpgradeAuthCommand};
use schemars::JsonSchema;
use serde::Serialize;

use super::queued::{QueuedResponse, SUCCESS, queued_response_with};
use crate::kernel::{Cx, DryRunQuery, Endpoint, Input, post};

pub(super) fn rows() -> Vec<Endpoint> {
    vec![
        post("/api/v1/provision/auth/upgrade", "upgradeAuth")
            .summary("Upgrades the auth worker of a platform.")
            .description(
                "Queues a job that brings the auth worker to the current version, in every \
                 environment in which the platform has resources. A missing worker is created. \
                 Its secrets are kept. With `dryRun=true` nothing is queued, and the response has \
                 the plan of the job.",
            )
            .success(SUCCESS)
            .refuses(&[Code::NotFound, Code::InvalidState, Code::Conflict])
            .writes(upgrade),
    ]
}

/// The response to a queued upgrade.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct QueuedUpgrade {
    /// The id of the job that upgrades the worker.
    job_id: JobId,
    /// The id of the platform.
    platform_id: PlatformId,
}

async fn upgrade(
    cx: &Cx,
    _: OperatorScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(), DryRunQuery, UpgradeAuthCommand>,
) -> Result<QueuedResponse<QueuedUpgrade>> {
    let scope = authorize(cx, uow, &input.body.platform_id).await?;
    let job = auth_worker::upgrade(cx, &scope, uow).await?;
    let answer = QueuedUpgrade {
        job_id: job.id.clone(),
        platform_id: input.body.platform_id,
    };
    queued_response_with(uow, input.query, &job, answer).await
}
