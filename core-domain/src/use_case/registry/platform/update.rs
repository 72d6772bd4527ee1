//! Changing platforms.

use super::transition;
use crate::access::{PlatformScope, audited, ensure_not_deleted};
use crate::kernel::{Context, Error, Result, Stored, grant};
use crate::port::UnitOfWork;
use crate::registry::{Platform, UpdatePlatform};

/// Changes a platform. A status is set from any other one, and needs `platform:manage`.
///
/// # Errors
/// `FORBIDDEN` for a change of the tier by anybody but operators; `INVALID_STATE` for a platform that is deleted and
/// stays so; `SLUG_TAKEN` when a deleted one comes back and its slug belongs to another one by now; `VERSION_CONFLICT`.
pub async fn update(
    cx: &Context,
    scope: &PlatformScope<grant::PlatformUpdate>,
    uow: &mut dyn UnitOfWork,
    command: UpdatePlatform,
) -> Result<Stored<Platform>> {
    let seen = scope.platform();
    cx.check_if_match(seen)?;
    let mut next = seen.edit();
    if let Some(tier) = command.tier.filter(|tier| *tier != seen.tier) {
        if !cx.caller.is_operator() {
            return Err(Error::Forbidden);
        }
        next.tier = tier;
    }
    let wanted = command.status.map(|status| status.event());
    let event = wanted.filter(|(status, _)| *status != seen.status);
    command.apply_to(&mut next);
    let Some((_, event)) = event else {
        if next != **seen {
            ensure_not_deleted(seen)?;
        }
        return audited::replace(cx, scope, uow, seen, next, "platform.updated").await;
    };
    scope.also::<grant::PlatformManage>(cx, uow).await?;
    let now = uow.now().await?;
    let next = next.after(event, None, now)?;
    transition::store(cx, scope.writer(), uow, next, event, None).await
}
