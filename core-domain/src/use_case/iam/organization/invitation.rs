//! Invitations: made, answered by their recipient, taken back.

use super::active::set_active;
use super::member::{MemberOfOrganization, member_with_user};
use super::own_membership::{OwnMembership, own_membership};
use super::refusal::{refused, role_is_known};
use crate::access::{
    Covers, MembershipScope, PersonScope, SessionScope, audited, ensure_fresh, find_member, unowned,
};
use crate::iam::{
    INVITATION_LIFETIME, Invitation, InvitationEvent, InvitationQuery, InvitationStatus,
    MAX_MEMBERS, MAX_PENDING_INVITATIONS, Member, MemberQuery, Organization, User, UserQuery,
};
use crate::kernel::{
    Cipher, Code, Context, Effect, Email, Error, InvitationId, Machine, MemberId, OrganizationId,
    Page, PageRequest, Permission, Record, Result, Role, Roles, Stored, Unowned, UserId, grant,
};
use crate::port::UnitOfWork;
use crate::use_case::iam::verification::mail;
use crate::use_case::shared::queue_mail;

/// Whom a person invites, and how they are told.
pub struct NewInvitation<'a> {
    /// Whom.
    pub email: Email,
    /// What they would be.
    pub role: Roles,
    /// Whether one that waits already is sent again and extended.
    pub resend: bool,
    /// Makes the link of an invitation.
    pub link: &'a (dyn Fn(&InvitationId) -> String + Send + Sync),
    /// Encrypts the mail in the outbox.
    pub cipher: &'a Cipher,
}

impl std::fmt::Debug for NewInvitation<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewInvitation")
            .field("email", &self.email)
            .field("role", &self.role)
            .finish_non_exhaustive()
    }
}

/// Invites somebody, as a member who may.
///
/// # Errors
/// `YOU_ARE_NOT_ALLOWED_TO_INVITE_USERS_TO_THIS_ORGANIZATION`, `YOU_ARE_NOT_ALLOWED_TO_INVITE_USER_WITH_THIS_ROLE`,
/// `ROLE_NOT_FOUND`, and those of a person who is invited or a member already, and of an organization that is full;
/// `STEP_UP_REQUIRED` where an owner is invited.
pub async fn invite(
    cx: &Context,
    scope: &PersonScope,
    uow: &mut dyn UnitOfWork,
    own: &OwnMembership,
    new: NewInvitation<'_>,
) -> Result<Stored<Invitation>> {
    role_is_known(&own.organization, &new.role)?;
    if !own.may(Permission::InvitationCreate) {
        return Err(refused(Code::NotAllowedToInvite));
    }
    if !own.holds_all_of(&new.role) || (new.role.contains(&Role::OWNER) && !own.is_owner()) {
        return Err(refused(Code::NotAllowedToInviteRole));
    }
    store(cx, scope, uow, &own.organization, scope.user_id(), new).await
}

/// Invites somebody, by the suite's own route; a service says for whom it does.
///
/// # Errors
/// As [`invite`]; `FORBIDDEN` for a role that allows more than the caller's; `VALIDATION_ERROR` for a service that says for
/// nobody when nobody owns the organization.
pub async fn invite_to(
    cx: &Context,
    scope: &MembershipScope<grant::InvitationCreate>,
    uow: &mut dyn UnitOfWork,
    inviter: Option<UserId>,
    new: NewInvitation<'_>,
) -> Result<Stored<Invitation>> {
    let organization = scope.organization();
    role_is_known(organization, &new.role)?;
    let owner = new.role.contains(&Role::OWNER);
    let lacks = new.role.iter().any(|role| {
        let patterns = organization.roles.patterns_of(&role).into_iter();
        let mut patterns =
            patterns.filter_map(|p| crate::kernel::PermissionPattern::parse(&p).ok());
        patterns.any(|pattern| !scope.holds(&pattern))
    });
    if lacks || (owner && !scope.is_owner()) {
        return Err(Error::Forbidden);
    }
    let inviter = match (cx.caller.user_id(), inviter) {
        (Some(own), None) => own.clone(),
        (Some(own), Some(inviter)) if *own == inviter => inviter,
        (Some(_), Some(_)) => return Err(Error::Forbidden),
        (None, Some(inviter)) => inviter,
        (None, None) => first_owner(uow, &organization.id).await?,
    };
    store(cx, scope, uow, organization, &inviter, new).await
}

