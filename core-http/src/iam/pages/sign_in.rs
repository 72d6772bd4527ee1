//! The pages for signing in with email address and password, and for signing out.

use std::sync::Arc;

use core_domain::access::{PublicScope, authorize_session};
use core_domain::gateway::RateClass;
use core_domain::kernel::{Code, Result};
use core_domain::use_case::iam::session::SignInOutcome;
use maud::{Markup, html};
use schemars::JsonSchema;
use serde::Deserialize;

use super::super::bounds::{MAX_EMAIL_TEXT, MAX_PASSWORD_TEXT};
use super::form::{Field, hidden_field};
use super::form_errors::FormErrors;
use super::layout;
use super::next::{next_path, with_next};
use super::passkeys;
use super::row::{form, page};
use super::two_factor;
use crate::iam::challenge::{set_challenge_cookie, set_trust_cookie};
use crate::iam::config::Iam;
use crate::iam::cookies::{clear_session_cookies, set_sign_in_cookies};
use crate::iam::target::Target;
use crate::iam::{session, sign_in};
use crate::kernel::{Cx, Endpoint, Input, Output, PageOr, get, post, with};

const PATH: &str = "/sign-in";
const TITLE: &str = "Sign in";

/// The page to which verification links redirect.
pub(super) const CONFIRMED: &str = "/sign-in?notice=email-confirmed";

pub(super) fn rows(iam: &Arc<Iam>) -> Vec<Endpoint> {
    vec![
        page(get(PATH, "signInPage"))
            .summary("Shows the sign-in page.")
            .description(
                "Redirects to `next` if the caller is already signed in. If a sign-in waits for \
                 its second factor, redirects to the page that asks for it.",
            )
            .refuses(&[Code::InvalidCallbackUrl])
            .plain(with(iam, show)),
        form(post(PATH, "signInByForm"))
            .summary("Signs in with email address and password.")
            .description(
                "Starts a session and redirects to `next`. Users with a second factor are \
                 redirected to the page that asks for it first. Failed attempts are counted and \
                 delay further attempts. For an address that must be verified first, a new \
                 verification link is mailed.",
            )
            .rate(RateClass::Strict)
            .refuses(&[
                Code::InvalidCallbackUrl,
                Code::InvalidEmail,
                Code::InvalidEmailOrPassword,
                Code::BannedUser,
                Code::EmailNotVerified,
            ])
            .plain(with(iam, sign_in)),
        form(post("/sign-out", "signOutByForm"))
            .summary("Signs out by ending the session of the browser.")
            .description(
                "Revokes the session, clears all session cookies and redirects to the sign-in \
                 page. Without a session only the cookies are cleared.",
            )
            .refuses(&[Code::InvalidCallbackUrl])
            .plain(with(iam, sign_out)),
    ]
}

/// The confirmation that the page shows after an action.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Notice {
    PasswordChanged,
    SignedOut,
    EmailConfirmed,
}

impl Notice {
    const fn words(self) -> &'static str {
        match self {
            Self::PasswordChanged => "Your password was changed. Sign in with the new one.",
            Self::SignedOut => "You are signed out.",
            Self::EmailConfirmed => "Your address is confirmed. Sign in to continue.",
        }
    }
}

/// The query of the page.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct SignInQuery {
    /// A path of IAM to which the browser goes afterwards. Default: `/account`.
    next: Option<Target>,
    /// The confirmation to show. Default: none.
    notice: Option<Notice>,
    /// The code of a refused mailed link. Default: none.
    #[schemars(length(max = 64), regex(pattern = r"^[^\u0000]*$"))]
    error: Option<String>,
    /// Shows the sign-in form even if a sign-in waits for its second factor. Default: false.
    restart: Option<bool>,
}

async fn show(
    cx: &Cx,
    iam: Arc<Iam>,
    _: PublicScope,
    input: Input<(), SignInQuery>,
) -> Result<PageOr> {
    let query = input.query;
    let next = next_path(query.next.as_deref())?;
    if authorize_session(cx).is_ok() {
        return Ok(layout::redirect(&iam, next));
    }
    // Mailed links redirect here if their account has a second factor.
    if query.notice.is_none()
        && iam.challenge_token(&cx.headers).is_some()
        && query.restart.is_none()
    {
        return Ok(layout::redirect(&iam, &with_next(two_factor::PATH, next)));
    }
    let entered = FormValues {
        email: "",
        remember: true,
    };
    let content = html! {
        @if query.error.is_some() {
            (layout::alert("This link is not valid any more. Sign in, or ask for a new link."))
        } @else if let Some(notice) = query.notice {
            (layout::notice(notice.words()))
        }
        (content(&iam, next, &entered, &FormErrors::none()))
    };
    Ok(layout::with_script(
        &iam,
        layout::page(&iam, TITLE, &content),
    ))
}

