//! Invitations to organizations: sending, canceling, listing and answering them.

use std::sync::Arc;

use core_domain::access::{
    MembershipScope, PersonScope, RecipientScope, Requirement, authorize_invitation,
    authorize_recipient,
};
use core_domain::gateway::RateClass;
use core_domain::iam::InvitationRef;
use core_domain::kernel::{
    Code, Context, Email, Error, InvitationId, OrganizationId, PageQuery, PermissionType, Result,
    permission,
};
use core_domain::port::UnitOfWork;
use core_domain::use_case::iam::organization::{
    self, Cancellation, InvitationAnswer, NewInvitation,
};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::config::Iam;
use super::common::{get_and_post, names_organization};
use super::member::RolesInput;
use super::views::{InvitationView, MemberView};
use crate::kernel::{
    BySession, Cx, Endpoint, ErrorStyle, Input, OpenScope, Output, Row, post, with,
};

/// Maximum number of invitations in a list.
const MAX_INVITATIONS: u32 = 100;

/// Adds the refusals of operations that only the recipient of an invitation can call.
fn for_recipient(row: Row) -> Row {
    row.refuses(&[
        Code::InvitationNotFound,
        Code::NotRecipient,
        Code::EmailVerificationRequiredToAnswer,
        Code::PlatformSuspended,
    ])
}

pub(super) fn rows(iam: &Arc<Iam>) -> Vec<Endpoint> {
    let style = |row: Row| row.errors(ErrorStyle::TopLevelCode);
    let mut rows = vec![
        style(post("/api/auth/organization/invite-member", "inviteMember"))
            .summary("Invites a person by mail, or resends a pending invitation.")
            .description(
                "Creates a pending invitation that is valid for 48 hours and mails its link. With \
                 `resend`, a pending invitation keeps its id and role and gets a new link and a \
                 new expiry; its previous link becomes invalid. Without it, a second invitation \
                 of the same address is refused. Inviting an owner requires a proof of identity \
                 from the last 10 minutes. The number of invitation mails per address and \
                 organization is limited.",
            )
            .rate(RateClass::Strict)
            .replaces_code(Code::NoActiveOrganization, Code::OrganizationNotFound)
            .replaces_code(Code::NotFound, Code::MemberNotFound)
            .replaces_code(Code::Forbidden, Code::NotAllowedToInvite)
            .refuses(&[
                Code::RoleNotFound,
                Code::NotAllowedToInviteRole,
                Code::AlreadyInvited,
                Code::AlreadyMember,
                Code::LimitReached,
                Code::StepUpRequired,
                Code::InvalidEmail,
            ])
            .writes(with(iam, invite)),
        for_recipient(style(post(
            "/api/auth/organization/accept-invitation",
            "acceptInvitation",
        )))
        .summary("Accepts an invitation.")
        .description(
            "Makes the caller a member with the invited roles; the session then acts for the \
             organization. The caller must have a verified address or use the id with the secret \
             from the mailed link. The caller's address counts as verified from then on. An \
             invitation can be answered once.",
        )
        .refuses(&[Code::AlreadyMember, Code::LimitReached])
        .writes(with(iam, accept)),
        for_recipient(style(post(
            "/api/auth/organization/reject-invitation",
            "rejectInvitation",
        )))
        .summary("Declines an invitation.")
        .description(
            "The caller must have a verified address or use the id with the secret from the \
             mailed link. The caller's address counts as verified from then on. An invitation can \
             be answered once.",
        )
        .writes(with(iam, reject)),
        style(post(
            "/api/auth/organization/cancel-invitation",
            "cancelOwnInvitation",
        ))
        .summary("Cancels a pending invitation.")
        .description(
            "The link of the invitation becomes invalid at once. A repeated call returns the \
             canceled invitation again. An invitation that was answered or has expired is \
             rejected as not found.",
        )
        .rate(RateClass::Strict)
        .replaces_code(Code::NotFound, Code::InvitationNotFound)
        .replaces_code(Code::Forbidden, Code::NotAllowedToCancelInvitation)
        .writes(cancel),
    ];
    let names = ["getInvitation", "getInvitationByPost"];
    rows.extend(get_and_post(
        "/api/auth/organization/get-invitation",
        names,
        |row| {
            let row = row.summary("Returns an invitation to its recipient.")
            .description(
                "Returns a pending invitation with the names of the organization and the inviter. \
                 The caller must have a verified address or use the id with the secret from the \
                 mailed link. An invitation that can no longer be answered is rejected as not \
                 found.",
            );
            for_recipient(row).reads(get)
        },
    ));
    let names = [
        "listOrganizationInvitations",
        "listOrganizationInvitationsByPost",
    ];
    rows.extend(get_and_post(
        "/api/auth/organization/list-invitations",
        names,
        |row| {
            let row = row
                .summary("Lists the newest invitations of an organization.")
                .description("Returns at most 100 invitations of every status, newest first.");
            row.replaces_code(Code::NoActiveOrganization, Code::OrganizationNotFound)
                .replaces_code(Code::NotFound, Code::NotMemberOfOrganization)
                .reads(list)
        },
    ));
    let names = ["listUserInvitations", "listUserInvitationsByPost"];
    rows.extend(get_and_post(
        "/api/auth/organization/list-user-invitations",
        names,
        |row| {
            let row = row.summary("Lists the invitations that the caller can answer.")
            .description(
                "Returns at most 100 pending invitations to the caller's address, which must be \
                 verified.",
            );
            row.refuses(&[Code::EmailVerificationRequired])
                .reads(list_own)
        },
    ));
    rows
}

