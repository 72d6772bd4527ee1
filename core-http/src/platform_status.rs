//! `POST /internal/platform-status`: the suspension of a platform, set from outside. IAM and provisioning both answer it.

use core_domain::kernel::{PlatformId, Result};
use core_domain::port::UnitOfWork;
use core_domain::use_case::registry::set_suspension;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kernel::{Cx, Input, Output};

/// Whether the callers of a platform are let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Status {
    /// They are not.
    Suspended,
    /// They are.
    Active,
}

/// A platform and its status, as wanted and as answered.
#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PlatformStatus {
    platform_id: PlatformId,
    status: Status,
}

/// Sets the flag the gateway obeys, and holds the platform's jobs; both or neither.
pub(crate) async fn set(
    cx: &Cx,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), PlatformStatus>,
) -> Result<Output<PlatformStatus>> {
    let wanted = input.body;
    let suspended = wanted.status == Status::Suspended;
    set_suspension(cx, uow, &wanted.platform_id, suspended, None).await?;
    Ok(Output::new(wanted))
}
