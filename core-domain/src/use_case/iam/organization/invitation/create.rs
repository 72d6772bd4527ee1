//! Inviting people.

use super::super::refusal::ensure_roles_known;
use super::apply_event;
use crate::access::{MembershipScope, audited, ensure_fresh, find_member, unowned};
use crate::iam::{
    INVITATION_LIFETIME, Invitation, InvitationEvent, InvitationQuery, InvitationStatus,
    MAX_PENDING_INVITATIONS, Member, MemberQuery, User, UserQuery,
};
use crate::kernel::{
    Cipher, Code, Context, Email, Error, InvitationId, OrganizationId, Result, Role, Roles, Stored,
    UserId, grant,
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

/// Invites somebody to the organization. A service may name the inviter; without one, the first owner invites.
///
/// # Errors
/// `ROLE_NOT_FOUND`; `YOU_ARE_NOT_ALLOWED_TO_INVITE_USER_WITH_THIS_ROLE` for a role that allows more than the caller's;
/// `FORBIDDEN` for callers other than services who name another inviter; `VALIDATION_ERROR` if there is no inviter and nobody
/// owns the organization; `STEP_UP_REQUIRED` where an owner is invited; `USER_IS_ALREADY_INVITED_TO_THIS_ORGANIZATION`;
/// `USER_IS_ALREADY_A_MEMBER_OF_THIS_ORGANIZATION`; `INVITATION_LIMIT_REACHED`.
pub async fn invite(
    cx: &Context,
    scope: &MembershipScope<grant::InvitationCreate>,
    uow: &mut dyn UnitOfWork,
    inviter: Option<UserId>,
    new: NewInvitation<'_>,
) -> Result<Stored<Invitation>> {
    ensure_roles_known(scope.organization(), &new.role)?;
    ensure_may_give(scope, &new.role)?;
    let inviter = match (cx.caller.user_id(), inviter) {
        (Some(own), None) => own.clone(),
        (Some(own), Some(inviter)) if *own == inviter => inviter,
        (None, Some(inviter)) if cx.caller.is_service() => inviter,
        (_, Some(_)) => return Err(Error::Forbidden),
        (None, None) => first_owner(uow, &scope.organization().id).await?,
    };
    store(cx, scope, uow, &inviter, new).await
}

/// Refuses roles that allow more than the caller's, and ownership unless the caller is an owner.
fn ensure_may_give(scope: &MembershipScope<grant::InvitationCreate>, roles: &Roles) -> Result<()> {
    let owner = roles.contains(&Role::OWNER);
    if scope.holds_roles(roles) && (scope.is_owner() || !owner) {
        return Ok(());
    }
    Err(Error::of_code(Code::NotAllowedToInviteRole))
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
    scope: &MembershipScope<grant::InvitationCreate>,
    uow: &mut dyn UnitOfWork,
    inviter: &UserId,
    new: NewInvitation<'_>,
) -> Result<Stored<Invitation>> {
    let organization = scope.organization();
    if new.role.contains(&Role::OWNER) {
        ensure_fresh(cx, uow).await?;
    }
    let with_email = UserQuery::WithEmail(new.email.clone());
    if let Some(user) = unowned::<User>(uow).first(&with_email).await?
        && find_member(uow, &organization.id, &user.id)
            .await?
            .is_some()
    {
        return Err(Error::of_code(Code::AlreadyMember));
    }
    let now = uow.now().await?;
    let to = InvitationQuery::PendingTo(organization.id.clone(), new.email.clone());
    let pending = unowned::<Invitation>(uow).first(&to).await?;
    let stored = match pending {
        Some(seen) if seen.is_open(now) && !new.resend => {
            return Err(Error::of_code(Code::AlreadyInvited));
        }
        Some(seen) if seen.is_open(now) => {
            let mut next = seen.edit();
            next.expires_at = now.plus(INVITATION_LIFETIME);
            audited::replace(cx, scope, uow, &seen, next, "invitation.resent").await?
        }
        seen => {
            if let Some(seen) = seen {
                apply_event(cx, scope, uow, &seen, InvitationEvent::Expire).await?;
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
        return Err(Error::of_code(Code::InvitationLimitReached));
    }
    Ok(())
}
