//! Invitations of a person's organizations, and to the person.

use std::sync::Arc;

use core_domain::access::{PersonScope, SessionScope, authorize_person};
use core_domain::kernel::{Code, Email, Error, InvitationId, OrganizationId, Result};
use core_domain::port::UnitOfWork;
use core_domain::use_case::iam::organization::{self, Answered, NewInvitation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::config::Iam;
use super::common::{OnOwnOrganization, Own, both, own};
use super::members::OneOrMore;
use super::views::{InvitationView, MemberView};
use crate::kernel::{Cx, Endpoint, ErrorStyle, Input, Output, post, with};

/// How many invitations a list has at most.
const MOST: u32 = 100;

const OF_ANSWER: [Code; 2] = [Code::InvitationNotFound, Code::NotRecipient];

pub(super) fn rows(iam: &Arc<Iam>) -> Vec<Endpoint> {
    let mut rows = vec![
        post("/api/auth/organization/invite-member", "inviteMember")
            .summary("Invites somebody by mail.")
            .errors(ErrorStyle::TopLevelCode)
            .refuses(&[
                Code::OrganizationNotFound,
                Code::MemberNotFound,
                Code::RoleNotFound,
                Code::NotAllowedToInvite,
                Code::NotAllowedToInviteRole,
                Code::AlreadyInvited,
                Code::AlreadyMember,
                Code::InvitationLimitReached,
                Code::StepUpRequired,
                Code::InvalidEmail,
            ])
            .writes(with(iam, invite)),
        post(
            "/api/auth/organization/accept-invitation",
            "acceptInvitation",
        )
        .summary("Accepts an invitation; the session acts for the organization.")
        .errors(ErrorStyle::TopLevelCode)
        .refuses(&OF_ANSWER)
        .refuses(&[Code::AlreadyMember, Code::MembershipLimitReached])
        .writes(accept),
        post(
            "/api/auth/organization/reject-invitation",
            "rejectInvitation",
        )
        .summary("Declines an invitation.")
        .errors(ErrorStyle::TopLevelCode)
        .refuses(&OF_ANSWER)
        .writes(reject),
        post(
            "/api/auth/organization/cancel-invitation",
            "cancelOwnInvitation",
        )
        .summary("Takes an invitation back.")
        .errors(ErrorStyle::TopLevelCode)
        .refuses(&[Code::InvitationNotFound, Code::NotAllowedToCancelInvitation])
        .writes(cancel),
    ];
    let names = ["getInvitation", "getInvitationByPost"];
    rows.extend(both(
        "/api/auth/organization/get-invitation",
        names,
        |row| {
            let row = row.summary("An invitation, for its recipient.");
            row.refuses(&OF_ANSWER).reads(get)
        },
    ));
    let names = [
        "listOrganizationInvitations",
        "listOrganizationInvitationsByPost",
    ];
    rows.extend(both(
        "/api/auth/organization/list-invitations",
        names,
        |row| {
            let row = row.summary("The newest invitations of an organization.");
            row.refuses(&[Code::OrganizationNotFound, Code::NotMemberOfThis])
                .reads(list)
        },
    ));
    let names = ["listUserInvitations", "listUserInvitationsByPost"];
    rows.extend(both(
        "/api/auth/organization/list-user-invitations",
        names,
        |row| {
            let row = row.summary("The invitations that the caller can answer.");
            row.refuses(&[Code::EmailVerificationRequired])
                .reads(list_own)
        },
    ));
    rows
}

/// The body of an invitation.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct InviteMember {
    #[schemars(
        length(max = 254),
        regex(pattern = r"^[^\u0000]*$"),
        example = "eve@example.org"
    )]
    email: String,
    role: OneOrMore,
    organization_id: Option<OrganizationId>,
    /// One that waits already is sent again and extended.
    #[serde(default)]
    resend: bool,
}

impl OnOwnOrganization for InviteMember {
    const REFUSALS: [Code; 2] = [Code::OrganizationNotFound, Code::MemberNotFound];

    fn organization_id(&self) -> Option<&OrganizationId> {
        self.organization_id.as_ref()
    }
}

