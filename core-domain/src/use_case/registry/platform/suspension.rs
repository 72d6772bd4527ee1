//! Suspending a platform, as far as the other services are concerned.

use crate::access::{PlatformScope, PlatformWriter};
use crate::kernel::{Context, Reason, Result, grant};
use crate::port::UnitOfWork;
use crate::use_case::registry::jobs::queue_sync;
use crate::use_case::{iam, provisioning};

/// Sets or lifts the flag the gateway obeys, and holds or releases the platform's jobs; the platform's own status stays
/// as it is. Counts from the commit on; a job has its hostnames served or not served.
///
/// # Errors
/// When the store failed.
pub async fn set_suspension(
    cx: &Context,
    scope: &PlatformScope<grant::PlatformManage>,
    uow: &mut dyn UnitOfWork,
    suspended: bool,
    reason: Option<&Reason>,
) -> Result<()> {
    iam::suspension::set(cx, scope.writer(), uow, suspended, reason).await?;
    provisioning::follow_suspension(cx, scope.writer(), uow, suspended, reason).await?;
    queue_sync(cx, scope.writer(), uow).await
}

/// As [`set_suspension`], as a part of something that has an audit entry of its own.
pub(super) async fn follow(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    suspended: bool,
    reason: Option<&Reason>,
) -> Result<()> {
    iam::suspension::set_flag(cx, scope, uow, suspended, reason).await?;
    provisioning::follow_suspension(cx, scope, uow, suspended, reason).await
}
