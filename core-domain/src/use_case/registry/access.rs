//! Who reaches a platform.

use crate::kernel::{Context, Error, OrganizationId, Permission, PlatformId, Result};
use crate::port::{Record, Stored, UnitOfWork};
use crate::registry::{Platform, PlatformStatus};

/// The platform, provided the caller may do this to it. Operators reach every platform, others the one they act for and
/// those of the organization they act for. A foreign platform is "not found", exactly as a missing one.
///
/// # Errors
/// `UNAUTHORIZED`, `NOT_FOUND`; `FORBIDDEN` without the permission.
pub async fn reach(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    permission: Permission,
    platform: &PlatformId,
) -> Result<Stored<Platform>> {
    cx.caller.signed_in()?;
    let stored = uow.platforms().get(platform.as_str()).await?;
    let stored = stored.ok_or(Error::NotFound(Platform::KIND))?;
    match cx.caller.may(permission, platform) {
        Err(Error::NotFound(_)) => of_organization(cx, permission, stored.organization_id.as_ref()),
        decided => decided,
    }?;
    Ok(stored)
}

fn of_organization(
    cx: &Context,
    permission: Permission,
    organization: Option<&OrganizationId>,
) -> Result<()> {
    let own = cx
        .caller
        .membership()
        .filter(|m| Some(&m.organization_id) == organization);
    match own {
        None => Err(Error::NotFound(Platform::KIND)),
        Some(membership) if membership.permissions.allows(permission) => Ok(()),
        Some(_) => Err(Error::Forbidden),
    }
}

/// As [`reach`], for changes of what belongs to the platform: those of a deleted one stay as they are.
///
/// # Errors
/// As [`reach`]; `INVALID_STATE` for a deleted platform.
pub async fn reach_living(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    permission: Permission,
    platform: &PlatformId,
) -> Result<Stored<Platform>> {
    let platform = reach(cx, uow, permission, platform).await?;
    refuse_deleted(&platform)?;
    Ok(platform)
}

/// Refuses what cannot be done to a deleted platform.
pub(super) fn refuse_deleted(platform: &Platform) -> Result<()> {
    let deleted = PlatformStatus::Deleted;
    if platform.status != deleted {
        return Ok(());
    }
    let others = PlatformStatus::ALL.iter().filter(|s| **s != deleted);
    Err(Error::InvalidState {
        status: deleted.as_str(),
        allowed_from: others.map(|s| s.as_str()).collect(),
    })
}

/// Whether deleted rows are shown: to operators who ask for them.
pub(super) fn shows_deleted(cx: &Context, asked: bool) -> bool {
    asked && cx.caller.is_operator()
}
