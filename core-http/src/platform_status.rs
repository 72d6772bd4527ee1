//! `POST /internal/platform-status`: sets or lifts the suspension of a platform. Both IAM and provisioning have this
//! endpoint.

use core_domain::access::{ServiceScope, authorize};
use core_domain::kernel::{PlatformId, Result, permission};
use core_domain::port::UnitOfWork;
use core_domain::use_case::registry::platform::set_suspension;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kernel::{Cx, Endpoint, Input, Output, post};

/// Whether the callers of a platform are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum AccessStatus {
    /// Requests of the callers of the platform are refused with 451, and its jobs are held.
    Suspended,
    /// Requests of the callers of the platform are accepted, and its jobs run.
    Active,
}

/// A platform and its access status. The response repeats the request.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct PlatformAccessStatus {
    /// The id of the platform.
    platform_id: PlatformId,
    /// The access status to set.
    status: AccessStatus,
}

/// Returns the endpoint row, with the operation id of the service.
pub(crate) fn row(operation: &'static str) -> Endpoint {
    post("/internal/platform-status", operation)
        .summary("Suspends a platform, or lifts its suspension.")
        .description(
            "With `suspended`, the gateway refuses the callers of the platform with 451, its jobs \
             are held, and a job stops the serving of its hostnames. With `active`, all of this \
             is reversed. The `status` of the platform record does not change. A repeated call \
             with the same status has no further effect on callers and holds.",
        )
        .refuses(&[core_domain::kernel::Code::NotFound])
        .writes(set)
}

/// Sets the suspension flag that the gateway checks, and holds the jobs of the platform. Either both or neither happen.
async fn set(
    cx: &Cx,
    _: ServiceScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), PlatformAccessStatus>,
) -> Result<Output<PlatformAccessStatus>> {
    let command = input.body;
    let scope = authorize::<permission::PlatformManage>(cx, uow, &command.platform_id).await?;
    let suspended = command.status == AccessStatus::Suspended;
    set_suspension(cx, &scope, uow, suspended, None).await?;
    Ok(Output::new(command))
}
