//! Creates, cancels and lists invitations, and records the answers of their recipients.

use serde_json::json;

use super::manage::set_active;
use super::manage::{ensure_room_for_invitation, ensure_room_for_member};
use super::member::ensure_roles_known;
use super::member::{MemberOfOrganization, member_with_user};
use crate::access::{
    Covers, MembershipScope, PersonScope, RecipientScope, SessionScope, audited,
    ensure_can_own_another, ensure_fresh, find_member, unowned_records,
};
use crate::iam::{
    INVITATION_LIFETIME, Invitation, InvitationEvent, InvitationQuery, InvitationRef,
    InvitationStatus, Member, MemberQuery, Organization, User, UserQuery,
};
use crate::kernel::{
    Cipher, Code, Context, Effect, Email, Error, InvitationId, Machine, MemberId, OrganizationId,
    Page, PageQuery, Result, Role, Roles, Stored, Unowned, UserId, permission,
};
use crate::port::UnitOfWork;
use crate::shared::{ExceededRate, MailRate};
use crate::use_case::iam::user::confirm_email;
use crate::use_case::iam::verification;
use crate::use_case::iam::verification::Notices;
use crate::use_case::shared::{MailPermit, MailSubject, check_mail_quotas, queue_mail};

/// Moves an invitation to the status that an event leads to, and invalidates its secret.
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
    let action = event.transition().action;
    audited::replace(cx, scope, uow, seen, next, action).await
}

/// An open invitation, as its recipient sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct InvitationDetails {
    /// The stored record of the invitation.
    pub invitation: Stored<Invitation>,
    /// The organization that invites.
    pub organization: Stored<Organization>,
    /// The inviter; `None` if the user was deleted.
    pub inviter: Option<Stored<User>>,
}

/// Returns an open invitation to its recipient.
///
/// # Errors
/// `INVITATION_NOT_FOUND` if the invitation can no longer be answered.
pub async fn get_invitation(
    scope: &RecipientScope,
    uow: &mut dyn UnitOfWork,
) -> Result<InvitationDetails> {
    let invitation = open_invitation(scope, uow).await?.clone();
    let inviter = unowned_records::<User>(uow)
        .find(&invitation.inviter_id)
        .await?;
    Ok(InvitationDetails {
        invitation,
        organization: scope.organization().clone(),
        inviter,
    })
}

async fn open_invitation<'s>(
    scope: &'s RecipientScope,
    uow: &mut dyn UnitOfWork,
) -> Result<&'s Stored<Invitation>> {
    let now = uow.now().await?;
    if scope.invitation().is_open(now) {
        Ok(scope.invitation())
    } else {
        Err(Error::of_code(Code::InvitationNotFound))
    }
}

/// Returns the invitations to the person's address that they can answer, at most 100. The address must be verified,
/// because other users must not learn who is invited where.
///
/// # Errors
/// `EMAIL_VERIFICATION_REQUIRED_FOR_INVITATION` if the person's address is not verified.
pub async fn list_received(
    scope: &PersonScope,
    uow: &mut dyn UnitOfWork,
) -> Result<Vec<(Stored<Invitation>, Option<Stored<Organization>>)>> {
    let user = unowned_records::<User>(uow).get(scope.user_id()).await?;
    if !user.email_verified {
        return Err(Error::of_code(Code::EmailVerificationRequired));
    }
    let open = InvitationQuery::OpenTo(user.email.clone(), uow.now().await?);
    let invitations = unowned_records::<Invitation>(uow).list(&open, 100).await?;
    let mut ids: Vec<&str> = invitations
        .iter()
        .map(|i| i.organization_id.as_str())
        .collect();
    ids.sort_unstable();
    ids.dedup();
    let organizations = unowned_records::<Organization>(uow).get_many(&ids).await?;
    let of = |invitation: Stored<Invitation>| {
        let mut organizations = organizations.iter();
        let organization = organizations
            .find(|o| o.id == invitation.organization_id)
            .cloned();
        (invitation, organization)
    };
    Ok(invitations.into_iter().map(of).collect())
}

/// An invitation after the answer of its recipient.
#[derive(Clone, Debug, PartialEq)]
pub struct InvitationAnswer {
    /// The invitation with its new status.
    pub invitation: Stored<Invitation>,
    /// The new membership; `None` if the recipient declined.
    pub member: Option<MemberOfOrganization>,
}

