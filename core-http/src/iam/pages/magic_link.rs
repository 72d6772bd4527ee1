//! Sign-in with a mailed link. The link opens a page with a button, so that a mail scanner that opens the link does not
//! use it up.

use std::sync::Arc;

use core_domain::access::PublicScope;
use core_domain::gateway::RateClass;
use core_domain::kernel::{Code, Email, Error, Result};
use core_domain::port::{Mode, transact};
use core_domain::use_case::iam::user::{check_magic_link, verify_magic_link};
use maud::{Markup, html};
use schemars::JsonSchema;
use serde::Deserialize;

use super::super::bounds::MAX_EMAIL_TEXT;
use super::form::{Field, hidden_field};
use super::form_errors::FormErrors;
use super::layout;
use super::next::{next_path, with_next};
use super::row::{form, page};
use crate::iam::config::Iam;
use crate::iam::magic_link::{PAGE as PATH, Targets, redirect_after_link, send_link};
use crate::iam::target::Target;
use crate::kernel::{Cx, Endpoint, Input, Output, PageOr, get, post, with};

const SIGN_IN: &str = "/magic-link/sign-in";
const TITLE: &str = "Sign in with a link";

pub(super) fn rows(iam: &Arc<Iam>) -> Vec<Endpoint> {
    vec![
        page(get(PATH, "magicLinkPage"))
            .summary("Shows the page for signing in with a mailed link.")
            .description(
                "Without `token` the page asks for the email address. With it the page asks for \
                 confirmation before signing in; opening it does not use up the token. An invalid \
                 token redirects to the error target of the link.",
            )
            .refuses(&[Code::InvalidCallbackUrl])
            .plain(with(iam, show)),
        form(post(PATH, "sendMagicLinkByForm"))
            .summary("Sends a sign-in link by mail.")
            .description(
                "Mails a link that is valid for 5 minutes and works once. The response is the \
                 same for known and unknown addresses. Redirects to a page that confirms the \
                 mail.",
            )
            .rate(RateClass::Strict)
            .refuses(&[Code::InvalidCallbackUrl, Code::InvalidEmail])
            .plain(with(iam, send)),
        form(post(SIGN_IN, "signInByLinkForm"))
            .summary("Signs in with the token of a mailed link.")
            .description(
                "Creates the user if the address is unknown and marks the address as verified. If \
                 an existing address was not verified before, its password, sessions, second \
                 factors and API keys are removed first. Redirects to the target of the link; \
                 users with a second factor must then complete it.",
            )
            .rate(RateClass::Strict)
            .refuses(&[Code::InvalidCallbackUrl])
            .plain(with(iam, sign_in)),
        page(get("/magic-link/sent", "magicLinkSentPage"))
            .summary("Shows that a sign-in link was sent.")
            .description("A static page; it changes nothing.")
            .plain(with(iam, sent_page)),
    ]
}

/// The query of the page.
#[derive(Clone, Deserialize, JsonSchema)]
struct MagicLinkQuery {
    /// A path of IAM to which the browser goes afterwards. Default: `/account`.
    next: Option<Target>,
    /// The code with which the last link was refused. Default: none.
    #[schemars(length(max = 64), regex(pattern = r"^[^\u0000]*$"))]
    error: Option<String>,
    /// The token of a mailed link. Default: none.
    #[schemars(length(max = 512), regex(pattern = r"^[^\u0000]*$"))]
    token: Option<String>,
    #[serde(flatten)]
    targets: Targets,
}

async fn show(
    cx: &Cx,
    iam: Arc<Iam>,
    scope: PublicScope,
    input: Input<(), MagicLinkQuery>,
) -> Result<PageOr> {
    let query = input.query;
    if let Some(token) = &query.token {
        return show_link(cx, &iam, &scope, token, &query.targets).await;
    }
    let next = next_path(query.next.as_deref())?;
    let Some(code) = query.error.as_deref() else {
        let content = content(&iam, next, "", &FormErrors::none());
        return Ok(layout::page(&iam, TITLE, &content));
    };
    let banned = code == Code::BannedUser.as_str();
    let code = if banned {
        Code::BannedUser
    } else {
        Code::InvalidToken
    };
    let errors = FormErrors::of(Error::refused(code, "the link was refused"))?;
    let content = content(&iam, next, "", &errors);
    Ok(layout::error_page(
        &iam,
        TITLE,
        http::StatusCode::OK,
        &content,
    ))
}

