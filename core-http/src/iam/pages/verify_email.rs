//! The page that verifies an email address. The mailed link opens it; it asks for the password of the account, or for a
//! confirmation if the browser is signed in. A person who did not sign up can take the account over or delete it there.

use std::sync::Arc;

use core_domain::access::{PublicScope, authorize_session};
use core_domain::gateway::RateClass;
use core_domain::iam::{PasswordHash, check_password, normalize_password};
use core_domain::kernel::{Code, Error, Result};
use core_domain::port::transact;
use core_domain::use_case::iam::user::{ConfirmableAccount, delete_by_link, take_over_by_link};
use maud::{Markup, html};
use schemars::JsonSchema;
use serde::Deserialize;

use super::super::bounds::MAX_PASSWORD_TEXT;
use super::form::{Field, hidden_field};
use super::form_errors::FormErrors;
use super::layout;
use super::row::{form, page};
use crate::iam::challenge::redirect_after_sign_in;
use crate::iam::config::Iam;
use crate::iam::config::VERIFY_EMAIL;
use crate::iam::email_verification::{confirm, confirmable, refused_target};
use crate::iam::sign_in::hashing_error;
use crate::iam::target::Target;
use crate::kernel::{Cx, Endpoint, Input, Output, PageOr, get, post, with};

const TAKE_OVER: &str = "/verify-email/take-over";
const DELETE: &str = "/verify-email/delete";
const DELETED: &str = "/verify-email/deleted";
const TITLE: &str = "Confirm your address";
const NEW_PASSWORD: &str = "newPassword";

pub(super) fn rows(iam: &Arc<Iam>) -> Vec<Endpoint> {
    vec![
        page(get(VERIFY_EMAIL, "verifyEmailPage"))
            .summary("Shows the page that verifies an email address.")
            .description(
                "Asks for the password of the account, or for a confirmation if the browser is \
                 signed in to it. Opening the page does not use up the token. An invalid token \
                 redirects to the target of the link with `error=INVALID_TOKEN`. If the address \
                 is already verified, the browser is redirected to the target.",
            )
            .refuses(&[Code::InvalidCallbackUrl])
            .plain(with(iam, show)),
        form(post(VERIFY_EMAIL, "verifyEmailByForm"))
            .summary("Verifies an email address with a token and the password.")
            .description(
                "A browser that is signed in to the account needs no password. Redirects to the \
                 target of the link; the owner is informed by mail. If the installation signs \
                 users in after the verification, a session starts as well.",
            )
            .rate(RateClass::Strict)
            .refuses(&[
                Code::InvalidCallbackUrl,
                Code::InvalidEmailOrPassword,
                Code::Unauthorized,
            ])
            .plain(with(iam, verify)),
        form(post(TAKE_OVER, "takeOverAccountByForm"))
            .summary("Takes over an account that a stranger created.")
            .description(
                "For the owner of an address with which a stranger signed up. Sets a new \
                 password, verifies the address and removes all sessions, second factors, \
                 passkeys and API keys of the account. Redirects to the sign-in page.",
            )
            .rate(RateClass::Strict)
            .refuses(&[
                Code::InvalidCallbackUrl,
                Code::PasswordTooShort,
                Code::PasswordTooLong,
                Code::PasswordTooCommon,
            ])
            .plain(with(iam, take_over)),
        form(post(DELETE, "deleteUnconfirmedAccountByForm"))
            .summary("Deletes an account that a stranger created.")
            .description(
                "For the owner of an address with which a stranger signed up. Deletes the user \
                 and everything that belongs to it. An account that is a member of an \
                 organization is refused; take it over instead.",
            )
            .rate(RateClass::Strict)
            .refuses(&[Code::InvalidCallbackUrl, Code::Conflict])
            .plain(with(iam, delete)),
        page(get(DELETED, "unconfirmedAccountDeletedPage"))
            .summary("Shows that the account was deleted.")
            .description("A static page; it changes nothing.")
            .plain(with(iam, deleted_page)),
    ]
}

/// The parameters of a verification link.
#[derive(Clone, Deserialize, JsonSchema)]
struct Link {
    /// The token of the verification link.
    #[schemars(length(min = 1, max = 512), regex(pattern = r"^[^\u0000]*$"))]
    token: String,
    /// Redirect target afterwards: a path of IAM or a URL of a trusted origin. Default: `/`.
    #[serde(rename = "callbackURL")]
    callback_url: Option<Target>,
}

impl Link {
    fn target(&self) -> &str {
        self.callback_url.as_deref().unwrap_or("/")
    }
}