/// For whom a service invites that does not say.
async fn first_owner(uow: &mut dyn UnitOfWork, organization: &OrganizationId) -> Result<UserId> {
    let owners = MemberQuery::OwnersOf(organization.clone());
    let owner = unowned::<Member>(uow).first(&owners).await?;
    let missing = || Error::invalid("inviterId", "required", "is required: nobody owns it");
    owner.map(|owner| owner.user_id.clone()).ok_or_else(missing)
}

async fn store(
    cx: &Context,
    scope: &impl Covers<Unowned>,
    uow: &mut dyn UnitOfWork,
    organization: &Stored<Organization>,
    inviter: &UserId,
    new: NewInvitation<'_>,
) -> Result<Stored<Invitation>> {
    if new.role.contains(&Role::OWNER) {
        ensure_fresh(cx, uow).await?;
    }
    let with_email = UserQuery::WithEmail(new.email.clone());
    if let Some(user) = unowned::<User>(uow).first(&with_email).await?
        && find_member(uow, &organization.id, &user.id)
            .await?
            .is_some()
    {
        return Err(refused(Code::AlreadyMember));
    }
    let now = uow.now().await?;
    let to = InvitationQuery::PendingTo(organization.id.clone(), new.email.clone());
    let pending = unowned::<Invitation>(uow).first(&to).await?;
    let stored = match pending {
        Some(seen) if seen.is_open(now) && !new.resend => {
            return Err(refused(Code::AlreadyInvited));
        }
        Some(seen) if seen.is_open(now) => {
            let mut next = seen.edit();
            next.expires_at = now.plus(INVITATION_LIFETIME);
            audited::replace(cx, scope, uow, &seen, next, "invitation.resent").await?
        }
        seen => {
            if let Some(seen) = seen {
                moved(cx, scope, uow, &seen, InvitationEvent::Expire).await?;
            }
            ensure_room(uow, &organization.id).await?;
            let invitation = Invitation {
                id: InvitationId::generate(now, cx.entropy.as_ref()),
                organization_id: organization.id.clone(),
                email: new.email,
                role: new.role,
                status: InvitationStatus::Pending,
                expires_at: now.plus(INVITATION_LIFETIME),
                inviter_id: inviter.clone(),
                created_at: now,
            };
            audited::insert(cx, scope, uow, invitation, "invitation.created").await?
        }
    };
    let inviter = unowned::<User>(uow).find(inviter).await?;
    let inviter = inviter.as_ref().map(|user| match user.name.as_str() {
        "" => user.email.as_str(),
        name => name,
    });
    let name = organization.name.as_str();
    let link = (new.link)(&stored.id);
    let mail = mail::invitation(&stored.email, name, inviter.unwrap_or(name), &link);
    queue_mail(cx, uow, new.cipher, &mail).await?;
    Ok(stored)
}

async fn ensure_room(uow: &mut dyn UnitOfWork, organization: &OrganizationId) -> Result<()> {
    let pending = InvitationQuery::PendingOf(organization.clone());
    if unowned::<Invitation>(uow).count(&pending).await? >= MAX_PENDING_INVITATIONS {
        return Err(refused(Code::InvitationLimitReached));
    }
    Ok(())
}

async fn moved(
    cx: &Context,
    scope: &impl Covers<Unowned>,
    uow: &mut dyn UnitOfWork,
    seen: &Stored<Invitation>,
    event: InvitationEvent,
) -> Result<Stored<Invitation>> {
    let mut next = seen.edit();
    next.status = event.next(seen.status)?;
    let action = event.of_event().action;
    audited::replace(cx, scope, uow, seen, next, action).await
}

