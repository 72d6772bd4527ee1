//! Answering invitations, by their recipients.

use super::super::active::set_active;
use super::super::limits::ensure_room_for_member;
use super::super::member::{MemberOfOrganization, member_with_user};
use super::apply_event;
use crate::access::{
    PersonScope, RecipientScope, SessionScope, audited, ensure_can_own_another, find_member,
    unowned,
};
use crate::iam::{Invitation, InvitationEvent, InvitationQuery, Member, Organization, User};
use crate::kernel::{Code, Context, Effect, Error, MemberId, Result, Role, Stored};
use crate::port::UnitOfWork;
use crate::use_case::iam::user::confirm_email;
use crate::use_case::iam::verification::Notices;

/// An open invitation, as its recipient sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct InvitationDetails {
    /// The invitation.
    pub invitation: Stored<Invitation>,
    /// The organization.
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
    let inviter = unowned::<User>(uow).find(&invitation.inviter_id).await?;
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
        return Err(Error::of_code(Code::EmailVerificationRequired));
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

/// An invitation that was answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Answered {
    /// The invitation.
    pub invitation: Stored<Invitation>,
    /// The membership it led to.
    pub member: Option<MemberOfOrganization>,
}

/// Accepts an invitation: of two at once one makes a member. The session acts for the organization from now on. The
/// recipient's address is confirmed from now on.
///
/// # Errors
/// `INVITATION_NOT_FOUND` if the invitation can no longer be answered; `USER_IS_ALREADY_A_MEMBER_OF_THIS_ORGANIZATION`;
/// `LIMIT_REACHED` if the organization has as many members as it may have, and for a new owner with as many organizations as one
/// person may own.
pub async fn accept_invitation(
    cx: &Context,
    scope: &RecipientScope,
    session: &SessionScope,
    uow: &mut dyn UnitOfWork,
    notices: Notices<'_>,
) -> Result<Answered> {
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
    Ok(Answered {
        invitation,
        member: Some(member_with_user(uow, member).await?),
    })
}

/// Declines an invitation. The recipient's address is confirmed from now on.
///
/// # Errors
/// `INVITATION_NOT_FOUND` if the invitation can no longer be answered.
pub async fn reject_invitation(
    cx: &Context,
    scope: &RecipientScope,
    session: &SessionScope,
    uow: &mut dyn UnitOfWork,
    notices: Notices<'_>,
) -> Result<Answered> {
    let seen = open_invitation(scope, uow).await?;
    confirm_email(cx, session, uow, scope.user(), notices).await?;
    let invitation = apply_event(cx, scope, uow, seen, InvitationEvent::Reject).await?;
    Ok(Answered {
        invitation,
        member: None,
    })
}
