//! The suite's own routes for invitations.

use std::sync::Arc;

use core_domain::access::MembershipScope;
use core_domain::gateway::RateClass;
use core_domain::iam::{Invitation, Invite};
use core_domain::kernel::{
    Code, Cursor, Error, InvitationId, Limit, OrganizationId, PageQuery, Result, Role, Stored,
    Total, permission,
};
use core_domain::port::UnitOfWork;
use core_domain::use_case::iam::organization::{self, Cancellation, NewInvitation};
use http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::config::Iam;
use crate::kernel::{Cx, Endpoint, Input, ListP4, Output, delete, get, post, with};

const ALL: &str = "/api/core/organizations/{orgId}/invitations";

pub(super) fn rows(iam: &Arc<Iam>) -> Vec<Endpoint> {
    vec![
        get(ALL, "listInvitations")
            .summary("Lists the invitations of an organization, newest first.")
            .description("Returns invitations of every status, a page at a time.")
            .reads(list),
        post(ALL, "createInvitation")
            .summary("Invites a person to an organization by mail.")
            .description(
                "Creates a pending invitation that is valid for 48 hours and mails its link. A \
                 second invitation of the same address is a conflict while the first one is \
                 pending; an expired one is replaced. Inviting an owner requires a proof of \
                 identity from the last 10 minutes. The number of invitation mails per address \
                 and organization is limited.",
            )
            .rate(RateClass::Strict)
            .success(&[StatusCode::CREATED])
            .refuses(&[
                Code::Conflict,
                Code::NotFound,
                Code::LimitReached,
                Code::RoleNotFound,
                Code::StepUpRequired,
            ])
            .replaces_code(Code::NotAllowedToInviteRole, Code::Forbidden)
            .replaces_code(Code::AlreadyInvited, Code::Conflict)
            .replaces_code(Code::AlreadyMember, Code::Conflict)
            .writes(with(iam, create)),
        delete(
            "/api/core/organizations/{orgId}/invitations/{invitationId}",
            "cancelInvitation",
        )
        .summary("Cancels a pending invitation.")
        .description(
            "The link of the invitation becomes invalid at once. An invitation that was already \
             canceled, answered or has expired is rejected as not found.",
        )
        .rate(RateClass::Strict)
        .replaces_code(Code::InvitationNotFound, Code::NotFound)
        .writes(cancel),
    ]
}

/// Paging of the list. `limit` must be an integer from 1 to 100; other lists reduce a larger limit to 100.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct InvitationListQuery {
    /// Maximum number of invitations on a page. Default: 50.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 100))]
    limit: u32,
    /// The cursor of the page. Default: the beginning of the list.
    cursor: Option<Cursor>,
}

const fn default_limit() -> u32 {
    Limit::DEFAULT.0
}

async fn list(
    _: &Cx,
    scope: MembershipScope<permission::InvitationRead>,
    uow: &mut dyn UnitOfWork,
    input: Input<(OrganizationId,), InvitationListQuery>,
) -> Result<Output<ListP4<Invitation>>> {
    let page = PageQuery {
        limit: input.query.limit,
        cursor: input.query.cursor,
        total: Total::Unknown,
    };
    let page = organization::list_invitations(&scope, uow, &page.without_count()).await?;
    Ok(Output::new(ListP4 {
        cursor: page.next.map(|cursor| cursor.0),
        data: page.items.into_iter().map(Stored::into_inner).collect(),
    }))
}

async fn create(
    cx: &Cx,
    iam: Arc<Iam>,
    scope: MembershipScope<permission::InvitationCreate>,
    uow: &mut dyn UnitOfWork,
    input: Input<(OrganizationId,), (), Invite>,
) -> Result<Stored<Invitation>> {
    let body = input.body;
    let role = Role::parse(body.role.as_str());
    let role =
        role.ok_or_else(|| Error::Internal("an invitation role cannot be parsed".to_owned()))?;
    let new = NewInvitation {
        email: body.email,
        role: role.into(),
        resend: false,
        link: &|name| iam.invitation_link(name),
        cipher: &cx.app.cipher,
    };
    organization::invite(cx, &scope, uow, body.inviter_id, new).await
}

/// The canceled invitation.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct CanceledInvitation {
    /// The id of the invitation.
    id: InvitationId,
}

async fn cancel(
    cx: &Cx,
    scope: MembershipScope<permission::InvitationCancel>,
    uow: &mut dyn UnitOfWork,
    input: Input<(OrganizationId, InvitationId)>,
) -> Result<Output<CanceledInvitation>> {
    let (_, id) = input.path;
    match organization::cancel_invitation(cx, &scope, uow, &id).await? {
        Cancellation::Canceled(_) => Ok(Output::new(CanceledInvitation { id })),
        Cancellation::AlreadyCanceled(_) => Err(Error::of_code(Code::InvitationNotFound)),
    }
}
