//! Scopes on the platforms of an organization: for lists of platforms, and for new ones.

use std::marker::PhantomData;

use super::records::covers_unowned;
use super::records::unowned;
use super::requirement::Requirement;
use super::signed_in::{authorize_person, ensure_caller_not_suspended, ensure_not_suspended};
use crate::iam::{Invitation, InvitationRef, Organization, User};
use crate::kernel::{
    Code, Context, Error, Grant, Membership, OrganizationId, PlatformId, Result, SessionId, Stored,
    UserId,
};
use crate::port::UnitOfWork;
use crate::registry::Platform;

/// How far a caller reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Everywhere: an operator.
    Installation,
    /// To the platforms of an organization.
    Organization(OrganizationId),
    /// To one platform: somebody acts for it whose organization is not the platform's.
    Platform(PlatformId),
    /// Nowhere: somebody who acts for no organization.
    Nowhere,
}

/// The platforms that the caller was let in to do `G` on. Only [`authorize_organization`] makes one.
#[derive(Clone, Debug)]
pub struct OrganizationScope<G> {
    reach: Reach,
    grant: PhantomData<fn() -> G>,
}

impl<G> OrganizationScope<G> {
    /// How far the caller reaches.
    #[must_use]
    pub const fn reach(&self) -> &Reach {
        &self.reach
    }
}

covers_unowned! { OrganizationScope<G>, for G; }

/// Lets the caller in to the platforms of the organization they act for.
///
/// # Errors
/// `UNAUTHORIZED`; `FORBIDDEN`; `PLATFORM_SUSPENDED` when the platform the caller acts for is suspended.
pub async fn authorize_organization<G: Grant>(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
) -> Result<OrganizationScope<G>> {
    if cx.caller.is_anonymous() {
        return Err(Error::Unauthorized);
    }
    let reach = match cx.caller.membership() {
        _ if cx.caller.is_operator() => Reach::Installation,
        Some(own) if !own.permissions.allows(G::PERMISSION) => return Err(Error::Forbidden),
        Some(own) => reach_of(uow, own).await?,
        None => Reach::Nowhere,
    };
    ensure_caller_not_suspended(cx, uow).await?;
    Ok(OrganizationScope {
        reach,
        grant: PhantomData,
    })
}

// Not both by one condition: no index has the platforms of either in order.
async fn reach_of(uow: &mut dyn UnitOfWork, own: &Membership) -> Result<Reach> {
    let organization = Reach::Organization(own.organization_id.clone());
    let Some(platform) = &own.platform_id else {
        return Ok(organization);
    };
    let of = unowned::<Platform>(uow).find(platform).await?;
    let foreign = of.is_some_and(|p| p.organization_id.as_ref() != Some(&own.organization_id));
    Ok(match foreign {
        true => Reach::Platform(platform.clone()),
        false => organization,
    })
}

/// A new organization's owner, who the caller is or may create organizations for. Only [`authorize_new_organization`] and
/// [`authorize_new_organization_for`] make one.
#[derive(Clone, Debug)]
pub struct NewOrganizationScope {
    owner: UserId,
    session_id: Option<SessionId>,
}

impl NewOrganizationScope {
    /// The person who will own the organization.
    #[must_use]
    pub const fn owner(&self) -> &UserId {
        &self.owner
    }

    /// The owner's session that the request came with; `None` if an operator creates the organization for somebody.
    #[must_use]
    pub const fn session_id(&self) -> Option<&SessionId> {
        self.session_id.as_ref()
    }
}

covers_unowned! { NewOrganizationScope; }

/// Lets in a person known by a session, to create an organization that they own. A person that a service vouches for counts
/// if the call carries their session.
///
/// # Errors
/// `UNAUTHORIZED`; `FORBIDDEN` for API keys, services and persons without a session; `PLATFORM_SUSPENDED` if the platform
/// that the caller acts for is suspended.
pub async fn authorize_new_organization(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
) -> Result<NewOrganizationScope> {
    Requirement::NewOrganization.check(&cx.caller)?;
    let (person, session) = (cx.caller.person_id(), cx.caller.session_id());
    let (Some(owner), Some(session)) = (person, session) else {
        return Err(Error::Forbidden);
    };
    ensure_caller_not_suspended(cx, uow).await?;
    Ok(NewOrganizationScope {
        owner: owner.clone(),
        session_id: Some(session.clone()),
    })
}

/// As [`authorize_new_organization`], for an owner that the request names: operators may name anybody, others themselves.
///
/// # Errors
/// As [`authorize_new_organization`]; `FORBIDDEN` for an owner who is not the caller.
pub async fn authorize_new_organization_for(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    owner: &UserId,
) -> Result<NewOrganizationScope> {
    if cx.caller.is_operator() && cx.caller.person_id() != Some(owner) {
        return Ok(NewOrganizationScope {
            owner: owner.clone(),
            session_id: None,
        });
    }
    let scope = authorize_new_organization(cx, uow).await?;
    if scope.owner == *owner {
        Ok(scope)
    } else {
        Err(Error::Forbidden)
    }
}

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
