//! Checking, changing and resetting passwords. Hashing is slow, so it happens before a unit of work is opened.

use std::sync::Arc;

use core_domain::access::{PublicScope, SessionScope};
use core_domain::gateway::RateClass;
use core_domain::iam::{PasswordHash, User, check_password, normalize_password};
use core_domain::kernel::{Code, Email, Error, Result, Stored};
use core_domain::port::{Mode, UnitOfWork, transact};
use core_domain::use_case::iam::session;
use core_domain::use_case::iam::user::{self, PasswordCredential, PasswordReset, wrong_password};
use core_domain::use_case::iam::verification::Links;
use http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::attempt::begin_session_attempt;
use super::bounds::MAX_PASSWORD_TEXT;
use super::config::{Iam, with_parameters};
use super::cookies::set_session_cookie;
use super::sign_in::hashing_error;
use super::status::Status;
use super::target::Target;
use crate::kernel::{Cx, Endpoint, ErrorStyle, Input, Output, Redirect, get, post, with};

/// Path of the page that password reset links open.
pub(super) const RESET_PAGE: &str = "/reset-password";

pub(super) fn rows(iam: &Arc<Iam>) -> Vec<Endpoint> {
    vec![
        post("/api/auth/change-password", "changePassword")
            .summary("Changes the caller's password.")
            .description(
                "Always ends all other sessions of the user. Cancels sign-ins that wait for a \
                 second factor and approved devices without tokens, and removes all trusted \
                 devices. With `revokeOtherSessions` the session of the request is replaced by a \
                 new one as well. The owner is informed by mail.",
            )
            .rate(RateClass::Strict)
            .errors(ErrorStyle::TopLevelCode)
            .refuses(&[
                Code::InvalidPassword,
                Code::PasswordTooShort,
                Code::PasswordTooLong,
                Code::PasswordTooCommon,
            ])
            .plain(with(iam, change)),
        post("/api/auth/verify-password", "verifyPassword")
            .summary("Checks the caller's password.")
            .description(
                "A correct password counts as a fresh proof of identity, unless the user has a \
                 second factor. A wrong password is counted and delays further attempts in this \
                 session.",
            )
            .rate(RateClass::Strict)
            .errors(ErrorStyle::TopLevelCode)
            .refuses(&[Code::InvalidPassword])
            .plain(with(iam, verify)),
        post("/api/auth/request-password-reset", "requestPasswordReset")
            .summary("Sends a password reset link by mail.")
            .description(
                "Mails a link if the address belongs to a user; the response is the same for \
                 every address. The link is valid for one hour and works once. The number of \
                 mails to an address per hour is limited; mails beyond it are silently dropped.",
            )
            .rate(RateClass::Strict)
            .errors(ErrorStyle::TopLevelCode)
            .refuses(&[Code::InvalidCallbackUrl, Code::InvalidOrigin])
            .writes(with(iam, request_reset)),
        get("/api/auth/reset-password/{token}", "followPasswordReset")
            .summary("Redirects to the page that asks for a new password.")
            .description(
                "Adds the `token` to the query of `callbackURL` if it is valid, otherwise `error` \
                 with the code. The token is not used up.",
            )
            .success(&[StatusCode::FOUND])
            .errors(ErrorStyle::TopLevelCode)
            .refuses(&[Code::InvalidCallbackUrl])
            .reads(with(iam, follow_reset)),
        post("/api/auth/reset-password", "resetPassword")
            .summary("Sets a new password with a mailed token.")
            .description(
                "The token works once. Ends all sessions of the user, marks the address as \
                 verified and informs the owner by mail. Second factors and API keys are kept, \
                 unless `deleteApiKeys` is set. If the address was not verified before, second \
                 factors, passkeys and API keys are removed, because a stranger may have created \
                 them.",
            )
            .rate(RateClass::Strict)
            .errors(ErrorStyle::TopLevelCode)
            .refuses(&[
                Code::InvalidToken,
                Code::PasswordTooShort,
                Code::PasswordTooLong,
                Code::PasswordTooCommon,
            ])
            .plain(with(iam, reset)),
    ]
}

/// The current and the new password.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ChangePassword {
    /// The current password of the caller.
    #[schemars(length(max = MAX_PASSWORD_TEXT), regex(pattern = r"^[^\u0000]*$"), example = "correct horse battery")]
    current_password: String,
    /// The new password, 8 to 128 characters.
    #[schemars(length(max = MAX_PASSWORD_TEXT), regex(pattern = r"^[^\u0000]*$"), example = "staple battery horse")]
    new_password: String,
    /// Whether the session of the request is replaced by a new one. Other sessions end in any case. Default: false.
    revoke_other_sessions: Option<bool>,
}

