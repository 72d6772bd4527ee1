//! `POST /internal/platform-status`: the suspension of a platform, set from outside. IAM and provisioning both answer it.

use core_domain::access::{ServiceScope, authorize};
use core_domain::kernel::{PlatformId, Result, grant};
use core_domain::port::UnitOfWork;
use core_domain::use_case::registry::platform::set_suspension;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kernel::{Cx, Endpoint, Input, Output, post};

/// Whether the callers of a platform are let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum AccessStatus {
    /// They are not.
    Suspended,
    /// They are.
    Active,
}

/// A platform and its status, as wanted and as answered.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct PlatformAccessStatus {
    platform_id: PlatformId,
    status: AccessStatus,
}

/// The row, under the operation id of the service.
pub(crate) fn row(operation: &'static str) -> Endpoint {
    post("/internal/platform-status", operation)
        .summary(
            "Suspends a platform, or lifts the suspension: callers are refused and its jobs held.",
        )
        .refuses(&[core_domain::kernel::Code::NotFound])
        .writes(set)
}

/// Sets the flag the gateway obeys, and holds the platform's jobs; both or neither.
async fn set(
    cx: &Cx,
    _: ServiceScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), PlatformAccessStatus>,
) -> Result<Output<PlatformAccessStatus>> {
    let wanted = input.body;
    let scope = authorize::<grant::PlatformManage>(cx, uow, &wanted.platform_id).await?;
    let suspended = wanted.status == AccessStatus::Suspended;
    set_suspension(cx, &scope, uow, suspended, None).await?;
    Ok(Output::new(wanted))
}