/// The values that the form contains when it is shown.
struct FormValues<'a> {
    email: &'a str,
    remember: bool,
}

fn content(iam: &Iam, next: &str, entered: &FormValues<'_>, errors: &FormErrors) -> Markup {
    let link = |path| iam.path(&with_next(path, next));
    html! {
        form method="post" action=(iam.path(PATH)) {
            (errors.show())
            (hidden_field("next", next))
            (Field::email(entered.email).show(errors))
            (Field::password("Password", "current-password").show(errors))
            div.choice {
                input id="remember" name="remember" type="checkbox" value="true" checked[entered.remember];
                label for="remember" { "Keep me signed in on this device" }
            }
            button type="submit" { "Sign in" }
        }
        (passkeys::passkey_button(iam, next, "Sign in with a passkey"))
        ul.ways {
            li { a href=(link("/magic-link")) { "Sign in with a link by mail" } }
            li { a href=(iam.path("/reset-password")) { "Forgot your password?" } }
            li { a href=(link("/sign-up")) { "Create an account" } }
        }
    }
}

/// The fields of the sign-in form.
#[derive(Clone, Deserialize, JsonSchema)]
struct SignInForm {
    /// The user's email address.
    #[schemars(length(max = MAX_EMAIL_TEXT), regex(pattern = r"^[^\u0000]*$"), example = "ada@example.org")]
    email: String,
    /// The current password of the user.
    #[schemars(length(max = MAX_PASSWORD_TEXT), regex(pattern = r"^[^\u0000]*$"), example = "correct horse battery")]
    password: String,
    /// Keeps the session after the browser is closed. Browsers omit the field if the checkbox is not ticked.
    remember: Option<bool>,
    /// A path of IAM to which the browser goes afterwards. Default: `/account`.
    next: Option<Target>,
}

async fn sign_in(
    cx: &Cx,
    iam: Arc<Iam>,
    scope: PublicScope,
    input: Input<(), (), SignInForm>,
) -> Result<PageOr> {
    let SignInForm {
        email,
        password,
        remember,
        next,
    } = input.body;
    iam.ensure_trusted_form(cx)?;
    let next = next_path(next.as_deref())?;
    let remember = remember.unwrap_or(false);
    let (credentials, target) = ([&*email, &*password], Some(CONFIRMED));
    let outcome =
        sign_in::sign_in_with_password(cx, &iam, &scope, credentials, remember, target).await;
    let begun = match outcome {
        Ok(begun) => begun,
        Err(error) => {
            let errors = FormErrors::of(error)?;
            let entered = FormValues {
                email: &email,
                remember,
            };
            let content = content(&iam, next, &entered, &errors);
            let page = layout::error_page(&iam, TITLE, errors.status(), &content);
            return Ok(layout::with_script(&iam, page));
        }
    };
    let device = begun.device.as_deref();
    Ok(PageOr::To(match &begun.outcome {
        SignInOutcome::SignedIn(begun) => {
            let on = set_trust_cookie(&iam, Output::new(iam.path(next)), device);
            set_sign_in_cookies(cx, &iam, on, begun)
        }
        SignInOutcome::SecondFactorRequired(challenged) => {
            let on = Output::new(iam.path(&with_next(two_factor::PATH, next)));
            set_challenge_cookie(&iam, on, challenged)
        }
    }))
}

/// The fields of the sign-out form.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct SignOutForm {
    /// A path of IAM to which the browser goes after the next sign-in. Default: `/account`.
    next: Option<Target>,
}

async fn sign_out(
    cx: &Cx,
    iam: Arc<Iam>,
    scope: PublicScope,
    input: Input<(), (), SignOutForm>,
) -> Result<PageOr> {
    iam.ensure_trusted_form(cx)?;
    let next = next_path(input.body.next.as_deref())?;
    session::end(cx, &iam, &scope).await?;
    let path = with_next("/sign-in?notice=signed-out", next);
    let on = Output::new(iam.path(&path));
    Ok(PageOr::To(clear_session_cookies(&iam, on)))
}
