//! Invitations by the suite's own routes.

use std::sync::Arc;

use core_domain::access::MembershipScope;
use core_domain::iam::{Invitation, Invite};
use core_domain::kernel::{
    Code, Error, InvitationId, ListQuery, OrganizationId, Result, Role, Stored, grant,
};
use core_domain::port::UnitOfWork;
use core_domain::use_case::iam::organization::{self, Cancellation, NewInvitation};
use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;

use super::config::Iam;
use crate::kernel::{Cx, Endpoint, Input, ListP4, Output, delete, get, post, with};

const ALL: &str = "/api/core/organizations/{orgId}/invitations";

pub(super) fn rows(iam: &Arc<Iam>) -> Vec<Endpoint> {
    vec![
        get(ALL, "listInvitations")
            .summary("The invitations of an organization, newest first.")
            .reads(list),
        post(ALL, "createInvitation")
            .summary("Invites somebody by mail.")
            .success(&[StatusCode::CREATED])
            .refuses(&[
                Code::Conflict,
                Code::NotFound,
                Code::InvitationLimitReached,
                Code::RoleNotFound,
                Code::StepUpRequired,
            ])
            .rewords(Code::NotAllowedToInviteRole, Code::Forbidden)
            .rewords(Code::AlreadyInvited, Code::Conflict)
            .rewords(Code::AlreadyMember, Code::Conflict)
            .writes(with(iam, create)),
        delete(
            "/api/core/organizations/{orgId}/invitations/{invitationId}",
            "cancelInvitation",
        )
        .summary("Takes an invitation back.")
        .rewords(Code::InvitationNotFound, Code::NotFound)
        .writes(cancel),
    ]
}

async fn list(
    _: &Cx,
    scope: MembershipScope<grant::InvitationRead>,
    uow: &mut dyn UnitOfWork,
    input: Input<(OrganizationId,), ListQuery>,
) -> Result<Output<ListP4<Invitation>>> {
    let page = organization::list_invitations(&scope, uow, &input.query.page()).await?;
    Ok(Output::new(ListP4 {
        cursor: page.next.map(|cursor| cursor.0),
        data: page.items.into_iter().map(Stored::into_inner).collect(),
    }))
}

async fn create(
    cx: &Cx,
    iam: Arc<Iam>,
    scope: MembershipScope<grant::InvitationCreate>,
    uow: &mut dyn UnitOfWork,
    input: Input<(OrganizationId,), (), Invite>,
) -> Result<Stored<Invitation>> {
    let body = input.body;
    let role = Role::parse(body.role.as_str());
    let role = role.ok_or_else(|| Error::Internal("a role that is none".to_owned()))?;
    let new = NewInvitation {
        email: body.email,
        role: role.into(),
        resend: false,
        link: &|name| iam.invitation_link(name),
        cipher: &cx.app.cipher,
    };
    organization::invite(cx, &scope, uow, body.inviter_id, new).await
}

/// The invitation that was taken back.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct CanceledInvitation {
    id: InvitationId,
}

async fn cancel(
    cx: &Cx,
    scope: MembershipScope<grant::InvitationCancel>,
    uow: &mut dyn UnitOfWork,
    input: Input<(OrganizationId, InvitationId)>,
) -> Result<Output<CanceledInvitation>> {
    let (_, id) = input.path;
    match organization::cancel_invitation(cx, &scope, uow, &id).await? {
        Cancellation::Canceled(_) => Ok(Output::new(CanceledInvitation { id })),
        Cancellation::CanceledBefore(_) => Err(Error::of_code(Code::InvitationNotFound)),
    }
}
