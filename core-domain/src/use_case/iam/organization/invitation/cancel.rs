//! Canceling invitations.

use super::apply_event;
use crate::access::{MembershipScope, unowned};
use crate::iam::{Invitation, InvitationEvent, InvitationStatus};
use crate::kernel::{Code, Context, Error, InvitationId, Result, Stored, grant};
use crate::port::UnitOfWork;

/// The outcome of canceling an invitation.
#[derive(Clone, Debug, PartialEq)]
pub enum Cancellation {
    /// The invitation was pending and is canceled now.
    Canceled(Stored<Invitation>),
    /// The invitation had been canceled before. Nothing was changed.
    CanceledBefore(Stored<Invitation>),
}

/// Cancels an invitation of the organization.
///
/// # Errors
/// `INVITATION_NOT_FOUND` for an invitation that is unknown, another organization's, answered or expired.
pub async fn cancel_invitation(
    cx: &Context,
    scope: &MembershipScope<grant::InvitationCancel>,
    uow: &mut dyn UnitOfWork,
    id: &InvitationId,
) -> Result<Cancellation> {
    let missing = || Error::of_code(Code::InvitationNotFound);
    let seen = unowned::<Invitation>(uow).find(id).await?;
    let seen = seen.filter(|seen| seen.organization_id == scope.organization().id);
    let seen = seen.ok_or_else(missing)?;
    match seen.status {
        InvitationStatus::Canceled => Ok(Cancellation::CanceledBefore(seen)),
        InvitationStatus::Pending => {
            let canceled = apply_event(cx, scope, uow, &seen, InvitationEvent::Cancel).await?;
            Ok(Cancellation::Canceled(canceled))
        }
        _ => Err(missing()),
    }
}