async fn show(
    cx: &Cx,
    iam: Arc<Iam>,
    scope: PublicScope,
    input: Input<(), Link>,
) -> Result<PageOr> {
    let link = input.query;
    iam.ensure_trusted_target(Some(link.target()))?;
    page_of(cx, &iam, &scope, &link, &FormErrors::none()).await
}

/// Returns the page of a link, with the error of its form. Redirects if the link is invalid or the address is already
/// verified.
async fn page_of(
    cx: &Cx,
    iam: &Iam,
    scope: &PublicScope,
    link: &Link,
    errors: &FormErrors,
) -> Result<PageOr> {
    let account = match confirmable(cx, scope, &link.token).await {
        Ok(account) => account,
        Err(error) => return redirect_to_refusal(iam, link, error),
    };
    if account.user.email_verified {
        return Ok(PageOr::To(Output::new(iam.absolute(link.target()))));
    }
    let is_own = authorize_session(cx).is_ok() && cx.caller.person_id() == Some(&account.user.id);
    let content = html! {
        (errors.show())
        (confirmation(iam, link, &account, is_own, errors))
        (take_over_section(iam, link, &account, errors))
    };
    let page = errors.page(iam, TITLE, &content);
    let targets = std::iter::once(link.target());
    Ok(layout::with_form_targets(iam, page, targets))
}

/// Redirects to the target of the link and reports there that the link is invalid.
fn redirect_to_refusal(iam: &Iam, link: &Link, error: Error) -> Result<PageOr> {
    if error.code() != Code::InvalidToken {
        return Err(error);
    }
    let target = refused_target(iam, link.target());
    Ok(PageOr::To(Output::new(target)))
}

fn hidden_link(link: &Link) -> Markup {
    html! {
        (hidden_field("token", &link.token))
        (hidden_field("callbackURL", link.target()))
    }
}

fn confirmation(
    iam: &Iam,
    link: &Link,
    account: &ConfirmableAccount,
    is_own: bool,
    errors: &FormErrors,
) -> Markup {
    let address = &account.user.email;
    html! {
        @if is_own {
            p { "Is " strong { (address) } " your address?" }
        } @else if account.has_password {
            p { "Enter the password of your account to confirm " strong { (address) } "." }
        } @else {
            p { "Sign in to your account to confirm " strong { (address) } "." }
        }
        @if is_own || account.has_password {
            form method="post" action=(iam.path(VERIFY_EMAIL)) {
                (hidden_link(link))
                @if !is_own { (Field::password("Password", "current-password").show(errors)) }
                button type="submit" { "Confirm the address" }
            }
        }
    }
}

fn take_over_section(
    iam: &Iam,
    link: &Link,
    account: &ConfirmableAccount,
    errors: &FormErrors,
) -> Markup {
    let password = Field {
        name: NEW_PASSWORD,
        hint: Some("8 characters or more."),
        ..Field::password("New password", "new-password")
    };
    html! {
        section aria-labelledby="not-mine" {
            h2 id="not-mine" { "This account is not mine" }
            p { "If you did not sign up, another person signed up with your address. Do not confirm it." }
            form method="post" action=(iam.path(TAKE_OVER)) {
                (hidden_link(link))
                p { "Take the account over: you set a new password, and all other sessions are signed out." }
                (password.show(errors))
                button.quiet type="submit" { "Take the account over" }
            }
            @if account.is_member {
                p { "The account is a member of an organization, so it cannot be deleted here." }
            } @else {
                form method="post" action=(iam.path(DELETE)) {
                    (hidden_link(link))
                    p { "Or delete the account, with everything that belongs to it." }
                    div.choice {
                        input id="sure" name="sure" type="checkbox" value="true" required;
                        label for="sure" { "Delete the account permanently" }
                    }
                    button.quiet type="submit" { "Delete the account" }
                }
            }
        }
    }
}

/// The fields of the form that verifies the address.
#[derive(Clone, Deserialize, JsonSchema)]
struct VerifyEmailForm {
    #[serde(flatten)]
    link: Link,
    /// The password of the account. Not needed in a browser that is signed in to the account.
    #[schemars(length(max = MAX_PASSWORD_TEXT), regex(pattern = r"^[^\u0000]*$"), example = &"correct horse battery")]
    password: Option<String>,
}