/// The person to invite and their roles.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct InviteMember {
    /// The email address of the person to invite.
    #[schemars(
        length(max = 254),
        regex(pattern = r"^[^\u0000]*$"),
        example = "eve@example.org"
    )]
    email: String,
    /// The roles that the person gets in the organization.
    role: RolesInput,
    /// The organization. Default: the active organization.
    organization_id: Option<OrganizationId>,
    /// Whether a pending invitation is sent again and extended. Default: false.
    #[serde(default)]
    resend: bool,
}

names_organization!(InviteMember);

async fn invite(
    cx: &Cx,
    iam: Arc<Iam>,
    scope: BySession<MembershipScope<permission::InvitationCreate>>,
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
        link: &|name| iam.invitation_link(name),
        cipher: &cx.app.cipher,
    };
    let invitation = organization::invite(cx, &scope, uow, None, new).await?;
    Ok(Output::new(InvitationView::new(&invitation)))
}

/// Selects the invitation to return.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct InvitationQuery {
    /// The id of the invitation, or the id and secret from the mailed link.
    id: InvitationRef,
}

/// An invitation with the details that its recipient needs.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct InvitationForRecipient {
    #[serde(flatten)]
    invitation: InvitationView,
    /// The name of the organization.
    organization_name: String,
    /// The slug of the organization.
    organization_slug: String,
    /// The email address of the inviter; `null` if that user was deleted.
    inviter_email: Option<Email>,
}

/// A request about an invitation that the caller received.
trait OnReceivedInvitation {
    /// Returns the reference to the invitation.
    fn invitation(&self) -> &InvitationRef;
}

impl<I: OnReceivedInvitation + Sync> OpenScope<I> for RecipientScope {
    const REQUIREMENT: Requirement = Requirement::Person;

    fn open<'a>(
        cx: &'a Context,
        uow: &'a mut dyn UnitOfWork,
        input: &'a I,
    ) -> BoxFuture<'a, Result<Self>> {
        Box::pin(authorize_recipient(cx, uow, input.invitation()))
    }
}

impl OnReceivedInvitation for Input<(), InvitationQuery> {
    fn invitation(&self) -> &InvitationRef {
        &self.query.id
    }
}

async fn get(
    _: &Cx,
    scope: BySession<RecipientScope>,
    uow: &mut dyn UnitOfWork,
    _: Input<(), InvitationQuery>,
) -> Result<Output<InvitationForRecipient>> {
    let found = organization::get_invitation(&scope, uow).await?;
    Ok(Output::new(InvitationForRecipient {
        invitation: InvitationView::new(&found.invitation),
        organization_name: found.organization.name.to_string(),
        organization_slug: found.organization.slug.to_string(),
        inviter_email: found.inviter.map(|inviter| inviter.email.clone()),
    }))
}

/// The invitation that the caller answers.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct AnswerInvitation {
    /// The id of the invitation, or the id and secret from the mailed link.
    invitation_id: InvitationRef,
}

