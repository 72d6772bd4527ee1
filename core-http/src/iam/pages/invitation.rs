//! Answering an invitation to an organization, by the link of the mail.

use std::sync::Arc;

use core_domain::access::{PublicScope, SessionScope, authorize_recipient, authorize_session};
use core_domain::gateway::RateClass;
use core_domain::kernel::{Code, Error, InvitationId, Result};
use core_domain::port::{Mode, UnitOfWork, transact};
use core_domain::use_case::iam::organization::{
    InvitationDetails, accept_invitation, get_invitation, reject_invitation,
};
use http::StatusCode;
use maud::{Markup, html};
use schemars::JsonSchema;
use serde::Deserialize;

use super::form::hidden;
use super::form_errors::FormErrors;
use super::layout;
use super::layout::moment;
use super::next::sign_in_first;
use super::row::{form, page};
use crate::iam::config::{Iam, with_parameters};
use crate::kernel::{Cx, Endpoint, Input, PageOr, get, post, status_of, with};

const PATH: &str = "/accept-invitation";
const TITLE: &str = "Invitation";

pub(super) fn rows(iam: &Arc<Iam>) -> Vec<Endpoint> {
    vec![
        page(get(PATH, "invitationPage"))
            .summary("Shows an invitation to its recipient.")
            .refuses(&[Code::NotRecipient, Code::PlatformSuspended])
            .refuses_as(Code::InvitationNotFound, StatusCode::NOT_FOUND)
            .plain(with(iam, show)),
        form(post(PATH, "answerInvitationByForm"))
            .summary("Accepts or declines an invitation.")
            .rate(RateClass::Strict)
            .refuses(&[
                Code::NotRecipient,
                Code::PlatformSuspended,
                Code::AlreadyMember,
                Code::MembershipLimitReached,
            ])
            .refuses_as(Code::InvitationNotFound, StatusCode::NOT_FOUND)
            .plain(with(iam, answer)),
    ]
}

/// Which invitation.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct InvitationQuery {
    id: InvitationId,
}

async fn show(
    cx: &Cx,
    iam: Arc<Iam>,
    _: PublicScope,
    input: Input<(), InvitationQuery>,
) -> Result<PageOr> {
    let id = &input.query.id;
    if authorize_session(cx).is_err() {
        return Ok(sign_in_first(&iam, &own_path(id)));
    }
    match find_invitation(cx, id).await {
        Ok(details) => {
            let content = content(&iam, &details, &FormErrors::none());
            Ok(layout::shown(&iam, TITLE, &content))
        }
        Err(error) => not_for_them(&iam, error, id),
    }
}

fn own_path(id: &InvitationId) -> String {
    with_parameters(PATH.to_owned(), &[("id", id.as_str())])
}

async fn find_invitation(cx: &Cx, id: &InvitationId) -> Result<InvitationDetails> {
    let mut uow = cx.app.store.begin(Mode::Read).await?;
    let found = details_for_recipient(cx, uow.as_mut(), id).await;
    uow.rollback().await;
    found
}

async fn details_for_recipient(
    cx: &Cx,
    uow: &mut dyn UnitOfWork,
    id: &InvitationId,
) -> Result<InvitationDetails> {
    let scope = authorize_recipient(cx, uow, id).await?;
    get_invitation(&scope, uow).await
}

fn content(iam: &Iam, details: &InvitationDetails, errors: &FormErrors) -> Markup {
    let InvitationDetails {
        invitation,
        organization,
        inviter,
    } = details;
    html! {
        (errors.show())
        p {
            @if let Some(inviter) = inviter {
                @if inviter.name.as_str().is_empty() { strong { (inviter.email) } }
                @else { strong { (inviter.name) } " (" (inviter.email) ")" }
            } @else { "Somebody" }
            " invites you to join " strong { (organization.name) } "."
        }
        dl {
            dt { "Organization" }
            dd { (organization.name) " (" (organization.slug) ")" }
            dt { "Your role" }
            dd { (invitation.role) }
            dt { "Open until" }
            dd { (moment(invitation.expires_at)) }
        }
        form method="post" action=(iam.path(PATH)) {
            (hidden("id", invitation.id.as_str()))
            div.actions {
                button type="submit" name="action" value="accept" { "Accept" }
                button.quiet type="submit" name="action" value="decline" { "Decline" }
            }
        }
    }
}

/// Tells somebody why there is nothing to answer.
fn not_for_them(iam: &Iam, error: Error, id: &InvitationId) -> Result<PageOr> {
    let code = error.code();
    let (status, content) = match code {
        Code::InvitationNotFound => (
            StatusCode::NOT_FOUND,
            html! {
                (layout::alert("This invitation is not open: it was answered, taken back, or is over."))
                p { "Ask whoever invited you for another one." }
            },
        ),
        Code::NotRecipient => (
            status_of(code),
            html! {
                (layout::alert("This invitation is for another address than that of your account."))
                p { "Sign out, and open the link again to sign in with the address it was sent to." }
                form method="post" action=(iam.path("/sign-out")) {
                    (hidden("next", &own_path(id)))
                    button type="submit" { "Sign out" }
                }
            },
        ),
        _ => return Err(error),
    };
    Ok(layout::refused(iam, TITLE, status, &content))
}

/// What a person answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Answer {
    Accept,
    Decline,
}

/// The fields of the form.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct AnswerForm {
    id: InvitationId,
    action: Answer,
}

async fn answer(
    cx: &Cx,
    iam: Arc<Iam>,
    _: PublicScope,
    input: Input<(), (), AnswerForm>,
) -> Result<PageOr> {
    let AnswerForm { id, action } = input.body;
    iam.refuse_foreign_form(cx)?;
    let Ok(session) = authorize_session(cx) else {
        return Ok(sign_in_first(&iam, &own_path(&id)));
    };
    let Err(error) = answered(cx, &session, &id, action).await else {
        let notice = match action {
            Answer::Accept => "joined",
            Answer::Decline => "declined",
        };
        return Ok(layout::to(&iam, &format!("/account?notice={notice}")));
    };
    if matches!(error.code(), Code::InvitationNotFound | Code::NotRecipient) {
        return not_for_them(&iam, error, &id);
    }
    let errors = FormErrors::of(error)?;
    let content = content(&iam, &find_invitation(cx, &id).await?, &errors);
    Ok(layout::refused(&iam, TITLE, errors.status(), &content))
}

async fn answered(
    cx: &Cx,
    session: &SessionScope,
    id: &InvitationId,
    action: Answer,
) -> Result<()> {
    transact(cx.app.store.as_ref(), |uow, _| {
        Box::pin(async move {
            let scope = authorize_recipient(cx, uow, id).await?;
            match action {
                Answer::Accept => accept_invitation(cx, &scope, session, uow).await,
                Answer::Decline => reject_invitation(cx, &scope, uow).await,
            }
        })
    })
    .await?;
    Ok(())
}