/// Returns the page that a link opens. Nothing happens before its button is pressed.
async fn show_link(
    cx: &Cx,
    iam: &Iam,
    scope: &PublicScope,
    token: &str,
    targets: &Targets,
) -> Result<PageOr> {
    targets.ensure_trusted(iam)?;
    let mut uow = cx.app.store.begin(Mode::Read).await?;
    let address = check_magic_link(scope, uow.as_mut(), token).await;
    uow.rollback().await;
    let address = match address {
        Ok(address) => address,
        Err(error) if error.code() == Code::InvalidToken => {
            let target = targets.after_refusal(iam, error.code());
            return Ok(PageOr::To(Output::new(target)));
        }
        Err(error) => return Err(error),
    };
    let content = html! {
        p { "Sign in as " strong { (address) } " on this device?" }
        form method="post" action=(iam.path(SIGN_IN)) {
            (hidden_field("token", token))
            @for (name, target) in targets.parameters() { (hidden_field(name, target)) }
            button type="submit" { "Sign in" }
        }
        p.hint { "If you did not ask for this link, close this page: nothing has happened." }
    };
    let page = layout::page(iam, TITLE, &content);
    let targets = targets.parameters().map(|(_, target)| target);
    Ok(layout::with_form_targets(iam, page, targets))
}

/// The fields of the form that signs in.
#[derive(Clone, Deserialize, JsonSchema)]
struct LinkForm {
    /// The token of the mailed link.
    #[schemars(length(min = 1, max = 512), regex(pattern = r"^[^\u0000]*$"))]
    token: String,
    #[serde(flatten)]
    targets: Targets,
}

async fn sign_in(
    cx: &Cx,
    iam: Arc<Iam>,
    scope: PublicScope,
    input: Input<(), (), LinkForm>,
) -> Result<PageOr> {
    let LinkForm { token, targets } = &input.body;
    iam.ensure_trusted_form(cx)?;
    targets.ensure_trusted(&iam)?;
    let outcome = transact(cx.app.store.as_ref(), |uow, _| {
        Box::pin(verify_magic_link(cx, &scope, uow, token))
    })
    .await;
    Ok(PageOr::To(redirect_after_link(cx, &iam, targets, outcome)?))
}

fn content(iam: &Iam, next: &str, email: &str, errors: &FormErrors) -> Markup {
    html! {
        form method="post" action=(iam.path(PATH)) {
            (errors.show())
            p { "We send you a mail with a link that signs you in without a password." }
            (hidden_field("next", next))
            (Field::email(email).show(errors))
            button type="submit" { "Send the link" }
        }
        ul.ways {
            li { a href=(iam.path(&with_next("/sign-in", next))) { "Sign in with a password" } }
        }
    }
}

/// The fields of the form that requests a link.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct MagicLinkForm {
    /// The email address that the link is sent to.
    #[schemars(length(max = MAX_EMAIL_TEXT), regex(pattern = r"^[^\u0000]*$"), example = "ada@example.org")]
    email: String,
    /// A path of IAM to which the browser goes afterwards. Default: `/account`.
    next: Option<Target>,
}

async fn send(
    cx: &Cx,
    iam: Arc<Iam>,
    scope: PublicScope,
    input: Input<(), (), MagicLinkForm>,
) -> Result<PageOr> {
    let body = input.body;
    iam.ensure_trusted_form(cx)?;
    let next = next_path(body.next.as_deref())?;
    let Ok(email) = Email::parse(&body.email) else {
        let errors = FormErrors::of(Error::refused(Code::InvalidEmail, "Invalid email"))?;
        let content = content(&iam, next, &body.email, &errors);
        return Ok(layout::error_page(&iam, TITLE, errors.status(), &content));
    };
    let (iam, targets) = (
        &iam,
        &Targets {
            callback: Some(next.to_owned().into()),
            new_user: None,
            error: Some(with_next(PATH, next).into()),
        },
    );
    transact(cx.app.store.as_ref(), |uow, _| {
        Box::pin(send_link(cx, iam, &scope, uow, &email, None, targets))
    })
    .await?;
    Ok(layout::redirect(iam, "/magic-link/sent"))
}

async fn sent_page(_: &Cx, iam: Arc<Iam>, _: PublicScope, _: Input) -> Result<PageOr> {
    let content = html! {
        p { "A link is on its way to the address you entered. Open it on this device to sign in. It works once, within five minutes." }
        p { "No mail? Check your spam folder, or " a href=(iam.path(PATH)) { "send another link" } "." }
    };
    Ok(layout::page(&iam, "Look into your mail", &content))
}