async fn verify(
    cx: &Cx,
    iam: Arc<Iam>,
    scope: PublicScope,
    input: Input<(), (), VerifyEmailForm>,
) -> Result<PageOr> {
    let VerifyEmailForm { link, password } = &input.body;
    iam.ensure_trusted_form(cx)?;
    iam.ensure_trusted_target(Some(link.target()))?;
    let error = match confirm(cx, &iam, &scope, &link.token, password.as_deref()).await {
        Ok(done) => {
            return Ok(PageOr::To(match &done.signed_in {
                Some(outcome) => redirect_after_sign_in(cx, &iam, link.target(), outcome),
                None => Output::new(iam.absolute(link.target())),
            }));
        }
        Err(error) => error,
    };
    match error.code() {
        // The session ended after the page was opened, so the page now asks for the password.
        Code::Unauthorized => page_of(cx, &iam, &scope, link, &FormErrors::none()).await,
        Code::InvalidToken => redirect_to_refusal(&iam, link, error),
        _ => {
            let words = |code| {
                let wrong = (Some("password"), "The password is wrong.");
                (code == Code::InvalidEmailOrPassword).then_some(wrong)
            };
            let errors = FormErrors::on_page(error, words)?;
            page_of(cx, &iam, &scope, link, &errors).await
        }
    }
}

/// The fields of the form that takes the account over.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct TakeOverForm {
    #[serde(flatten)]
    link: Link,
    /// The new password, 8 to 128 characters.
    #[schemars(length(max = MAX_PASSWORD_TEXT), regex(pattern = r"^[^\u0000]*$"), example = "staple battery horse")]
    new_password: String,
}

async fn take_over(
    cx: &Cx,
    iam: Arc<Iam>,
    scope: PublicScope,
    input: Input<(), (), TakeOverForm>,
) -> Result<PageOr> {
    let TakeOverForm { link, new_password } = &input.body;
    iam.ensure_trusted_form(cx)?;
    iam.ensure_trusted_target(Some(link.target()))?;
    let Err(error) = take_over_account(cx, &iam, &scope, &link.token, new_password).await else {
        return Ok(layout::redirect(&iam, "/sign-in?notice=password-changed"));
    };
    if error.code() == Code::InvalidToken {
        return redirect_to_refusal(&iam, link, error);
    }
    let errors = FormErrors::of(error)?.about(NEW_PASSWORD);
    page_of(cx, &iam, &scope, link, &errors).await
}

/// Takes the account over. The password is hashed before a unit of work is opened.
async fn take_over_account(
    cx: &Cx,
    iam: &Iam,
    scope: &PublicScope,
    token: &str,
    password: &str,
) -> Result<()> {
    let password = normalize_password(password)?;
    check_password(&password)?;
    confirmable(cx, scope, token).await?;
    let hash = &PasswordHash::new(cx.app.hasher.hash(&password).await.map_err(hashing_error)?);
    let notices = iam.notices(cx);
    let user = transact(cx.app.store.as_ref(), |uow, _| {
        Box::pin(take_over_by_link(cx, scope, uow, token, hash, notices))
    })
    .await?;
    iam.failed_sign_ins.clear(&user.email).await;
    Ok(())
}

/// The fields of the form that deletes the account.
#[derive(Clone, Deserialize, JsonSchema)]
struct DeleteUnconfirmedForm {
    #[serde(flatten)]
    link: Link,
    /// `true` if the person ticked the confirmation checkbox.
    sure: bool,
}

async fn delete(
    cx: &Cx,
    iam: Arc<Iam>,
    scope: PublicScope,
    input: Input<(), (), DeleteUnconfirmedForm>,
) -> Result<PageOr> {
    let DeleteUnconfirmedForm { link, sure } = &input.body;
    iam.ensure_trusted_form(cx)?;
    iam.ensure_trusted_target(Some(link.target()))?;
    if !sure {
        return page_of(cx, &iam, &scope, link, &FormErrors::none()).await;
    }
    let token = &link.token;
    let outcome = transact(cx.app.store.as_ref(), |uow, _| {
        Box::pin(delete_by_link(cx, &scope, uow, token))
    })
    .await;
    let Err(error) = outcome else {
        return Ok(layout::redirect(&iam, DELETED));
    };
    if error.code() == Code::InvalidToken {
        return redirect_to_refusal(&iam, link, error);
    }
    let words = |code| {
        let member = "This account is a member of an organization, so it cannot be deleted here. Take it over instead.";
        (code == Code::Conflict).then_some((None, member))
    };
    let errors = FormErrors::on_page(error, words)?;
    page_of(cx, &iam, &scope, link, &errors).await
}

async fn deleted_page(_: &Cx, iam: Arc<Iam>, _: PublicScope, _: Input) -> Result<PageOr> {
    let content = html! {
        p { "The account was deleted. Nobody is signed in with your address." }
        ul.ways {
            li { a href=(iam.path("/sign-up")) { "Create an account of your own" } }
        }
    };
    Ok(layout::page(&iam, "The account was deleted", &content))
}
