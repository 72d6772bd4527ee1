//! Suspending a platform, as far as the other services are concerned.

use crate::kernel::{Context, PlatformId, Reason, Result};
use crate::port::UnitOfWork;
use crate::provisioning::{HoldScope, HoldSource, LaneKey};
use crate::use_case::{iam, provisioning};

/// Sets or lifts the flag the gateway obeys, and holds or releases the platform's jobs; the platform's own status stays
/// as it is. Counts from the commit on. The caller's right to do so is checked by whoever calls this.
///
/// # Errors
/// When the store failed.
pub async fn set_suspension(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
    suspended: bool,
    reason: Option<&Reason>,
) -> Result<()> {
    iam::set_platform_suspension(cx, uow, platform, suspended, reason.cloned()).await?;
    hold_lane(cx, uow, platform, suspended, reason).await
}

/// As [`set_suspension`], as a part of something that has an audit entry of its own.
pub(super) async fn follow_suspension(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
    suspended: bool,
    reason: Option<&Reason>,
) -> Result<()> {
    iam::flag_platform(uow, platform, suspended, reason.cloned()).await?;
    hold_lane(cx, uow, platform, suspended, reason).await
}

async fn hold_lane(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
    suspended: bool,
    reason: Option<&Reason>,
) -> Result<()> {
    let lane = HoldScope::Lane(LaneKey::platform(platform));
    if suspended {
        provisioning::hold(cx, uow, lane, HoldSource::Suspension, reason).await
    } else {
        provisioning::release_hold(uow, lane, HoldSource::Suspension).await
    }
}
