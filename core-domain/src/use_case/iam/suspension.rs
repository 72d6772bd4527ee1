//! The suspension flag of platforms.

use serde_json::json;

use crate::iam::PlatformSuspension;
use crate::kernel::{Context, PlatformId, Reason, Result};
use crate::port::UnitOfWork;
use crate::shared::{Happening, audited};

/// Tells whether the platform is suspended.
///
/// # Errors
/// When the store failed.
pub async fn platform_is_suspended(
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
) -> Result<bool> {
    let flag = uow.platform_suspensions().get(platform.as_str()).await?;
    Ok(flag.is_some())
}

/// Sets or lifts the flag; it counts from the next request on. Setting what is set already changes nothing. The caller's
/// right to do so is checked by whoever calls this: it is part of suspending a platform.
///
/// # Errors
/// When the store failed.
pub async fn set_platform_suspension(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
    suspended: bool,
    reason: Option<Reason>,
) -> Result<()> {
    if !flag_platform(uow, platform, suspended, reason.clone()).await? {
        return Ok(());
    }
    let action = if suspended {
        "platform_access.suspended"
    } else {
        "platform_access.restored"
    };
    let happening = Happening {
        platform_id: Some(platform.clone()),
        action,
        entity_id: platform.to_string(),
        after: Some(json!({ "suspended": suspended, "reason": reason })),
        ..Happening::default()
    };
    audited(cx, uow, happening).await
}

/// As [`set_platform_suspension`], as a part of something that has an audit entry of its own. Tells whether the flag
/// changed.
///
/// # Errors
/// When the store failed.
pub async fn flag_platform(
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
    suspended: bool,
    reason: Option<Reason>,
) -> Result<bool> {
    let now = uow.now().await?;
    let flag = uow.platform_suspensions().get(platform.as_str()).await?;
    match (flag, suspended) {
        (None, true) => {
            let flag = PlatformSuspension {
                platform_id: platform.clone(),
                reason,
                created_at: now,
            };
            uow.platform_suspensions().insert(flag).await?;
        }
        (Some(flag), false) => uow.platform_suspensions().remove(&flag).await?,
        (Some(_), true) | (None, false) => return Ok(false),
    }
    Ok(true)
}
