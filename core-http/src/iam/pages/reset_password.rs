//! A new password for somebody who forgot the old one: first the address is asked for, then, by the link of the mail, the
//! password.

use std::sync::Arc;

use core_domain::access::PublicScope;
use core_domain::gateway::RateClass;
use core_domain::kernel::{Code, Email, Error, Result};
use core_domain::port::{Mode, transact};
use core_domain::use_case::iam::user::check_reset_token;
use http::StatusCode;
use maud::{Markup, html};
use schemars::JsonSchema;
use serde::Deserialize;

use super::super::bounds::{MAX_EMAIL_TEXT, MAX_PASSWORD_TEXT};
use super::form::{Field, hidden};
use super::form_errors::FormErrors;
use super::layout;
use super::next::leading_to;
use super::row::{form, page};
use crate::iam::config::{Iam, SECURITY_PAGE};
use crate::iam::password::{
    NewPassword, RESET_PAGE as PATH, reset_page, send_reset_link, set_by_link,
};
use crate::iam::target::Target;
use crate::kernel::{Cx, Endpoint, Input, Output, PageOr, get, post, with};

const SET: &str = "/reset-password/new";
const TITLE: &str = "Forgot your password?";
const SET_TITLE: &str = "Set a new password";

pub(super) fn rows(iam: &Arc<Iam>) -> Vec<Endpoint> {
    vec![
        page(get(PATH, "resetPasswordPage"))
            .summary("Asks for an address; with the token of a link, for the new password, or sends on to the page that does.")
            .refuses(&[Code::InvalidCallbackUrl])
            .plain(with(iam, show)),
        form(post(PATH, "requestPasswordResetByForm"))
            .summary("Sends a link for a new password, if the address has a user.")
            .rate(RateClass::Strict)
            .refuses(&[Code::InvalidEmail])
            .plain(with(iam, send)),
        page(get("/reset-password/sent", "passwordResetSentPage"))
            .summary("Says that a link was sent.")
            .plain(with(iam, sent)),
        form(post(SET, "resetPasswordByForm"))
            .summary("Sets a new password by the token of a link, once; all sessions end.")
            .rate(RateClass::Strict)
            .refuses(&[
                Code::InvalidToken,
                Code::PasswordTooShort,
                Code::PasswordTooLong,
                Code::PasswordTooCommon,
            ])
            .plain(with(iam, set)),
    ]
}

/// The query of the page.
#[derive(Clone, Deserialize, JsonSchema)]
struct ResetPasswordQuery {
    /// Of the link.
    #[schemars(length(max = 512), regex(pattern = r"^[^\u0000]*$"))]
    token: Option<String>,
    /// The page of an application that asks for the new password in the place of ours. It gets the token as `token`.
    #[serde(rename = "callbackURL")]
    callback_url: Option<Target>,
}

async fn show(
    cx: &Cx,
    iam: Arc<Iam>,
    _: PublicScope,
    input: Input<(), ResetPasswordQuery>,
) -> Result<PageOr> {
    let query = input.query;
    iam.refuse_foreign_target(query.callback_url.as_deref())?;
    let Some(token) = query.token else {
        let content = address_content(&iam, "", &FormErrors::none());
        return Ok(layout::shown(&iam, TITLE, &content));
    };
    let mut uow = cx.app.store.begin(Mode::Read).await?;
    let good = check_reset_token(uow.as_mut(), &token).await;
    uow.rollback().await;
    if let Some(target) = &query.callback_url {
        let location = reset_page(&iam, target, &token, good)?;
        return Ok(PageOr::To(Output::new(location)));
    }
    match good {
        Ok(()) => {
            let content = password_content(&iam, &token, &FormErrors::none());
            Ok(layout::shown(&iam, SET_TITLE, &content))
        }
        Err(error) => ask_again(&iam, error, StatusCode::OK),
    }
}

/// Asks for the address once more, because the link is good for nothing.
fn ask_again(iam: &Iam, error: Error, status: StatusCode) -> Result<PageOr> {
    let errors = FormErrors::of(error)?;
    let content = address_content(iam, "", &errors);
    Ok(layout::refused(iam, TITLE, status, &content))
}