/// The response after the password was changed.
#[derive(Clone, Serialize, JsonSchema)]
struct PasswordChanged {
    /// The token of the new session; `null` if the session was kept.
    token: Option<String>,
    /// The user whose password was changed.
    user: User,
}

async fn change(
    cx: &Cx,
    iam: Arc<Iam>,
    scope: SessionScope,
    input: Input<(), (), ChangePassword>,
) -> Result<Output<PasswordChanged>> {
    let body = input.body;
    let new = normalize_password(&body.new_password)?;
    check_password(&new)?;
    let (_, checked) = check_own_password(cx, &iam, &scope, &body.current_password).await?;
    let hash = PasswordHash::new(cx.app.hasher.hash(&new).await.map_err(hashing_error)?);
    let (checked, hash) = (&checked, &hash);
    let notices = iam.notices(cx);
    let renew = body.revoke_other_sessions.unwrap_or(false);
    let done = transact(cx.app.store.as_ref(), |uow, _| {
        Box::pin(user::change_password(
            cx, &scope, uow, checked, hash, renew, notices,
        ))
    })
    .await?;
    let answer = Output::new(PasswordChanged {
        token: done.renewed.as_ref().map(|renewed| renewed.token.clone()),
        user: done.user.edit(),
    });
    Ok(match &done.renewed {
        Some(renewed) => set_session_cookie(&iam, answer, &renewed.session, &renewed.token),
        None => answer,
    })
}

/// Checks the caller's password. Returns the caller and the credential that the password was checked against. Attempts
/// are limited, so that a stolen session cannot be used to guess the password.
pub(super) async fn check_own_password(
    cx: &Cx,
    iam: &Iam,
    scope: &SessionScope,
    password: &str,
) -> Result<(Stored<User>, PasswordCredential)> {
    let mut uow = cx.app.store.begin(Mode::Read).await?;
    let found = user::find_own_credential(scope, uow.as_mut()).await;
    uow.rollback().await;
    let (person, on_file) = found?;
    let attempt = begin_session_attempt(cx, iam, scope.session_id(), &person.email).await?;
    let hash = on_file.as_ref().map(|on_file| on_file.hash.expose());
    let normal = normalize_password(password).unwrap_or_default();
    let right = cx
        .app
        .hasher
        .verify(&normal, hash)
        .await
        .map_err(hashing_error)?;
    let Some(on_file) = on_file.filter(|_| right && !normal.is_empty()) else {
        transact(cx.app.store.as_ref(), |uow, _| {
            Box::pin(user::record_failed_password_check(cx, scope, uow, &person))
        })
        .await?;
        return Err(wrong_password());
    };
    iam.failed_sign_ins.record_success(&attempt).await;
    Ok((person, on_file))
}

/// The password to check.
#[derive(Clone, Deserialize, JsonSchema)]
struct VerifyPassword {
    /// The current password of the caller.
    #[schemars(length(max = MAX_PASSWORD_TEXT), regex(pattern = r"^[^\u0000]*$"), example = "correct horse battery")]
    password: String,
}

async fn verify(
    cx: &Cx,
    iam: Arc<Iam>,
    scope: SessionScope,
    input: Input<(), (), VerifyPassword>,
) -> Result<Output<Status>> {
    reauthenticate(cx, &iam, &scope, &input.body.password).await?;
    Ok(Output::new(Status::OK))
}

/// Checks the caller's password and records it as a fresh proof of identity.
pub(super) async fn reauthenticate(
    cx: &Cx,
    iam: &Iam,
    scope: &SessionScope,
    password: &str,
) -> Result<()> {
    check_own_password(cx, iam, scope, password).await?;
    transact(cx.app.store.as_ref(), |uow, _| {
        Box::pin(session::reauthenticate_by_password(cx, scope, uow))
    })
    .await
}

/// The address that the reset link is sent to.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct RequestPasswordReset {
    /// The email address of the account.
    email: Email,
    /// The page that asks for the new password: a path of IAM or a URL of a trusted origin. It receives the token as
    /// the parameter `token`. Default: the page of IAM.
    redirect_to: Option<Target>,
}

/// The response to a reset request; the same for every address.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
struct PasswordResetRequested {
    /// Always `true` in this response.
    status: bool,
    /// A message to show to the person.
    message: &'static str,
}

async fn request_reset(
    cx: &Cx,
    iam: Arc<Iam>,
    scope: PublicScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), RequestPasswordReset>,
) -> Result<Output<PasswordResetRequested>> {
    let RequestPasswordReset { email, redirect_to } = input.body;
    iam.ensure_trusted_origin(cx)?;
    iam.ensure_trusted_target(redirect_to.as_deref())?;
    send_reset_link(cx, &iam, &scope, uow, &email, redirect_to.as_deref()).await?;
    Ok(Output::new(PasswordResetRequested {
        status: true,
        message: "If this email exists in our system, check your email for the reset link",
    }))
}

