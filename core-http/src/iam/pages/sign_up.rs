//! The page for signing up with email address and password.

use std::sync::Arc;

use core_domain::access::{PublicScope, authorize_session};
use core_domain::gateway::RateClass;
use core_domain::kernel::{Code, Email, Error, Line, PersonName, Result};
use maud::{Markup, html};
use schemars::JsonSchema;
use serde::Deserialize;

use super::super::bounds::{MAX_EMAIL_TEXT, MAX_PASSWORD_TEXT};
use super::form::{Field, hidden_field};
use super::form_errors::{FieldMessage, FormErrors};
use super::layout;
use super::next::{NextQuery, next_path, with_next};
use super::row::{form, page};
use super::sign_in::CONFIRMED;
use crate::iam::config::Iam;
use crate::iam::cookies::set_sign_in_cookies;
use crate::iam::sign_in::{NewUserInput, SignUpOutcome, sign_up_with_password};
use crate::iam::target::Target;
use crate::kernel::{Cx, Endpoint, Input, Output, PageOr, get, post, with};

const PATH: &str = "/sign-up";
const SENT_PAGE: &str = "/sign-up/sent";
const TITLE: &str = "Create an account";

pub(super) fn rows(iam: &Arc<Iam>) -> Vec<Endpoint> {
    vec![
        page(get(PATH, "signUpPage"))
            .summary("Shows the sign-up page.")
            .description("Redirects to `next` if the caller is already signed in.")
            .refuses(&[Code::InvalidCallbackUrl])
            .plain(with(iam, show)),
        form(post(PATH, "signUpByForm"))
            .summary("Signs a new user up with email address and password.")
            .description(
                "Creates the user, starts a session and redirects to `next`. If the installation \
                 requires verified addresses, a verification link is mailed and no session \
                 starts. In that case the response for an existing address looks the same, and \
                 its owner is informed by mail.",
            )
            .rate(RateClass::Strict)
            .refuses(&[
                Code::InvalidCallbackUrl,
                Code::InvalidEmail,
                Code::UserAlreadyExists,
            ])
            .refuses(&[
                Code::PasswordTooShort,
                Code::PasswordTooLong,
                Code::PasswordTooCommon,
            ])
            .plain(with(iam, sign_up)),
        page(get(SENT_PAGE, "signUpSentPage"))
            .summary("Shows that a verification mail was sent.")
            .description(
                "A static page; it changes nothing. Used if the installation requires verified \
                 addresses.",
            )
            .plain(with(iam, sent_page)),
    ]
}

async fn show(
    cx: &Cx,
    iam: Arc<Iam>,
    _: PublicScope,
    input: Input<(), NextQuery>,
) -> Result<PageOr> {
    let next = next_path(input.query.next.as_deref())?;
    if authorize_session(cx).is_ok() {
        return Ok(layout::redirect(&iam, next));
    }
    let content = content(&iam, next, ["", ""], &FormErrors::none());
    Ok(layout::page(&iam, TITLE, &content))
}

fn content(iam: &Iam, next: &str, [name, email]: [&str; 2], errors: &FormErrors) -> Markup {
    let own_name = Field {
        name: "name",
        label: "Your name",
        kind: "text",
        autocomplete: "name",
        value: name,
        hint: None,
        required: true,
    };
    let password = Field {
        hint: Some("8 characters or more. A few unrelated words make a good password."),
        ..Field::password("Password", "new-password")
    };
    html! {
        form method="post" action=(iam.path(PATH)) {
            (errors.show())
            (hidden_field("next", next))
            (own_name.show(errors))
            (Field::email(email).show(errors))
            (password.show(errors))
            button type="submit" { "Create account" }
        }
        ul.ways {
            li { a href=(iam.path(&with_next("/sign-in", next))) { "I have an account: sign in" } }
        }
    }
}

/// The fields of the sign-up form.
#[derive(Clone, Deserialize, JsonSchema)]
struct SignUpForm {
    /// The user's name; may be empty.
    name: Line<0, 255>,
    /// The user's email address.
    #[schemars(length(max = MAX_EMAIL_TEXT), regex(pattern = r"^[^\u0000]*$"), example = "ada@example.org")]
    email: String,
    /// The password, 8 to 128 characters.
    #[schemars(length(max = MAX_PASSWORD_TEXT), regex(pattern = r"^[^\u0000]*$"), example = "correct horse battery")]
    password: String,
    /// A path of IAM to which the browser goes afterwards. Default: `/account`.
    next: Option<Target>,
}

async fn sign_up(
    cx: &Cx,
    iam: Arc<Iam>,
    scope: PublicScope,
    input: Input<(), (), SignUpForm>,
) -> Result<PageOr> {
    let body = input.body;
    iam.ensure_trusted_form(cx)?;
    let next = next_path(body.next.as_deref())?;
    let begun = match sign_up_from_form(cx, &iam, &scope, &body).await {
        Ok(SignUpOutcome::SignedIn(begun)) => begun,
        Ok(SignUpOutcome::LinkSent(_)) => return Ok(layout::redirect(&iam, SENT_PAGE)),
        Err(error) => {
            let errors = FormErrors::on_page(error, words)?;
            let entered = [body.name.as_str(), &body.email];
            let content = content(&iam, next, entered, &errors);
            return Ok(layout::error_page(&iam, TITLE, errors.status(), &content));
        }
    };
    let on = Output::new(iam.path(next));
    let on = set_sign_in_cookies(cx, &iam, on, &begun);
    Ok(PageOr::To(on))
}

async fn sent_page(_: &Cx, iam: Arc<Iam>, _: PublicScope, _: Input) -> Result<PageOr> {
    let content = html! {
        p { "A mail is on its way to the address that you entered. Open the link in it to confirm that the address is yours, then sign in." }
        p { "No mail? Check your spam folder, or " a href=(iam.path("/sign-in")) { "sign in" } " to get another link." }
    };
    Ok(layout::page(&iam, "Look into your mail", &content))
}

/// Returns the message for an invalid name, the only field that is validated by the domain and not by the form.
fn words(code: Code) -> Option<FieldMessage> {
    (code == Code::ValidationError).then_some((
        Some("name"),
        "A name cannot contain a web address. Enter the name alone.",
    ))
}

async fn sign_up_from_form(
    cx: &Cx,
    iam: &Iam,
    scope: &PublicScope,
    form: &SignUpForm,
) -> Result<SignUpOutcome> {
    let email = Email::parse(&form.email)
        .map_err(|_| Error::refused(Code::InvalidEmail, "Invalid email"))?;
    let name = PersonName::parse(form.name.as_str());
    let newcomer = NewUserInput {
        name: name.map_err(|error| Error::invalid("name", "invalid_format", error.to_string()))?,
        email,
        image: None,
        remembered: true,
    };
    sign_up_with_password(cx, iam, scope, newcomer, &form.password, Some(CONFIRMED)).await
}
