//! Limits on what one organization has.

use crate::access::{ensure_room_unless_operator, unowned};
use crate::iam::{Invitation, InvitationQuery, Member, MemberQuery};
use crate::kernel::{Context, OrganizationId, Result};
use crate::port::UnitOfWork;

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
    let limit = cx.limits.members_per_organization;
    let message = "The organization has as many members as it may have.";
    ensure_room_unless_operator::<Member>(cx, unowned(uow), &members, limit, message).await
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
    let limit = cx.limits.invitations_per_organization;
    let message =
        "The organization has as many pending invitations as it may have. Cancel one first.";
    ensure_room_unless_operator::<Invitation>(cx, unowned(uow), &pending, limit, message).await
}
