//! Who reaches a platform.

use crate::kernel::{
    Caller, Context, Error, Membership, OrganizationId, Permission, PlatformId, Result,
};
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
    let own = membership(cx).filter(|m| Some(&m.organization_id) == organization);
    match own {
        None => Err(Error::NotFound(Platform::KIND)),
        Some(membership) if membership.permissions.allows(permission) => Ok(()),
        Some(_) => Err(Error::Forbidden),
    }
}

/// The organization the caller acts for.
pub(super) fn membership(cx: &Context) -> Option<&Membership> {
    match &cx.caller {
        Caller::User { membership, .. } => membership.as_ref(),
        _ => None,
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
    if platform.status == PlatformStatus::Deleted {
        let others = PlatformStatus::ALL
            .iter()
            .filter(|s| **s != PlatformStatus::Deleted);
        return Err(Error::InvalidState {
            status: platform.status.as_str(),
            allowed_from: others.map(|s| s.as_str()).collect(),
        });
    }
    Ok(platform)
}

/// Whether deleted rows are shown: to operators who ask for them.
pub(super) fn shows_deleted(cx: &Context, asked: bool) -> bool {
    asked && cx.caller.is_operator()
}
