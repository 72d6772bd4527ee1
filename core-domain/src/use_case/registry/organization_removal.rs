//! Deleting an organization, which must have no platforms left.

use crate::access::{MembershipScope, unowned};
use crate::kernel::{Context, Result, grant};
use crate::port::UnitOfWork;
use crate::registry::{Platform, PlatformQuery};
use crate::use_case::iam::organization;

/// Deletes an organization with its memberships and invitations.
///
/// # Errors
/// `CONFLICT` while it has a platform, and for the organization that operates the installation.
pub async fn delete(
    cx: &Context,
    scope: &MembershipScope<grant::OrganizationDelete>,
    uow: &mut dyn UnitOfWork,
) -> Result<()> {
    let belonging = PlatformQuery::BelongingTo(scope.organization().id.clone());
    let platforms = unowned::<Platform>(uow).count(&belonging).await?;
    organization::delete(cx, scope, uow, platforms > 0).await
}
