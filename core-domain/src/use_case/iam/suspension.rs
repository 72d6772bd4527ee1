//! The suspension flag of platforms.

use serde_json::json;

use crate::access::{
    AuditEvent, PlatformWriter, ServiceScope, audited, unaudited, unowned_records,
};
use crate::iam::PlatformSuspension;
use crate::kernel::{Context, Effect, PlatformId, Reason, Result};
use crate::port::UnitOfWork;

/// Returns whether a platform is suspended. A platform that does not exist is not suspended.
///
/// # Errors
/// Only those of the store.
pub async fn is_suspended(
    _: &ServiceScope,
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
) -> Result<bool> {
    let flag = unowned_records::<PlatformSuspension>(uow)
        .find(platform)
        .await?;
    Ok(flag.is_some())
}

/// Sets or clears the suspension flag as a part of an audited change, with effect from the commit on. If an operator
/// sets the flag, only an operator can clear it. Returns whether anything changed.
pub(in crate::use_case) async fn set_flag(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    suspended: bool,
    reason: Option<&Reason>,
) -> Result<bool> {
    let now = uow.now().await?;
    let by_operator = cx.caller.is_operator();
    let flag = unowned_records::<PlatformSuspension>(uow)
        .find(scope.id())
        .await?;
    match (flag, suspended) {
        (None, true) => {
            let flag = PlatformSuspension {
                platform_id: scope.id().clone(),
                reason: reason.cloned(),
                by_operator,
                created_at: now,
            };
            unaudited::insert(uow, flag).await?;
        }
        (Some(flag), true) if by_operator && !flag.by_operator => {
            let mut next = flag.edit();
            next.by_operator = true;
            unaudited::replace(uow, &flag, next).await?;
            // The callers of the platform are already refused, so no effect is needed.
            return Ok(true);
        }
        (Some(flag), false) => unaudited::remove(uow, &flag).await?,
        (Some(_), true) | (None, false) => return Ok(false),
    }
    let changed = Effect::PlatformAccessChanged(scope.id().clone());
    uow.effects().add(changed);
    Ok(true)
}

/// Like [`set_flag`], with an audit entry of its own.
pub(in crate::use_case) async fn set_suspended(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    suspended: bool,
    reason: Option<&Reason>,
) -> Result<()> {
    if !set_flag(cx, scope, uow, suspended, reason).await? {
        return Ok(());
    }
    let action = if suspended {
        "platform_access.suspended"
    } else {
        "platform_access.restored"
    };
    let event = AuditEvent {
        platform_id: Some(scope.id().clone()),
        action,
        entity_id: scope.id().to_string(),
        details: Some(json!({ "suspended": suspended, "reason": reason })),
    };
    audited::record_event(cx, uow, event).await
}
