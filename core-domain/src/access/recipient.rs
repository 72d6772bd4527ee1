//! The scope of the person that an invitation was sent to.

use super::covers::covers_unowned;
use super::records::unowned;
use super::signed_in::{authorize_person, ensure_not_suspended};
use crate::iam::{Invitation, InvitationRef, Organization, User};
use crate::kernel::{Code, Context, Error, Result, Stored};
use crate::port::UnitOfWork;

/// An invitation, whatever its status, and the caller as its recipient, who has proved to read mail at the invited address.
/// Only [`authorize_recipient`] makes one.
#[derive(Clone, Debug)]
pub struct RecipientScope {
    invitation: Stored<Invitation>,
    organization: Stored<Organization>,
    user: Stored<User>,
}

impl RecipientScope {
    /// The invitation, as it was when the scope was opened.
    #[must_use]
    pub const fn invitation(&self) -> &Stored<Invitation> {
        &self.invitation
    }

    /// The organization that the invitation is to.
    #[must_use]
    pub const fn organization(&self) -> &Stored<Organization> {
        &self.organization
    }

    /// The recipient.
    #[must_use]
    pub const fn user(&self) -> &Stored<User> {
        &self.user
    }
}

covers_unowned! {
    RecipientScope, audited in |scope| scope.organization.platform_id.as_ref();
}

/// Lets the recipient of an invitation in: a person whose address is the invited one and who proves it, by a confirmed address
/// or by the secret of the mailed link. A wrong, old or used secret is as good as none. The invitation may have been
/// answered, so that the recipient can repeat an answer.
///
/// # Errors
/// `UNAUTHORIZED`; `INVITATION_NOT_FOUND`; `YOU_ARE_NOT_THE_RECIPIENT_OF_THE_INVITATION`;
/// `EMAIL_VERIFICATION_REQUIRED_BEFORE_ACCEPTING_OR_REJECTING_INVITATION` without a proof; `PLATFORM_SUSPENDED` if the
/// organization's platform is suspended.
pub async fn authorize_recipient(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    name: &InvitationRef,
) -> Result<RecipientScope> {
    let missing = || Error::of_code(Code::InvitationNotFound);
    let person = authorize_person(cx)?;
    let invitation = unowned::<Invitation>(uow).find(name.id()).await?;
    let invitation = invitation.ok_or_else(missing)?;
    let organization = unowned::<Organization>(uow);
    let organization = organization.find(&invitation.organization_id).await?;
    let organization = organization.ok_or_else(missing)?;
    let user = unowned::<User>(uow).get(person.user_id()).await?;
    if user.email != invitation.email {
        return Err(Error::of_code(Code::NotRecipient));
    }
    if !user.email_verified && !name.has_secret_of(&invitation) {
        return Err(Error::of_code(Code::EmailVerificationRequiredToAnswer));
    }
    ensure_not_suspended(cx, uow, organization.platform_id.as_ref()).await?;
    Ok(RecipientScope {
        invitation,
        organization,
        user,
    })
}
