//! The suspension flag of platforms.

use serde_json::json;

use crate::access::{
    AuditEvent, PlatformWriter, ServiceScope, audited, unaudited, unowned_records,
};
use crate::iam::{PlatformSuspension, SuspensionSource};
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

/// Returns the source of a suspension by this caller.
pub(in crate::use_case) fn source_of(cx: &Context) -> SuspensionSource {
    match cx.caller.is_operator() {
        true => SuspensionSource::Operator,
        false => SuspensionSource::Owner,
    }
}

/// Adds a source to the suspension flag as a part of an audited change, or removes the flag, with effect from the commit
/// on. Returns whether anything changed.
pub(in crate::use_case) async fn set_flag(
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    source: Option<SuspensionSource>,
    reason: Option<&Reason>,
) -> Result<bool> {
    let now = uow.now().await?;
    let flag = unowned_records::<PlatformSuspension>(uow)
        .find(scope.id())
        .await?;
    match (flag, source) {
        (None, Some(source)) => {
            let flag = PlatformSuspension {
                platform_id: scope.id().clone(),
                reason: reason.cloned(),
                by_owner: source == SuspensionSource::Owner,
                by_operator: source == SuspensionSource::Operator,
                by_billing: source == SuspensionSource::Billing,
                created_at: now,
            };
            unaudited::insert(uow, flag).await?;
        }
        (Some(flag), Some(source)) => {
            let mut next = flag.edit();
            next.add(source);
            let is_new = next != *flag && source != SuspensionSource::Owner;
            if is_new {
                unaudited::replace(uow, &flag, next).await?;
            }
            // The callers of the platform are already refused, so no effect is needed.
            return Ok(is_new);
        }
        (Some(flag), None) => unaudited::remove(uow, &flag).await?,
        (None, None) => return Ok(false),
    }
    let changed = Effect::PlatformAccessChanged(scope.id().clone());
    uow.effects().add(changed);
    Ok(true)
}

/// Removes billing from the sources of a suspension that has others. Returns whether it has others.
pub(in crate::use_case) async fn remove_billing(
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
) -> Result<bool> {
    let flag = unowned_records::<PlatformSuspension>(uow)
        .find(scope.id())
        .await?;
    let Some(flag) = flag.filter(|flag| flag.by_billing && (flag.by_owner || flag.by_operator))
    else {
        return Ok(false);
    };
    let mut next = flag.edit();
    next.by_billing = false;
    unaudited::replace(uow, &flag, next).await?;
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
    let source = suspended.then(|| source_of(cx));
    if !set_flag(scope, uow, source, reason).await? {
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