async fn invite(
    cx: &Cx,
    iam: Arc<Iam>,
    own: Own,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), InviteMember>,
) -> Result<Output<InvitationView>> {
    let body = input.body;
    let email = Email::parse(&body.email);
    let email = email.map_err(|_| Error::refused(Code::InvalidEmail, "Invalid email"))?;
    let new = NewInvitation {
        email,
        role: body.role.roles()?,
        resend: body.resend,
        link: &|id| iam.invitation_link(id),
        cipher: &cx.app.cipher,
    };
    let invitation = organization::invite(cx, &own.person, uow, &own.membership, new).await?;
    Ok(Output::new(InvitationView::new(&invitation)))
}

/// Which invitation.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct InvitationQuery {
    id: InvitationId,
}

/// An invitation and what its recipient is told of it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct InvitationForRecipient {
    #[serde(flatten)]
    invitation: InvitationView,
    organization_name: String,
    organization_slug: String,
    inviter_email: Option<Email>,
}

async fn get(
    cx: &Cx,
    _: SessionScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(), InvitationQuery>,
) -> Result<Output<InvitationForRecipient>> {
    let person = authorize_person(cx)?;
    let found = organization::get_invitation(&person, uow, &input.query.id).await?;
    Ok(Output::new(InvitationForRecipient {
        invitation: InvitationView::new(&found.invitation),
        organization_name: found.organization.name.to_string(),
        organization_slug: found.organization.slug.to_string(),
        inviter_email: found.inviter.map(|inviter| inviter.email.clone()),
    }))
}

/// The body of an answer.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct AnswerInvitation {
    invitation_id: InvitationId,
}

/// An invitation that was answered, and the membership it led to.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct AnsweredInvitation {
    invitation: InvitationView,
    member: Option<MemberView>,
}

impl From<Answered> for AnsweredInvitation {
    fn from(answered: Answered) -> Self {
        Self {
            invitation: InvitationView::new(&answered.invitation),
            member: answered.member.map(|found| MemberView::new(&found.member)),
        }
    }
}

async fn accept(
    cx: &Cx,
    session: SessionScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), AnswerInvitation>,
) -> Result<Output<AnsweredInvitation>> {
    let (person, id) = (authorize_person(cx)?, &input.body.invitation_id);
    let answered = organization::accept_invitation(cx, &person, &session, uow, id).await?;
    Ok(Output::new(answered.into()))
}

async fn reject(
    cx: &Cx,
    _: SessionScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), AnswerInvitation>,
) -> Result<Output<AnsweredInvitation>> {
    let (person, id) = (authorize_person(cx)?, &input.body.invitation_id);
    let answered = organization::reject_invitation(cx, &person, uow, id).await?;
    Ok(Output::new(answered.into()))
}

async fn cancel(
    cx: &Cx,
    _: SessionScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), AnswerInvitation>,
) -> Result<Output<InvitationView>> {
    let (person, id) = (authorize_person(cx)?, &input.body.invitation_id);
    let canceled = organization::cancel_invitation(cx, &person, uow, id).await?;
    Ok(Output::new(InvitationView::new(&canceled)))
}

/// Of which organization; the active one when none is named.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct OfOrganization {
    organization_id: Option<OrganizationId>,
}

async fn list(
    cx: &Cx,
    session: SessionScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(), OfOrganization>,
) -> Result<Output<Vec<InvitationView>>> {
    let codes = [Code::OrganizationNotFound, Code::NotMemberOfThis];
    let own = own(cx, &session, uow, input.query.organization_id, codes).await?;
    let invitations = organization::list_invitations(&own.membership, uow, MOST).await?;
    let views = invitations.iter().map(|i| InvitationView::new(i));
    Ok(Output::new(views.collect()))
}

/// An invitation to the caller.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct OwnInvitation {
    #[serde(flatten)]
    invitation: InvitationView,
    organization_name: Option<String>,
}

async fn list_own(
    _: &Cx,
    scope: PersonScope,
    uow: &mut dyn UnitOfWork,
    _: Input,
) -> Result<Output<Vec<OwnInvitation>>> {
    let found = organization::list_own(&scope, uow).await?.into_iter();
    let views = found.map(|(invitation, organization)| OwnInvitation {
        invitation: InvitationView::new(&invitation),
        organization_name: organization.map(|organization| organization.name.to_string()),
    });
    Ok(Output::new(views.collect()))
}