/// Accepts an invitation. Only one of several concurrent requests creates the membership. The session acts for the
/// organization afterwards, and the recipient's address becomes verified.
///
/// # Errors
/// - `INVITATION_NOT_FOUND` if the invitation can no longer be answered.
/// - `USER_IS_ALREADY_A_MEMBER_OF_THIS_ORGANIZATION` if the recipient is a member.
/// - `LIMIT_REACHED` if the organization has the maximum number of members, or if a new owner owns the maximum number
///   of organizations.
pub async fn accept_invitation(
    cx: &Context,
    scope: &RecipientScope,
    session: &SessionScope,
    uow: &mut dyn UnitOfWork,
    notices: Notices<'_>,
) -> Result<InvitationAnswer> {
    let seen = open_invitation(scope, uow).await?;
    let user = scope.user();
    let known = find_member(uow, &seen.organization_id, &user.id).await?;
    if known.is_some() {
        return Err(Error::of_code(Code::AlreadyMember));
    }
    ensure_room_for_member(cx, uow, &seen.organization_id).await?;
    if seen.role.contains(&Role::OWNER) {
        ensure_can_own_another(cx, uow, &user.id).await?;
    }
    confirm_email(cx, session, uow, user, notices).await?;
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
    let invitation = apply_event(cx, scope, uow, seen, InvitationEvent::Accept).await?;
    let organization = &seen.organization_id;
    set_active(cx, session, uow, session.session_id(), organization).await?;
    uow.effects()
        .add(Effect::UserAccessChanged(user.id.clone()));
    Ok(InvitationAnswer {
        invitation,
        member: Some(member_with_user(uow, member).await?),
    })
}

/// Declines an invitation. The recipient's address becomes verified.
///
/// # Errors
/// `INVITATION_NOT_FOUND` if the invitation can no longer be answered.
pub async fn reject_invitation(
    cx: &Context,
    scope: &RecipientScope,
    session: &SessionScope,
    uow: &mut dyn UnitOfWork,
    notices: Notices<'_>,
) -> Result<InvitationAnswer> {
    let seen = open_invitation(scope, uow).await?;
    confirm_email(cx, session, uow, scope.user(), notices).await?;
    let invitation = apply_event(cx, scope, uow, seen, InvitationEvent::Reject).await?;
    Ok(InvitationAnswer {
        invitation,
        member: None,
    })
}

/// The outcome of canceling an invitation.
#[derive(Clone, Debug, PartialEq)]
pub enum Cancellation {
    /// The invitation was pending and is canceled now.
    Canceled(Stored<Invitation>),
    /// The invitation had been canceled before. Nothing was changed.
    AlreadyCanceled(Stored<Invitation>),
}

/// Cancels an invitation of the organization.
///
/// # Errors
/// `INVITATION_NOT_FOUND` if the invitation is unknown, another organization's, answered or expired.
pub async fn cancel_invitation(
    cx: &Context,
    scope: &MembershipScope<permission::InvitationCancel>,
    uow: &mut dyn UnitOfWork,
    id: &InvitationId,
) -> Result<Cancellation> {
    let missing = || Error::of_code(Code::InvitationNotFound);
    let seen = unowned_records::<Invitation>(uow).find(id).await?;
    let seen = seen.filter(|seen| seen.organization_id == scope.organization().id);
    let seen = seen.ok_or_else(missing)?;
    match seen.status {
        InvitationStatus::Canceled => Ok(Cancellation::AlreadyCanceled(seen)),
        InvitationStatus::Pending => {
            let canceled = apply_event(cx, scope, uow, &seen, InvitationEvent::Cancel).await?;
            Ok(Cancellation::Canceled(canceled))
        }
        _ => Err(missing()),
    }
}

/// A new invitation, with the functions that compose and encrypt its mail.
pub struct NewInvitation<'a> {
    /// The email address to invite.
    pub email: Email,
    /// The roles that the recipient gets with the acceptance.
    pub role: Roles,
    /// Whether a pending invitation is mailed again and extended, instead of refused.
    pub resend: bool,
    /// Builds the link in the mail from the invitation and its secret.
    pub link: &'a (dyn Fn(&InvitationRef) -> String + Send + Sync),
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