impl OnReceivedInvitation for Input<(), (), AnswerInvitation> {
    fn invitation(&self) -> &InvitationRef {
        &self.body.invitation_id
    }
}

/// The answered invitation and the new membership.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct AnsweredInvitation {
    /// The invitation with its new status.
    invitation: InvitationView,
    /// The new membership; `null` if the invitation was declined.
    member: Option<MemberView>,
}

impl From<InvitationAnswer> for AnsweredInvitation {
    fn from(answered: InvitationAnswer) -> Self {
        Self {
            invitation: InvitationView::new(&answered.invitation),
            member: answered.member.map(|found| MemberView::new(&found.member)),
        }
    }
}

async fn accept(
    cx: &Cx,
    iam: Arc<Iam>,
    scope: BySession<RecipientScope>,
    uow: &mut dyn UnitOfWork,
    _: Input<(), (), AnswerInvitation>,
) -> Result<Output<AnsweredInvitation>> {
    let (session, notices) = (&scope.session, iam.notices(cx));
    let answered = organization::accept_invitation(cx, &scope, session, uow, notices).await?;
    Ok(Output::new(answered.into()))
}

async fn reject(
    cx: &Cx,
    iam: Arc<Iam>,
    scope: BySession<RecipientScope>,
    uow: &mut dyn UnitOfWork,
    _: Input<(), (), AnswerInvitation>,
) -> Result<Output<AnsweredInvitation>> {
    let (session, notices) = (&scope.session, iam.notices(cx));
    let answered = organization::reject_invitation(cx, &scope, session, uow, notices).await?;
    Ok(Output::new(answered.into()))
}

/// The invitation to cancel.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct CancelInvitation {
    /// The id of the invitation.
    invitation_id: InvitationId,
}

impl<G: PermissionType, Q: Sync> OpenScope<Input<(), Q, CancelInvitation>> for MembershipScope<G> {
    const REQUIREMENT: Requirement = Requirement::Permission(G::PERMISSION);

    fn open<'a>(
        cx: &'a Context,
        uow: &'a mut dyn UnitOfWork,
        input: &'a Input<(), Q, CancelInvitation>,
    ) -> BoxFuture<'a, Result<Self>> {
        Box::pin(authorize_invitation(cx, uow, &input.body.invitation_id))
    }
}

async fn cancel(
    cx: &Cx,
    scope: BySession<MembershipScope<permission::InvitationCancel>>,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), CancelInvitation>,
) -> Result<Output<InvitationView>> {
    let id = &input.body.invitation_id;
    let (Cancellation::Canceled(canceled) | Cancellation::AlreadyCanceled(canceled)) =
        organization::cancel_invitation(cx, &scope, uow, id).await?;
    Ok(Output::new(InvitationView::new(&canceled)))
}

/// Selects the organization whose invitations are listed.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct OrganizationQuery {
    /// The organization. Default: the active organization.
    organization_id: Option<OrganizationId>,
}

names_organization!(OrganizationQuery);

async fn list(
    _: &Cx,
    scope: BySession<MembershipScope<permission::InvitationRead>>,
    uow: &mut dyn UnitOfWork,
    _: Input<(), OrganizationQuery>,
) -> Result<Output<Vec<InvitationView>>> {
    let page = PageQuery::first(MAX_INVITATIONS).without_count();
    let invitations = organization::list_invitations(&scope, uow, &page).await?;
    let views = invitations.items.iter().map(|i| InvitationView::new(i));
    Ok(Output::new(views.collect()))
}

/// An invitation that the caller received.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct OwnInvitation {
    #[serde(flatten)]
    invitation: InvitationView,
    /// The name of the organization; `null` if it was deleted.
    organization_name: Option<String>,
}

async fn list_own(
    _: &Cx,
    scope: PersonScope,
    uow: &mut dyn UnitOfWork,
    _: Input,
) -> Result<Output<Vec<OwnInvitation>>> {
    let found = organization::list_received(&scope, uow).await?.into_iter();
    let views = found.map(|(invitation, organization)| OwnInvitation {
        invitation: InvitationView::new(&invitation),
        organization_name: organization.map(|organization| organization.name.to_string()),
    });
    Ok(Output::new(views.collect()))
}
