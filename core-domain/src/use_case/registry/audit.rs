//! Reading the audit.

use super::access::reach;
use crate::kernel::{Context, Error, Page, PageRequest, Permission, PlatformId, Result};
use crate::port::{Record, Stored, UnitOfWork};
use crate::registry::Platform;
use crate::shared::{AuditEntry, AuditQuery};

/// The audit of a platform, newest first; the query's platform is this one.
///
/// # Errors
/// As [`reach`] with `audit:read`; `INVALID_CURSOR`.
pub async fn list_platform_audit(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
    mut query: AuditQuery,
    page: &PageRequest,
) -> Result<Page<Stored<AuditEntry>>> {
    reach(cx, uow, Permission::AuditRead, platform).await?;
    query.platform_id = Some(platform.clone());
    Ok(uow.audit_entries().page(&query, page).await?)
}

/// The audit across platforms, newest first. Whoever is no operator sees the platform they act for alone. What happened
/// to a platform is kept when the platform is gone.
///
/// # Errors
/// `UNAUTHORIZED`; `NOT_FOUND` for a foreign platform; `FORBIDDEN` without `audit:read`; `INVALID_CURSOR`.
pub async fn list_audit(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    mut query: AuditQuery,
    page: &PageRequest,
) -> Result<Page<Stored<AuditEntry>>> {
    cx.caller.signed_in()?;
    if !cx.caller.is_operator() {
        let own = cx.caller.platform_id().cloned();
        let wanted = query.platform_id.take().or(own);
        let wanted = wanted.ok_or(Error::NotFound(Platform::KIND))?;
        reach(cx, uow, Permission::AuditRead, &wanted).await?;
        query.platform_id = Some(wanted);
    }
    Ok(uow.audit_entries().page(&query, page).await?)
}