/// An invitation of the organization that somebody takes back.
///
/// # Errors
/// `NOT_FOUND` for an unknown, foreign or answered one.
pub async fn cancel(
    cx: &Context,
    scope: &MembershipScope<grant::InvitationCancel>,
    uow: &mut dyn UnitOfWork,
    id: &InvitationId,
) -> Result<()> {
    const MISSING: Error = Error::NotFound(Invitation::KIND);
    let seen = unowned::<Invitation>(uow).find(id).await?.ok_or(MISSING)?;
    let own = seen.organization_id == scope.organization().id;
    if !own || seen.status != InvitationStatus::Pending {
        return Err(MISSING);
    }
    moved(cx, scope, uow, &seen, InvitationEvent::Cancel).await?;
    Ok(())
}

/// As [`cancel`], by a person; one that is taken back already stays so.
///
/// # Errors
/// `INVITATION_NOT_FOUND`; `YOU_ARE_NOT_ALLOWED_TO_CANCEL_THIS_INVITATION`.
pub async fn cancel_invitation(
    cx: &Context,
    scope: &PersonScope,
    uow: &mut dyn UnitOfWork,
    id: &InvitationId,
) -> Result<Stored<Invitation>> {
    let seen = unowned::<Invitation>(uow).find(id).await?;
    let seen = seen.ok_or_else(|| refused(Code::InvitationNotFound))?;
    let own = own_membership(scope, uow, &seen.organization_id).await?;
    if !own.is_some_and(|own| own.may(Permission::InvitationCancel)) {
        return Err(refused(Code::NotAllowedToCancelInvitation));
    }
    match seen.status {
        InvitationStatus::Canceled => Ok(seen),
        InvitationStatus::Pending => moved(cx, scope, uow, &seen, InvitationEvent::Cancel).await,
        _ => Err(refused(Code::InvitationNotFound)),
    }
}

/// A page of the organization's invitations, newest first.
///
/// # Errors
/// `INVALID_CURSOR`.
pub async fn list_of(
    scope: &MembershipScope<grant::InvitationRead>,
    uow: &mut dyn UnitOfWork,
    page: &PageRequest,
) -> Result<Page<Stored<Invitation>>> {
    let of = InvitationQuery::OfOrganization(scope.organization().id.clone());
    unowned::<Invitation>(uow).page(&of, page).await
}

/// The organization's newest invitations, for a member.
///
/// # Errors
/// When the store failed.
pub async fn list_invitations(
    own: &OwnMembership,
    uow: &mut dyn UnitOfWork,
    limit: u32,
) -> Result<Vec<Stored<Invitation>>> {
    let of = InvitationQuery::OfOrganization(own.organization.id.clone());
    unowned::<Invitation>(uow).list(&of, limit).await
}

/// An invitation and what its recipient is told of it.
#[derive(Clone, Debug, PartialEq)]
pub struct InvitationDetails {
    /// The invitation.
    pub invitation: Stored<Invitation>,
    /// The organization.
    pub organization: Stored<Organization>,
    /// Who invites; `None` when they are gone.
    pub inviter: Option<Stored<User>>,
}

/// An invitation, for its recipient.
///
/// # Errors
/// `INVITATION_NOT_FOUND`; `YOU_ARE_NOT_THE_RECIPIENT_OF_THE_INVITATION`.
pub async fn get_invitation(
    scope: &PersonScope,
    uow: &mut dyn UnitOfWork,
    id: &InvitationId,
) -> Result<InvitationDetails> {
    let (invitation, _) = for_recipient(scope, uow, id).await?;
    let organization = unowned::<Organization>(uow)
        .find(&invitation.organization_id)
        .await?;
    let organization = organization.ok_or_else(|| refused(Code::InvitationNotFound))?;
    let inviter = unowned::<User>(uow).find(&invitation.inviter_id).await?;
    Ok(InvitationDetails {
        invitation,
        organization,
        inviter,
    })
}