/// Invites an email address to the organization. With `resend`, a pending invitation gets a new secret and a new
/// expiry, and keeps its roles. A service may name the inviter; without one, the oldest owner invites.
///
/// # Errors
/// - `ROLE_NOT_FOUND` if the organization does not have a role.
/// - `YOU_ARE_NOT_ALLOWED_TO_INVITE_USER_WITH_THIS_ROLE` if a role has a permission that the caller lacks.
/// - `FORBIDDEN` if a caller other than a service names another inviter.
/// - `VALIDATION_ERROR` if no inviter is named and the organization has no owner.
/// - `STEP_UP_REQUIRED` if an owner is invited without a fresh proof of the caller's identity.
/// - `USER_IS_ALREADY_INVITED_TO_THIS_ORGANIZATION` if an invitation is pending and `resend` is not set.
/// - `USER_IS_ALREADY_A_MEMBER_OF_THIS_ORGANIZATION` if the address belongs to a member.
/// - `LIMIT_REACHED` if the organization has the maximum number of pending invitations, or if a mail quota is used up.
///   For a mail quota, `details.limit` is the number of mails and `details.retryAfter` the seconds to wait.
pub async fn invite(
    cx: &Context,
    scope: &MembershipScope<permission::InvitationCreate>,
    uow: &mut dyn UnitOfWork,
    inviter: Option<UserId>,
    new: NewInvitation<'_>,
) -> Result<Stored<Invitation>> {
    ensure_roles_known(scope.organization(), &new.role)?;
    ensure_can_give_roles(cx, scope, uow, &new.role).await?;
    let inviter = inviter_of(cx, scope, uow, inviter).await?;
    let organization = &scope.organization().id;
    ensure_not_member(uow, organization, &new.email).await?;
    let now = uow.now().await?;
    let to = InvitationQuery::PendingTo(organization.clone(), new.email.clone());
    let (stored, name) = match unowned_records::<Invitation>(uow).first(&to).await? {
        Some(seen) if seen.is_open(now) && !new.resend => {
            return Err(Error::of_code(Code::AlreadyInvited));
        }
        Some(seen) if seen.is_open(now) => resend(cx, scope, uow, &seen).await?,
        expired => {
            if let Some(seen) = expired {
                apply_event(cx, scope, uow, &seen, InvitationEvent::Expire).await?;
            }
            create(cx, scope, uow, &inviter, &new).await?
        }
    };
    take_invitation_mail(cx, uow, organization, &new.email).await?;
    let inviter = unowned_records::<User>(uow).find(&inviter).await?;
    let names = verification::InvitationNames {
        organization: scope.organization().name.as_str(),
        inviter: inviter.as_ref().map(|user| match user.name.as_str() {
            "" => user.email.as_str(),
            name => name,
        }),
    };
    let mail = verification::invitation_mail(&stored.email, names, &(new.link)(&name));
    queue_mail(cx, uow, new.cipher, &mail).await?;
    Ok(stored)
}

/// Counts a mail to the address and from the organization, and checks the mail quotas of both.
async fn take_invitation_mail(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    organization: &OrganizationId,
    email: &Email,
) -> Result<()> {
    let (kind, limits) = ("invitation", &cx.limits.mail);
    let to_address = [
        MailRate::per_hour(limits.invitations_per_hour),
        MailRate::per_day(limits.invitations_per_day),
    ];
    let from_organization = [MailRate::per_day(
        limits.invitations_per_organization_and_day,
    )];
    let pause = [MailRate::pause(limits.resend_pause)];
    let of_both = MailSubject::AddressOf {
        kind,
        email,
        organization,
    };
    let quotas = [
        (MailSubject::Address { kind, email }, &to_address[..]),
        (
            MailSubject::Organization { kind, organization },
            &from_organization[..],
        ),
        (of_both, &pause[..]),
    ];
    match check_mail_quotas(uow, &quotas).await? {
        MailPermit::Granted => Ok(()),
        MailPermit::Refused(exceeded) => Err(mail_limit_reached(exceeded)),
    }
}

fn mail_limit_reached(exceeded: ExceededRate) -> Error {
    let seconds = exceeded.retry_after.as_millis().div_ceil(1_000);
    let seconds = u64::try_from(seconds).unwrap_or(u64::MAX);
    Error::Refused {
        code: Code::LimitReached,
        message: "Too many invitations were mailed recently. Try again later.".to_owned(),
        details: json!({ "limit": exceeded.rate.max, "retryAfter": seconds }),
    }
}

