//! The page on which a person answers an invitation to an organization. The secret of the mailed link is part of the
//! URL and of the forms, so that it survives sign-in and sign-up.

use std::sync::Arc;

use core_domain::access::{
    PublicScope, SessionScope, authorize_person, authorize_recipient, authorize_session,
};
use core_domain::gateway::RateClass;
use core_domain::iam::InvitationRef;
use core_domain::kernel::{Code, Error, Result};
use core_domain::port::{Mode, UnitOfWork, transact};
use core_domain::use_case::iam::organization::{
    InvitationDetails, accept_invitation, get_invitation, reject_invitation,
};
use core_domain::use_case::iam::user;
use core_domain::use_case::iam::verification::Links;
use http::StatusCode;
use maud::{Markup, html};
use schemars::JsonSchema;
use serde::Deserialize;

use super::form::hidden_field;
use super::form_errors::{FieldMessage, FormErrors};
use super::layout;
use super::layout::moment;
use super::next::sign_in_first;
use super::row::{form, page};
use crate::iam::config::{Iam, with_parameters};
use crate::kernel::{Cx, Endpoint, Input, PageOr, get, post, status_of, with};

const PATH: &str = "/accept-invitation";
const CONFIRM: &str = "/accept-invitation/confirm";
const TITLE: &str = "Invitation";

pub(super) fn rows(iam: &Arc<Iam>) -> Vec<Endpoint> {
    vec![
        page(get(PATH, "invitationPage"))
            .summary("Shows an invitation to its recipient.")
            .description(
                "Shows the organization and the inviter, with a form to accept or decline. \
                 Redirects to the sign-in page without a session. A recipient without a verified \
                 address needs the secret from the mailed link.",
            )
            .refuses(&[
                Code::NotRecipient,
                Code::EmailVerificationRequiredToAnswer,
                Code::PlatformSuspended,
            ])
            .refuses_as(Code::InvitationNotFound, StatusCode::NOT_FOUND)
            .plain(with(iam, show)),
        form(post(PATH, "answerInvitationByForm"))
            .summary("Accepts or declines an invitation.")
            .description(
                "Accepting makes the caller a member with the invited roles, and the session then \
                 acts for the organization. In both cases the caller's address counts as verified \
                 from then on. Redirects to the account page. An invitation can be answered once.",
            )
            .rate(RateClass::Strict)
            .refuses(&[
                Code::NotRecipient,
                Code::EmailVerificationRequiredToAnswer,
                Code::PlatformSuspended,
                Code::AlreadyMember,
                Code::LimitReached,
            ])
            .refuses_as(Code::InvitationNotFound, StatusCode::NOT_FOUND)
            .plain(with(iam, answer)),
        form(post(CONFIRM, "confirmAddressForInvitationByForm"))
            .summary("Mails an email verification link that returns to the invitation.")
            .description(
                "Mails the link if the caller's address is not verified yet, and redirects to the \
                 invitation.",
            )
            .rate(RateClass::Strict)
            .plain(with(iam, confirm)),
    ]
}

/// The confirmation that the page shows after an action.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Notice {
    MailSent,
}

/// The query of the invitation page.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct InvitationQuery {
    /// The id of the invitation, or the id and secret from the mailed link.
    id: InvitationRef,
    /// The confirmation to show. Default: none.
    notice: Option<Notice>,
}

async fn show(
    cx: &Cx,
    iam: Arc<Iam>,
    _: PublicScope,
    input: Input<(), InvitationQuery>,
) -> Result<PageOr> {
    let name = &input.query.id;
    if authorize_session(cx).is_err() {
        return Ok(sign_in_first(&iam, &own_path(name)));
    }
    match find_invitation(cx, name).await {
        Ok(details) => {
            let content = content(&iam, &details, name, &FormErrors::none());
            Ok(layout::page(&iam, TITLE, &content))
        }
        Err(error)
            if error.code() == Code::EmailVerificationRequiredToAnswer
                && matches!(input.query.notice, Some(Notice::MailSent)) =>
        {
            let words = "A mail is on its way to the address of your account. Open its link to confirm the address.";
            let content = html! {
                (layout::notice(words))
                p { "It leads back to the invitation." }
            };
            Ok(layout::page(&iam, TITLE, &content))
        }
        Err(error) => refusal_page(&iam, error, name),
    }
}

fn own_path(name: &InvitationRef) -> String {
    with_parameters(PATH.to_owned(), &[("id", &name.expose())])
}

async fn find_invitation(cx: &Cx, name: &InvitationRef) -> Result<InvitationDetails> {
    let mut uow = cx.app.store.begin(Mode::Read).await?;
    let found = details_for_recipient(cx, uow.as_mut(), name).await;
    uow.rollback().await;
    found
}

async fn details_for_recipient(
    cx: &Cx,
    uow: &mut dyn UnitOfWork,
    name: &InvitationRef,
) -> Result<InvitationDetails> {
    let scope = authorize_recipient(cx, uow, name).await?;
    get_invitation(&scope, uow).await
}

