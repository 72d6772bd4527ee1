//! Scopes on the platforms of an organization, on new organizations, and on invitations.

use std::marker::PhantomData;

use super::records::covers_unowned;
use super::records::unowned_records;
use super::requirement::Requirement;
use super::signed_in::{authorize_person, ensure_caller_not_suspended, ensure_not_suspended};
use crate::iam::{Invitation, InvitationRef, Organization, User};
use crate::kernel::{
    Code, Context, Error, Membership, OrganizationId, PermissionType, PlatformId, Result,
    SessionId, Stored, UserId,
};
use crate::port::UnitOfWork;
use crate::registry::Platform;

/// The platforms that a caller can reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// All platforms; the caller is an operator.
    Installation,
    /// The platforms of this organization.
    Organization(OrganizationId),
    /// Only this platform. The caller acts for it, but it belongs to another organization.
    Platform(PlatformId),
    /// No platform; the caller acts for no organization.
    Nowhere,
}

/// The platforms on which the caller is authorized to do `G`. Only [`authorize_organization`] creates one.
#[derive(Clone, Debug)]
pub struct OrganizationScope<G> {
    reach: Reach,
    permission: PhantomData<fn() -> G>,
}

impl<G> OrganizationScope<G> {
    /// The platforms that the caller can reach.
    #[must_use]
    pub const fn reach(&self) -> &Reach {
        &self.reach
    }
}

covers_unowned! { OrganizationScope<G>, for G; }

/// Authorizes the caller to do `G` on the platforms of the organization that they act for. A caller without an
/// organization reaches no platform, which is not an error.
///
/// # Errors
/// - `UNAUTHORIZED` if the caller is anonymous.
/// - `FORBIDDEN` if the caller lacks `G`.
/// - `PLATFORM_SUSPENDED` if the platform that the caller acts for is suspended.
pub async fn authorize_organization<G: PermissionType>(
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
        permission: PhantomData,
    })
}

// The reach is one or the other: no index orders the platforms of an organization together with one more platform.
async fn reach_of(uow: &mut dyn UnitOfWork, own: &Membership) -> Result<Reach> {
    let organization = Reach::Organization(own.organization_id.clone());
    let Some(platform) = &own.platform_id else {
        return Ok(organization);
    };
    let of = unowned_records::<Platform>(uow).find(platform).await?;
    let foreign = of.is_some_and(|p| p.organization_id.as_ref() != Some(&own.organization_id));
    Ok(match foreign {
        true => Reach::Platform(platform.clone()),
        false => organization,
    })
}

/// The owner of a new organization: the caller, or a person named by an operator. Only [`authorize_new_organization`]
/// and [`authorize_new_organization_for`] create one.
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

    /// The owner's session, which sent the request; `None` if an operator creates the organization for another person.
    #[must_use]
    pub const fn session_id(&self) -> Option<&SessionId> {
        self.session_id.as_ref()
    }
}

covers_unowned! { NewOrganizationScope; }

/// Authorizes a person with a session to create an organization that they will own. A service may call for a person if
/// the request carries the person's session.
///
/// # Errors
/// - `UNAUTHORIZED` if the caller is anonymous.
/// - `FORBIDDEN` for API keys, services, and persons without a session.
/// - `PLATFORM_SUSPENDED` if the platform that the caller acts for is suspended.
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

/// Like [`authorize_new_organization`], for an owner that the request names. Operators may name any person, other
/// callers only themselves.
///
/// # Errors
/// Those of [`authorize_new_organization`]; `FORBIDDEN` if the owner is not the caller.
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

/// An invitation in any status, and the caller as its recipient. The caller has proved that they receive mail at the
/// invited address. Only [`authorize_recipient`] creates one.
#[derive(Clone, Debug)]
pub struct RecipientScope {
    invitation: Stored<Invitation>,
    organization: Stored<Organization>,
    user: Stored<User>,
}

impl RecipientScope {
    /// The invitation, as read when the scope was created.
    #[must_use]
    pub const fn invitation(&self) -> &Stored<Invitation> {
        &self.invitation
    }

    /// The organization that the invitation belongs to.
    #[must_use]
    pub const fn organization(&self) -> &Stored<Organization> {
        &self.organization
    }

    /// The user who received the invitation.
    #[must_use]
    pub const fn user(&self) -> &Stored<User> {
        &self.user
    }
}

covers_unowned! {
    RecipientScope, audited in |scope| scope.organization.platform_id.as_ref();
}

/// Authorizes the recipient of an invitation. The caller's email address must equal the invited address. The caller
/// proves it by a verified address or by the secret of the mailed link. A wrong, old or used secret counts as no
/// secret. The invitation may already have an answer, so that a repeated answer succeeds.
///
/// # Errors
/// - `UNAUTHORIZED` if the caller is not a person.
/// - `INVITATION_NOT_FOUND` if the invitation or its organization does not exist.
/// - `YOU_ARE_NOT_THE_RECIPIENT_OF_THE_INVITATION` if the addresses differ.
/// - `EMAIL_VERIFICATION_REQUIRED_BEFORE_ACCEPTING_OR_REJECTING_INVITATION` without a proof of the address.
/// - `PLATFORM_SUSPENDED` if the organization's platform is suspended.
pub async fn authorize_recipient(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    name: &InvitationRef,
) -> Result<RecipientScope> {
    let missing = || Error::of_code(Code::InvitationNotFound);
    let person = authorize_person(cx)?;
    let invitation = unowned_records::<Invitation>(uow).find(name.id()).await?;
    let invitation = invitation.ok_or_else(missing)?;
    let organization = unowned_records::<Organization>(uow);
    let organization = organization.find(&invitation.organization_id).await?;
    let organization = organization.ok_or_else(missing)?;
    let user = unowned_records::<User>(uow).get(person.user_id()).await?;
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
