//! `POST /internal/platform-status`: the suspension of a platform, as another service sets it.

use core_domain::kernel::{PlatformId, Result};
use core_domain::port::UnitOfWork;
use core_domain::use_case::registry::set_suspension;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kernel::{Cx, Input, Output};

/// Whether a platform is suspended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Status {
    Suspended,
    Active,
}

/// Body of `POST /internal/platform-status`, and its answer.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PlatformStatus {
    platform_id: PlatformId,
    status: Status,
}

/// Sets the flag the gateway obeys, and holds the platform's jobs; both or neither.
pub(super) async fn set(
    cx: &Cx,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), PlatformStatus>,
) -> Result<Output<PlatformStatus>> {
    let suspended = input.body.status == Status::Suspended;
    set_suspension(cx, uow, &input.body.platform_id, suspended, None).await?;
    Ok(Output::new(input.body))
}
