//! Limits on organizations: how many a person owns, and what one of them has. Callers who operate the installation have none.

use crate::access::unowned;
use crate::iam::{Invitation, InvitationQuery, Member, MemberQuery};
use crate::kernel::{Context, Error, OrganizationId, Result, UserId};
use crate::port::UnitOfWork;

/// Refuses one more organization for a person. `reserved` is the number of organizations that are being created for them.
///
/// # Errors
/// `LIMIT_REACHED`.
pub(in crate::use_case) async fn ensure_can_own_another(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    owner: &UserId,
    reserved: u64,
) -> Result<()> {
    let owned = MemberQuery::OwnedBy(owner.clone());
    let owned = unowned::<Member>(uow).count(&owned).await?;
    let limit = cx.limits.organizations_per_owner;
    let message = "The person owns as many organizations as one person may own.";
    ensure_below(cx, owned.saturating_add(reserved), limit, message)
}

/// Refuses one more member of an organization.
///
/// # Errors
/// `LIMIT_REACHED`.
pub(super) async fn ensure_room_for_member(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    organization: &OrganizationId,
) -> Result<()> {
    let members = MemberQuery::OfOrganization(organization.clone());
    let members = unowned::<Member>(uow).count(&members).await?;
    let limit = cx.limits.members_per_organization;
    let message = "The organization has as many members as it may have.";
    ensure_below(cx, members, limit, message)
}

/// Refuses one more pending invitation of an organization.
///
/// # Errors
/// `LIMIT_REACHED`.
pub(super) async fn ensure_room_for_invitation(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    organization: &OrganizationId,
) -> Result<()> {
    let pending = InvitationQuery::PendingOf(organization.clone());
    let pending = unowned::<Invitation>(uow).count(&pending).await?;
    let limit = cx.limits.invitations_per_organization;
    let message =
        "The organization has as many pending invitations as it may have. Cancel one first.";
    ensure_below(cx, pending, limit, message)
}

fn ensure_below(cx: &Context, count: u64, limit: u32, message: &str) -> Result<()> {
    if cx.caller.is_operator() || count < u64::from(limit) {
        return Ok(());
    }
    Err(Error::limit_reached(limit, message))
}
