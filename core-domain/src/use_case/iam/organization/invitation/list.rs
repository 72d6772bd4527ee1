//! Listing the invitations of an organization.

use crate::access::{MembershipScope, unowned};
use crate::iam::{Invitation, InvitationQuery};
use crate::kernel::{Page, PageRequest, Result, Stored, grant};
use crate::port::UnitOfWork;

/// Returns a page of the organization's invitations, newest first.
///
/// # Errors
/// `INVALID_CURSOR`.
pub async fn list_invitations(
    scope: &MembershipScope<grant::InvitationRead>,
    uow: &mut dyn UnitOfWork,
    page: &PageRequest,
) -> Result<Page<Stored<Invitation>>> {
    let of = InvitationQuery::OfOrganization(scope.organization().id.clone());
    unowned::<Invitation>(uow).page(&of, page).await
}
