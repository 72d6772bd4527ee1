//! The auth workers of platforms.

use core_domain::access::{OperatorScope, authorize};
use core_domain::kernel::{Code, JobId, PlatformId, Result};
use core_domain::port::UnitOfWork;
use core_domain::use_case::registry::auth::{self, UpgradeAuthCommand};
use schemars::JsonSchema;
use serde::Serialize;

use super::queued::{Queued, SUCCESS, queued_as};
use crate::kernel::{Cx, DryRunQuery, Endpoint, Input, post};

pub(super) fn rows() -> Vec<Endpoint> {
    vec![
        post("/api/v1/provision/auth/upgrade", "upgradeAuth")
            .summary("Queues the job that brings a platform's auth worker to the current version. With dryRun only tells what it would do.")
            .success(SUCCESS)
            .refuses(&[Code::NotFound, Code::InvalidState, Code::Conflict])
            .writes(upgrade),
    ]
}

/// An upgrade was queued.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct QueuedUpgrade {
    job_id: JobId,
    platform_id: PlatformId,
}

async fn upgrade(
    cx: &Cx,
    _: OperatorScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(), DryRunQuery, UpgradeAuthCommand>,
) -> Result<Queued<QueuedUpgrade>> {
    let scope = authorize(cx, uow, &input.body.platform_id).await?;
    let job = auth::upgrade(cx, &scope, uow).await?;
    let answer = QueuedUpgrade {
        job_id: job.id.clone(),
        platform_id: input.body.platform_id,
    };
    queued_as(uow, input.query, &job, answer).await
}
