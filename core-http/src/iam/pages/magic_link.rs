//! Signing in with a link that is sent by mail.

use std::sync::Arc;

use core_domain::access::PublicScope;
use core_domain::gateway::RateClass;
use core_domain::kernel::{Code, Email, Error, Result};
use core_domain::port::transact;
use maud::{Markup, html};
use schemars::JsonSchema;
use serde::Deserialize;

use super::super::bounds::MAX_EMAIL_TEXT;
use super::form::{Field, hidden};
use super::form_errors::FormErrors;
use super::layout;
use super::next::{leading_to, next_path};
use super::row::{form, page};
use crate::iam::config::Iam;
use crate::iam::magic_link::{Targets, send_link};
use crate::iam::target::Target;
use crate::kernel::{Cx, Endpoint, Input, PageOr, get, post, with};

const PATH: &str = "/magic-link";
const TITLE: &str = "Sign in with a link";

pub(super) fn rows(iam: &Arc<Iam>) -> Vec<Endpoint> {
    vec![
        page(get(PATH, "magicLinkPage"))
            .summary("Asks for the address to send a link to.")
            .refuses(&[Code::InvalidCallbackUrl])
            .plain(with(iam, show)),
        form(post(PATH, "sendMagicLinkByForm"))
            .summary("Sends a link that signs in whoever reads mail at the address.")
            .rate(RateClass::Strict)
            .refuses(&[Code::InvalidCallbackUrl, Code::InvalidEmail])
            .plain(with(iam, send)),
        page(get("/magic-link/sent", "magicLinkSentPage"))
            .summary("Says that a link was sent.")
            .plain(with(iam, sent)),
    ]
}

/// The query of the page.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct MagicLinkQuery {
    /// A path of ours to go on to.
    next: Option<Target>,
    /// The code of why the last link signed nobody in.
    #[schemars(length(max = 64), regex(pattern = r"^[^\u0000]*$"))]
    error: Option<String>,
}

async fn show(
    _: &Cx,
    iam: Arc<Iam>,
    _: PublicScope,
    input: Input<(), MagicLinkQuery>,
) -> Result<PageOr> {
    let query = input.query;
    let next = next_path(query.next.as_deref())?;
    let Some(code) = query.error.as_deref() else {
        let content = content(&iam, next, "", &FormErrors::none());
        return Ok(layout::shown(&iam, TITLE, &content));
    };
    let banned = code == Code::BannedUser.as_str();
    let code = if banned {
        Code::BannedUser
    } else {
        Code::InvalidToken
    };
    let errors = FormErrors::of(Error::refused(code, "the link signed nobody in"))?;
    let content = content(&iam, next, "", &errors);
    Ok(layout::refused(&iam, TITLE, http::StatusCode::OK, &content))
}

fn content(iam: &Iam, next: &str, email: &str, errors: &FormErrors) -> Markup {
    html! {
        form method="post" action=(iam.path(PATH)) {
            (errors.show())
            p { "We send you a link. Whoever opens it is signed in, without a password." }
            (hidden("next", next))
            (Field::email(email).show(errors))
            button type="submit" { "Send the link" }
        }
        ul.ways {
            li { a href=(iam.path(&leading_to("/sign-in", next))) { "Sign in with a password" } }
        }
    }
}

/// The fields of the form.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct MagicLinkForm {
    #[schemars(length(max = MAX_EMAIL_TEXT), regex(pattern = r"^[^\u0000]*$"), example = "ada@example.org")]
    email: String,
    /// A path of ours to go on to.
    next: Option<Target>,
}

async fn send(
    cx: &Cx,
    iam: Arc<Iam>,
    scope: PublicScope,
    input: Input<(), (), MagicLinkForm>,
) -> Result<PageOr> {
    let body = input.body;
    iam.refuse_foreign_form(cx)?;
    let next = next_path(body.next.as_deref())?;
    let Ok(email) = Email::parse(&body.email) else {
        let errors = FormErrors::of(Error::refused(Code::InvalidEmail, "Invalid email"))?;
        let content = content(&iam, next, &body.email, &errors);
        return Ok(layout::refused(&iam, TITLE, errors.status(), &content));
    };
    let (iam, targets) = (
        &iam,
        &Targets {
            callback: Some(next.to_owned().into()),
            new_user: None,
            error: Some(leading_to(PATH, next).into()),
        },
    );
    transact(cx.app.store.as_ref(), |uow, _| {
        Box::pin(send_link(cx, iam, &scope, uow, (&email, None), targets))
    })
    .await?;
    Ok(layout::to(iam, "/magic-link/sent"))
}

async fn sent(_: &Cx, iam: Arc<Iam>, _: PublicScope, _: Input) -> Result<PageOr> {
    let content = html! {
        p { "A link is on its way to the address you entered. Open it on this device to sign in; it is good once, and not for long." }
        p { "Nothing came? Look where unwanted mail goes, or " a href=(iam.path(PATH)) { "send another link" } "." }
    };
    Ok(layout::shown(&iam, "Look into your mail", &content))
}