/// The invitations to the person's address that they can answer. They must have proved that the address is theirs: others
/// would learn who is invited where.
///
/// # Errors
/// `EMAIL_VERIFICATION_REQUIRED_FOR_INVITATION`.
pub async fn list_own(
    scope: &PersonScope,
    uow: &mut dyn UnitOfWork,
) -> Result<Vec<(Stored<Invitation>, Option<Stored<Organization>>)>> {
    let user = unowned::<User>(uow).get(scope.user_id()).await?;
    if !user.email_verified {
        return Err(refused(Code::EmailVerificationRequired));
    }
    let open = InvitationQuery::OpenTo(user.email.clone(), uow.now().await?);
    let invitations = unowned::<Invitation>(uow).list(&open, 100).await?;
    let mut ids: Vec<&str> = invitations
        .iter()
        .map(|i| i.organization_id.as_str())
        .collect();
    ids.sort_unstable();
    ids.dedup();
    let organizations = unowned::<Organization>(uow).get_many(&ids).await?;
    let of = |invitation: Stored<Invitation>| {
        let mut organizations = organizations.iter();
        let organization = organizations
            .find(|o| o.id == invitation.organization_id)
            .cloned();
        (invitation, organization)
    };
    Ok(invitations.into_iter().map(of).collect())
}

/// An open invitation and its recipient, who calls.
async fn for_recipient(
    scope: &PersonScope,
    uow: &mut dyn UnitOfWork,
    id: &InvitationId,
) -> Result<(Stored<Invitation>, Stored<User>)> {
    let invitation = unowned::<Invitation>(uow).find(id).await?;
    let now = uow.now().await?;
    let invitation = invitation.filter(|invitation| invitation.is_open(now));
    let invitation = invitation.ok_or_else(|| refused(Code::InvitationNotFound))?;
    let user = unowned::<User>(uow).get(scope.user_id()).await?;
    if user.email != invitation.email {
        return Err(refused(Code::NotRecipient));
    }
    Ok((invitation, user))
}

/// An invitation that was answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Answered {
    /// The invitation.
    pub invitation: Stored<Invitation>,
    /// The membership it led to.
    pub member: Option<MemberOfOrganization>,
}

/// Accepts an invitation: of two at once one makes a member. The session acts for the organization from now on.
///
/// # Errors
/// `INVITATION_NOT_FOUND`; `YOU_ARE_NOT_THE_RECIPIENT_OF_THE_INVITATION`; `ORGANIZATION_MEMBERSHIP_LIMIT_REACHED`.
pub async fn accept_invitation(
    cx: &Context,
    scope: &PersonScope,
    session: &SessionScope,
    uow: &mut dyn UnitOfWork,
    id: &InvitationId,
) -> Result<Answered> {
    let (seen, user) = for_recipient(scope, uow, id).await?;
    if find_member(uow, &seen.organization_id, &user.id)
        .await?
        .is_some()
    {
        return Err(refused(Code::AlreadyMember));
    }
    let all = MemberQuery::OfOrganization(seen.organization_id.clone());
    if unowned::<Member>(uow).count(&all).await? >= MAX_MEMBERS {
        return Err(refused(Code::MembershipLimitReached));
    }
    let now = uow.now().await?;
    let member = Member {
        id: MemberId::generate(now, cx.entropy.as_ref()),
        organization_id: seen.organization_id.clone(),
        user_id: user.id.clone(),
        role: seen.role.clone(),
        grants: Vec::new(),
        created_at: now,
    };
    let member = audited::insert(cx, scope, uow, member, "member.added").await?;
    let invitation = moved(cx, scope, uow, &seen, InvitationEvent::Accept).await?;
    set_active(cx, scope, uow, session.session_id(), &seen.organization_id).await?;
    uow.effects()
        .add(Effect::UserAccessChanged(user.id.clone()));
    Ok(Answered {
        invitation,
        member: Some(member_with_user(uow, member).await?),
    })
}

/// Declines an invitation.
///
/// # Errors
/// `INVITATION_NOT_FOUND`; `YOU_ARE_NOT_THE_RECIPIENT_OF_THE_INVITATION`.
pub async fn reject_invitation(
    cx: &Context,
    scope: &PersonScope,
    uow: &mut dyn UnitOfWork,
    id: &InvitationId,
) -> Result<Answered> {
    let (seen, _) = for_recipient(scope, uow, id).await?;
    let invitation = moved(cx, scope, uow, &seen, InvitationEvent::Reject).await?;
    Ok(Answered {
        invitation,
        member: None,
    })
}
