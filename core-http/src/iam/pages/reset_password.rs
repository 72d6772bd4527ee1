//! The pages for a forgotten password: one asks for the email address, the other one, which the mailed link opens, for
//! the new password.

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
use super::form::{Field, hidden_field};
use super::form_errors::FormErrors;
use super::layout;
use super::next::with_next;
use super::row::{form, page};
use crate::iam::config::{Iam, SECURITY_PAGE};
use crate::iam::password::{
    NewPassword, RESET_PAGE as PATH, reset_page, reset_password_by_link, send_reset_link,
};
use crate::iam::target::Target;
use crate::kernel::{Cx, Endpoint, Input, Output, PageOr, get, post, with};

const SET: &str = "/reset-password/new";
const TITLE: &str = "Forgot your password?";
const SET_TITLE: &str = "Set a new password";

pub(super) fn rows(iam: &Arc<Iam>) -> Vec<Endpoint> {
    vec![
        page(get(PATH, "resetPasswordPage"))
            .summary("Shows the page for resetting a password.")
            .description(
                "Without `token` the page asks for the email address. With a valid token it asks \
                 for the new password; opening it does not use up the token. With `callbackURL` \
                 the browser is redirected there, with the `token` or the `error` in the query.",
            )
            .refuses(&[Code::InvalidCallbackUrl])
            .plain(with(iam, show)),
        form(post(PATH, "requestPasswordResetByForm"))
            .summary("Sends a password reset link by mail.")
            .description(
                "Mails a link if the address belongs to a user; the response is the same for \
                 every address. The link is valid for one hour and works once. Redirects to a \
                 page that confirms the mail.",
            )
            .rate(RateClass::Strict)
            .refuses(&[Code::InvalidEmail])
            .plain(with(iam, send)),
        page(get("/reset-password/sent", "passwordResetSentPage"))
            .summary("Shows that a password reset link was sent.")
            .description("A static page; it changes nothing.")
            .plain(with(iam, sent_page)),
        form(post(SET, "resetPasswordByForm"))
            .summary("Sets a new password with a mailed token.")
            .description(
                "The token works once. Ends all sessions of the user, marks the address as \
                 verified and informs the owner by mail. API keys are deleted only on request. \
                 Redirects to the sign-in page.",
            )
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
    /// The token of the reset link. Default: none.
    #[schemars(length(max = 512), regex(pattern = r"^[^\u0000]*$"))]
    token: Option<String>,
    /// The page of an application that asks for the new password in place of this page. It receives the token as the
    /// parameter `token`. Default: none.
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
    iam.ensure_trusted_target(query.callback_url.as_deref())?;
    let Some(token) = query.token else {
        let content = address_content(&iam, "", &FormErrors::none());
        return Ok(layout::page(&iam, TITLE, &content));
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
            Ok(layout::page(&iam, SET_TITLE, &content))
        }
        Err(error) => ask_again(&iam, error, StatusCode::OK),
    }
}

/// Returns the page that asks for the address again, because the link is not valid.
fn ask_again(iam: &Iam, error: Error, status: StatusCode) -> Result<PageOr> {
    let errors = FormErrors::of(error)?;
    let content = address_content(iam, "", &errors);
    Ok(layout::error_page(iam, TITLE, status, &content))
}

fn address_content(iam: &Iam, email: &str, errors: &FormErrors) -> Markup {
    html! {
        form method="post" action=(iam.path(PATH)) {
            (errors.show())
            p { "Enter the address of your account. We send you a mail with a link to set a new password." }
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
            "8 characters or more. You are signed out on all devices and sign in again with the new password. Your passkeys and API keys are kept.",
        ),
        ..Field::password("New password", "new-password")
    };
    html! {
        form method="post" action=(iam.path(SET)) {
            (errors.show())
            (hidden_field("token", token))
            (password.show(errors))
            div.choice {
                input id="delete-keys" name="deleteKeys" type="checkbox" value="true";
                label for="delete-keys" { "Delete my API keys as well" }
            }
            button type="submit" { "Set the password" }
        }
    }
}

/// The fields of the form with the address.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct AddressForm {
    /// The email address of the account.
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
    iam.ensure_trusted_form(cx)?;
    let Ok(email) = Email::parse(&entered) else {
        let errors = FormErrors::of(Error::refused(Code::InvalidEmail, "Invalid email"))?;
        let content = address_content(&iam, &entered, &errors);
        return Ok(layout::error_page(&iam, TITLE, errors.status(), &content));
    };
    let iam = &iam;
    transact(cx.app.store.as_ref(), |uow, _| {
        Box::pin(send_reset_link(cx, iam, &scope, uow, &email, None))
    })
    .await?;
    Ok(layout::redirect(iam, "/reset-password/sent"))
}

async fn sent_page(_: &Cx, iam: Arc<Iam>, _: PublicScope, _: Input) -> Result<PageOr> {
    let content = html! {
        p { "If there is an account with the address that you entered, a link is on its way to it." }
        p { "No mail? Check your spam folder, or " a href=(iam.path(PATH)) { "try again" } "." }
    };
    Ok(layout::page(&iam, "Look into your mail", &content))
}

/// The fields of the form with the new password.
#[derive(Clone, Deserialize, JsonSchema)]
struct NewPasswordForm {
    /// The token of the reset link.
    #[schemars(length(min = 1, max = 512), regex(pattern = r"^[^\u0000]*$"))]
    token: String,
    /// The new password, 8 to 128 characters.
    #[schemars(length(max = MAX_PASSWORD_TEXT), regex(pattern = r"^[^\u0000]*$"), example = "staple battery horse")]
    password: String,
    /// Deletes the API keys of the user as well. Browsers omit the field if the checkbox is not ticked.
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
    iam.ensure_trusted_form(cx)?;
    let new = NewPassword {
        token: &token,
        password: &password,
        delete_api_keys: delete_keys.unwrap_or(false),
    };
    let Err(error) = reset_password_by_link(cx, &iam, &scope, new).await else {
        // After the sign-in, the person reviews what else has access to the account.
        let path = with_next("/sign-in?notice=password-changed", SECURITY_PAGE);
        return Ok(layout::redirect(&iam, &path));
    };
    if error.code() == Code::InvalidToken {
        return ask_again(&iam, error, StatusCode::BAD_REQUEST);
    }
    let errors = FormErrors::of(error)?;
    let content = password_content(&iam, &token, &errors);
    Ok(layout::error_page(
        &iam,
        SET_TITLE,
        errors.status(),
        &content,
    ))
}