/// Checks that the caller has every permission of the roles. To give ownership, the caller must be an owner with a
/// fresh proof of identity.
async fn ensure_can_give_roles(
    cx: &Context,
    scope: &MembershipScope<permission::InvitationCreate>,
    uow: &mut dyn UnitOfWork,
    roles: &Roles,
) -> Result<()> {
    let owner = roles.contains(&Role::OWNER);
    if !scope.has_permissions_of_roles(roles) || (owner && !scope.is_owner()) {
        return Err(Error::of_code(Code::NotAllowedToInviteRole));
    }
    match owner {
        true => ensure_fresh(cx, uow).await,
        false => Ok(()),
    }
}

async fn inviter_of(
    cx: &Context,
    scope: &MembershipScope<permission::InvitationCreate>,
    uow: &mut dyn UnitOfWork,
    named: Option<UserId>,
) -> Result<UserId> {
    match (cx.caller.user_id(), named) {
        (Some(own), None) => Ok(own.clone()),
        (Some(own), Some(named)) if *own == named => Ok(named),
        (None, Some(named)) if cx.caller.is_service() => Ok(named),
        (_, Some(_)) => Err(Error::Forbidden),
        (None, None) => first_owner(uow, &scope.organization().id).await,
    }
}

async fn first_owner(uow: &mut dyn UnitOfWork, organization: &OrganizationId) -> Result<UserId> {
    let owners = MemberQuery::OwnersOf(organization.clone());
    let owner = unowned_records::<Member>(uow).first(&owners).await?;
    let missing = || {
        Error::invalid(
            "inviterId",
            "required",
            "is required: the organization has no owner",
        )
    };
    owner.map(|owner| owner.user_id.clone()).ok_or_else(missing)
}

async fn ensure_not_member(
    uow: &mut dyn UnitOfWork,
    organization: &OrganizationId,
    email: &Email,
) -> Result<()> {
    let with_email = UserQuery::WithEmail(email.clone());
    let Some(user) = unowned_records::<User>(uow).first(&with_email).await? else {
        return Ok(());
    };
    match find_member(uow, organization, &user.id).await? {
        Some(_) => Err(Error::of_code(Code::AlreadyMember)),
        None => Ok(()),
    }
}

/// Gives a pending invitation a new secret and a new expiry. The previous secret becomes invalid.
async fn resend(
    cx: &Context,
    scope: &MembershipScope<permission::InvitationCreate>,
    uow: &mut dyn UnitOfWork,
    seen: &Stored<Invitation>,
) -> Result<(Stored<Invitation>, InvitationRef)> {
    ensure_can_give_roles(cx, scope, uow, &seen.role).await?;
    let name = InvitationRef::generate(seen.id.clone(), cx.entropy.as_ref());
    let mut next = seen.edit();
    next.secret_hash = name.secret_hash();
    next.expires_at = uow.now().await?.plus(INVITATION_LIFETIME);
    let stored = audited::replace(cx, scope, uow, seen, next, "invitation.resent").await?;
    Ok((stored, name))
}

async fn create(
    cx: &Context,
    scope: &MembershipScope<permission::InvitationCreate>,
    uow: &mut dyn UnitOfWork,
    inviter: &UserId,
    new: &NewInvitation<'_>,
) -> Result<(Stored<Invitation>, InvitationRef)> {
    let organization = &scope.organization().id;
    ensure_room_for_invitation(cx, uow, organization).await?;
    let now = uow.now().await?;
    let id = InvitationId::generate(now, cx.entropy.as_ref());
    let name = InvitationRef::generate(id.clone(), cx.entropy.as_ref());
    let invitation = Invitation {
        id,
        organization_id: organization.clone(),
        email: new.email.clone(),
        role: new.role.clone(),
        status: InvitationStatus::Pending,
        secret_hash: name.secret_hash(),
        expires_at: now.plus(INVITATION_LIFETIME),
        inviter_id: inviter.clone(),
        created_at: now,
    };
    let stored = audited::insert(cx, scope, uow, invitation, "invitation.created").await?;
    Ok((stored, name))
}

/// Returns a page of the organization's invitations, newest first.
///
/// # Errors
/// `INVALID_CURSOR` if the cursor was not issued for this list.
pub async fn list_invitations(
    scope: &MembershipScope<permission::InvitationRead>,
    uow: &mut dyn UnitOfWork,
    page: &PageQuery,
) -> Result<Page<Stored<Invitation>>> {
    let of = InvitationQuery::OfOrganization(scope.organization().id.clone());
    unowned_records::<Invitation>(uow).page(&of, page).await
}
