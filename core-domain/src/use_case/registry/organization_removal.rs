//! Deleting an organization, which must have no platforms left.

use crate::access::{PersonScope, unowned};
use crate::kernel::{Context, Result};
use crate::port::UnitOfWork;
use crate::registry::{Platform, PlatformQuery};
use crate::use_case::iam::organization::{OwnMembership, delete_own};

/// Deletes an organization of the person's with its memberships and invitations.
///
/// # Errors
/// `YOU_ARE_NOT_ALLOWED_TO_DELETE_THIS_ORGANIZATION`; `CONFLICT` while it has a platform, and for the one that operates the
/// installation.
pub async fn delete(
    cx: &Context,
    scope: &PersonScope,
    uow: &mut dyn UnitOfWork,
    own: &OwnMembership,
) -> Result<()> {
    let belonging = PlatformQuery::BelongingTo(own.organization.id.clone());
    let platforms = unowned::<Platform>(uow).count(&belonging).await?;
    delete_own(cx, scope, uow, own, platforms > 0).await
}