fn content(
    iam: &Iam,
    details: &InvitationDetails,
    name: &InvitationRef,
    errors: &FormErrors,
) -> Markup {
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
            dt { "Valid until" }
            dd { (moment(invitation.expires_at)) }
        }
        form method="post" action=(iam.path(PATH)) {
            (hidden_field("id", &name.expose()))
            div.actions {
                button type="submit" name="action" value="accept" { "Accept" }
                button.quiet type="submit" name="action" value="decline" { "Decline" }
            }
        }
    }
}

/// Returns the page for a caller who cannot answer the invitation, with the reason.
fn refusal_page(iam: &Iam, error: Error, name: &InvitationRef) -> Result<PageOr> {
    let code = error.code();
    let (status, content) = match code {
        Code::InvitationNotFound => (
            StatusCode::NOT_FOUND,
            html! {
                (layout::alert("This invitation is not open: it was answered or canceled, or it has expired."))
                p { "Ask the person who invited you for a new invitation." }
            },
        ),
        Code::NotRecipient => (
            status_of(code),
            html! {
                (layout::alert("This invitation is for another address than the address of your account."))
                p { "Sign out, open the link again, and sign in with the address that the invitation was sent to." }
                form method="post" action=(iam.path("/sign-out")) {
                    (hidden_field("next", &own_path(name)))
                    button type="submit" { "Sign out" }
                }
            },
        ),
        Code::EmailVerificationRequiredToAnswer => (
            status_of(code),
            html! {
                (layout::alert("The address of your account is not confirmed yet."))
                p { "Open the link in the invitation mail again, or confirm your address first." }
                form method="post" action=(iam.path(CONFIRM)) {
                    (hidden_field("id", &name.expose()))
                    button type="submit" { "Send me a mail to confirm my address" }
                }
            },
        ),
        _ => return Err(error),
    };
    Ok(layout::error_page(iam, TITLE, status, &content))
}

/// The answer to an invitation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Answer {
    Accept,
    Decline,
}

/// The fields of the form with the answer.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct AnswerForm {
    /// The id of the invitation, or the id and secret from the mailed link.
    id: InvitationRef,
    /// Accepts or declines the invitation.
    action: Answer,
}

async fn answer(
    cx: &Cx,
    iam: Arc<Iam>,
    _: PublicScope,
    input: Input<(), (), AnswerForm>,
) -> Result<PageOr> {
    let AnswerForm { id: name, action } = input.body;
    iam.ensure_trusted_form(cx)?;
    let Ok(session) = authorize_session(cx) else {
        return Ok(sign_in_first(&iam, &own_path(&name)));
    };
    let Err(error) = answer_invitation(cx, &iam, &session, &name, action).await else {
        let notice = match action {
            Answer::Accept => "joined",
            Answer::Decline => "declined",
        };
        return Ok(layout::redirect(&iam, &format!("/account?notice={notice}")));
    };
    if matches!(
        error.code(),
        Code::InvitationNotFound | Code::NotRecipient | Code::EmailVerificationRequiredToAnswer
    ) {
        return refusal_page(&iam, error, &name);
    }
    let errors = FormErrors::on_page(error, words)?;
    let details = find_invitation(cx, &name).await?;
    let content = content(&iam, &details, &name, &errors);
    Ok(layout::error_page(&iam, TITLE, errors.status(), &content))
}

/// Returns the message of this page for a refusal.
fn words(code: Code) -> Option<FieldMessage> {
    let words = "The organization has the maximum number of members, or you own the maximum number of organizations.";
    (code == Code::LimitReached).then_some((None, words))
}

async fn answer_invitation(
    cx: &Cx,
    iam: &Iam,
    session: &SessionScope,
    name: &InvitationRef,
    action: Answer,
) -> Result<()> {
    let notices = iam.notices(cx);
    transact(cx.app.store.as_ref(), |uow, _| {
        Box::pin(async move {
            let scope = authorize_recipient(cx, uow, name).await?;
            match action {
                Answer::Accept => accept_invitation(cx, &scope, session, uow, notices).await,
                Answer::Decline => reject_invitation(cx, &scope, session, uow, notices).await,
            }
        })
    })
    .await?;
    Ok(())
}

/// The fields of the form that requests a verification mail.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct ConfirmAddressForm {
    /// The id of the invitation, or the id and secret from the mailed link.
    id: InvitationRef,
}

async fn confirm(
    cx: &Cx,
    iam: Arc<Iam>,
    scope: PublicScope,
    input: Input<(), (), ConfirmAddressForm>,
) -> Result<PageOr> {
    iam.ensure_trusted_form(cx)?;
    let back = &own_path(&input.body.id);
    let Ok(person) = &authorize_person(cx) else {
        return Ok(sign_in_first(&iam, back));
    };
    let link = |token: &str| iam.verification_link(token, Some(back));
    let links = Links {
        link: &link,
        cipher: &cx.app.cipher,
    };
    transact(cx.app.store.as_ref(), |uow, _| {
        Box::pin(async move {
            let email = user::get_profile(&person.account(), uow)
                .await?
                .email
                .clone();
            user::send_verification_email(cx, &scope, uow, &email, links).await
        })
    })
    .await?;
    let sent = with_parameters(back.clone(), &[("notice", "mail-sent")]);
    Ok(layout::redirect(&iam, &sent))
}
