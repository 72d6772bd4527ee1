//! What every use case of custom domains asks, and the one way to move one.

use crate::access::{PlatformAccess, PlatformWriter, audited};
use crate::kernel::{Context, CustomDomainId, Error, Record, Result, StoreError, Stored};
use crate::port::UnitOfWork;
use crate::registry::{CustomDomain, CustomDomainStatus};
use crate::use_case::registry::hostname::{Claim, is_custom_domain};
use crate::use_case::registry::hostname_loss::take;

/// A custom domain of the platform that is not deleted.
pub(super) async fn not_deleted(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    domain: &CustomDomainId,
) -> Result<Stored<CustomDomain>> {
    let found = scope.records::<CustomDomain>(uow).get(domain).await?;
    if found.status == CustomDomainStatus::Deleted {
        return Err(Error::NotFound(CustomDomain::KIND));
    }
    Ok(found)
}

/// Writes a domain that was changed. One that becomes active takes its hostname from then on.
///
/// # Errors
/// `CONFLICT` when it becomes active and the hostname is another platform's by now; `VERSION_CONFLICT`.
pub(super) async fn replace(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    seen: &Stored<CustomDomain>,
    next: CustomDomain,
    action: &'static str,
) -> Result<Stored<CustomDomain>> {
    let is_active = |domain: &CustomDomain| domain.status == CustomDomainStatus::Active;
    if is_active(&next) && !is_active(seen) {
        take(cx, scope, uow, &next.hostname, Claim::Vouched).await?;
    }
    let stored = audited::replace(cx, scope, uow, seen, next, action).await;
    stored.map_err(|error| match error {
        Error::Store(StoreError::Conflict {
            index: "hostname", ..
        }) => is_custom_domain(),
        error => error,
    })
}
