//! Invitations: created, canceled, listed, and answered by their recipients.

mod answer;
mod cancel;
mod create;
mod list;

pub use answer::{
    Answered, InvitationDetails, accept_invitation, get_invitation, list_own, reject_invitation,
};
pub use cancel::{Cancellation, cancel_invitation};
pub use create::{NewInvitation, invite};
pub use list::list_invitations;

use crate::access::{Covers, audited};
use crate::iam::{Invitation, InvitationEvent};
use crate::kernel::{Context, Machine, Result, Stored, Unowned};
use crate::port::UnitOfWork;

/// Moves an invitation to the status that an event leads to. Its secret is void from then on.
async fn apply_event(
    cx: &Context,
    scope: &impl Covers<Unowned>,
    uow: &mut dyn UnitOfWork,
    seen: &Stored<Invitation>,
    event: InvitationEvent,
) -> Result<Stored<Invitation>> {
    let mut next = seen.edit();
    next.status = event.next(seen.status)?;
    next.secret_hash = None;
    let action = event.of_event().action;
    audited::replace(cx, scope, uow, seen, next, action).await
}