fn address_content(iam: &Iam, email: &str, errors: &FormErrors) -> Markup {
    html! {
        form method="post" action=(iam.path(PATH)) {
            (errors.show())
            p { "Enter the address of your account. We send you a link to set a new password with." }
            (Field::email(email).show(errors))
            button type="submit" { "Send the link" }
        }
        ul.ways {
            li { a href=(iam.path("/sign-in")) { "Back to signing in" } }
        }
    }
}

fn password_content(iam: &Iam, token: &str, errors: &FormErrors) -> Markup {
    let password = Field {
        hint: Some(
            "8 characters or more. You are signed out everywhere and sign in again with it. Your passkeys and API keys stay.",
        ),
        ..Field::password("New password", "new-password")
    };
    html! {
        form method="post" action=(iam.path(SET)) {
            (errors.show())
            (hidden("token", token))
            (password.show(errors))
            div.choice {
                input id="delete-keys" name="deleteKeys" type="checkbox" value="true";
                label for="delete-keys" { "Delete my API keys as well" }
            }
            button type="submit" { "Set the password" }
        }
    }
}

/// The fields of the form for the address.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct AddressForm {
    #[schemars(length(max = MAX_EMAIL_TEXT), regex(pattern = r"^[^\u0000]*$"), example = "ada@example.org")]
    email: String,
}

async fn send(
    cx: &Cx,
    iam: Arc<Iam>,
    scope: PublicScope,
    input: Input<(), (), AddressForm>,
) -> Result<PageOr> {
    let entered = input.body.email;
    iam.refuse_foreign_form(cx)?;
    let Ok(email) = Email::parse(&entered) else {
        let errors = FormErrors::of(Error::refused(Code::InvalidEmail, "Invalid email"))?;
        let content = address_content(&iam, &entered, &errors);
        return Ok(layout::refused(&iam, TITLE, errors.status(), &content));
    };
    let iam = &iam;
    transact(cx.app.store.as_ref(), |uow, _| {
        Box::pin(send_reset_link(cx, iam, &scope, uow, &email, None))
    })
    .await?;
    Ok(layout::to(iam, "/reset-password/sent"))
}

async fn sent(_: &Cx, iam: Arc<Iam>, _: PublicScope, _: Input) -> Result<PageOr> {
    let content = html! {
        p { "If there is an account with the address you entered, a link is on its way to it." }
        p { "Nothing came? Look where unwanted mail goes, or " a href=(iam.path(PATH)) { "try again" } "." }
    };
    Ok(layout::shown(&iam, "Look into your mail", &content))
}

/// The fields of the form for the password.
#[derive(Clone, Deserialize, JsonSchema)]
struct NewPasswordForm {
    #[schemars(length(min = 1, max = 512), regex(pattern = r"^[^\u0000]*$"))]
    token: String,
    #[schemars(length(max = MAX_PASSWORD_TEXT), regex(pattern = r"^[^\u0000]*$"), example = "staple battery horse")]
    password: String,
    /// Browsers leave a box that is not ticked out.
    #[serde(rename = "deleteKeys")]
    delete_keys: Option<bool>,
}

async fn set(
    cx: &Cx,
    iam: Arc<Iam>,
    scope: PublicScope,
    input: Input<(), (), NewPasswordForm>,
) -> Result<PageOr> {
    let NewPasswordForm {
        token,
        password,
        delete_keys,
    } = input.body;
    iam.refuse_foreign_form(cx)?;
    let new = NewPassword {
        token: &token,
        password: &password,
        delete_api_keys: delete_keys.unwrap_or(false),
    };
    let Err(error) = set_by_link(cx, &iam, &scope, new).await else {
        // What else can act for the person is shown after the sign-in.
        let path = leading_to("/sign-in?notice=password-changed", SECURITY_PAGE);
        return Ok(layout::to(&iam, &path));
    };
    if error.code() == Code::InvalidToken {
        return ask_again(&iam, error, StatusCode::BAD_REQUEST);
    }
    let errors = FormErrors::of(error)?;
    let content = password_content(&iam, &token, &errors);
    Ok(layout::refused(&iam, SET_TITLE, errors.status(), &content))
}