/// Sends a password reset link if the address belongs to a user. Without a page the link opens the page of IAM.
pub(super) async fn send_reset_link(
    cx: &Cx,
    iam: &Iam,
    scope: &PublicScope,
    uow: &mut dyn UnitOfWork,
    email: &Email,
    page: Option<&str>,
) -> Result<()> {
    let link = |token: &str| {
        let target = page.map(|page| ("callbackURL", page));
        let parameters = [Some(("token", token)), target];
        let parameters: Vec<_> = parameters.into_iter().flatten().collect();
        iam.link(RESET_PAGE, &parameters)
    };
    let links = Links {
        link: &link,
        cipher: &cx.app.cipher,
    };
    user::request_password_reset(cx, scope, uow, email, links).await
}

/// The query of a reset link.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct FollowPasswordReset {
    /// The page that asks for the new password: a path of IAM or a URL of a trusted origin.
    #[serde(rename = "callbackURL")]
    #[schemars(
        length(max = 2048),
        regex(pattern = r"^[^\u0000]*$"),
        example = "/new-password"
    )]
    callback_url: String,
}

async fn follow_reset(
    _: &Cx,
    iam: Arc<Iam>,
    _: PublicScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(core_domain::kernel::Line<1, 128>,), FollowPasswordReset>,
) -> Result<Redirect> {
    let target = input.query.callback_url;
    iam.ensure_trusted_target(Some(&target))?;
    let token = input.path.0.as_str();
    let good = user::check_reset_token(uow, token).await;
    let location = reset_page(&iam, &target, token, good)?;
    Ok(Redirect { location })
}

/// Returns the URL of an application's page that asks for a new password, with the token or with the code of its
/// refusal.
///
/// # Errors
/// Returns errors other than the refusal of the token.
pub(super) fn reset_page(
    iam: &Iam,
    target: &str,
    token: &str,
    checked: Result<()>,
) -> Result<String> {
    let parameter = match checked {
        Ok(()) => ("token", token),
        Err(Error::Refused { code, .. }) => ("error", code.as_str()),
        Err(error) => return Err(error),
    };
    Ok(with_parameters(iam.absolute(target), &[parameter]))
}

/// The token of a reset link and the new password.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ResetPassword {
    /// The new password, 8 to 128 characters.
    #[schemars(length(max = MAX_PASSWORD_TEXT), regex(pattern = r"^[^\u0000]*$"), example = "staple battery horse")]
    new_password: String,
    /// The token of the reset link.
    #[schemars(length(min = 1, max = 512), regex(pattern = r"^[^\u0000]*$"))]
    token: String,
    /// Whether the API keys of the user are deleted as well. Default: false.
    delete_api_keys: Option<bool>,
}

async fn reset(
    cx: &Cx,
    iam: Arc<Iam>,
    scope: PublicScope,
    input: Input<(), (), ResetPassword>,
) -> Result<Output<Status>> {
    let body = input.body;
    iam.ensure_trusted_origin(cx)?;
    let new = NewPassword {
        token: &body.token,
        password: &body.new_password,
        delete_api_keys: body.delete_api_keys.unwrap_or(false),
    };
    reset_password_by_link(cx, &iam, &scope, new).await?;
    Ok(Output::new(Status::OK))
}

/// A new password that is set with the token of a link.
#[derive(Clone, Copy)]
pub(super) struct NewPassword<'a> {
    /// The token of the link.
    pub(super) token: &'a str,
    /// The new password, as the person entered it.
    pub(super) password: &'a str,
    /// Whether the API keys of the user are deleted as well.
    pub(super) delete_api_keys: bool,
}

/// Sets a new password with the token of a link and clears the sign-in delay of the account.
pub(super) async fn reset_password_by_link(
    cx: &Cx,
    iam: &Iam,
    scope: &PublicScope,
    new: NewPassword<'_>,
) -> Result<()> {
    let NewPassword {
        token,
        password,
        delete_api_keys,
    } = new;
    let password = normalize_password(password)?;
    check_password(&password)?;
    let mut uow = cx.app.store.begin(Mode::Read).await?;
    let good = user::check_reset_token(uow.as_mut(), token).await;
    uow.rollback().await;
    good?;
    let hash = &PasswordHash::new(cx.app.hasher.hash(&password).await.map_err(hashing_error)?);
    let notices = iam.notices(cx);
    let reset = &PasswordReset {
        token,
        hash,
        delete_api_keys,
    };
    let user = transact(cx.app.store.as_ref(), |uow, _| {
        Box::pin(user::reset_password(cx, scope, uow, reset, notices))
    })
    .await?;
    iam.failed_sign_ins.clear(&user.email).await;
    Ok(())
}
