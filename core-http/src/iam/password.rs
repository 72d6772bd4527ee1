//! Passwords: checked, changed, and set anew by a link that is sent by mail. Hashing comes first; no unit of work is open
//! meanwhile.

use std::sync::Arc;

use core_domain::access::{PublicScope, SessionScope};
use core_domain::gateway::RateClass;
use core_domain::iam::{PasswordHash, User, check_password, normal_password};
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
use super::status::Status;
use super::target::Target;
use super::user::broken;
use crate::kernel::{Cx, Endpoint, ErrorStyle, Input, Output, Redirect, get, post, with};

/// The page that links for a new password lead to.
pub(super) const RESET_PAGE: &str = "/reset-password";

pub(super) fn rows(iam: &Arc<Iam>) -> Vec<Endpoint> {
    vec![
        post("/api/auth/change-password", "changePassword")
            .summary("Sets a new password; the person's other sessions end.")
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
            .summary("Tells whether a password is the caller's; a fresh proof of who they are, unless they have a second factor.")
            .rate(RateClass::Strict)
            .errors(ErrorStyle::TopLevelCode)
            .refuses(&[Code::InvalidPassword])
            .plain(with(iam, verify)),
        post("/api/auth/request-password-reset", "requestPasswordReset")
            .summary("Sends a link for a new password, if the address has a user.")
            .rate(RateClass::Strict)
            .errors(ErrorStyle::TopLevelCode)
            .refuses(&[Code::InvalidCallbackUrl, Code::InvalidOrigin])
            .writes(with(iam, request_reset)),
        get("/api/auth/reset-password/{token}", "followPasswordReset")
            .summary("Sends a browser on to the page that asks for the new password, with the token or an error.")
            .success(&[StatusCode::FOUND])
            .errors(ErrorStyle::TopLevelCode)
            .refuses(&[Code::InvalidCallbackUrl])
            .reads(with(iam, follow_reset)),
        post("/api/auth/reset-password", "resetPassword")
            .summary("Sets a new password by the token of a link, once; all sessions end.")
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

/// The body of a change.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ChangePassword {
    #[schemars(length(max = MAX_PASSWORD_TEXT), regex(pattern = r"^[^\u0000]*$"), example = "correct horse battery")]
    current_password: String,
    #[schemars(length(max = MAX_PASSWORD_TEXT), regex(pattern = r"^[^\u0000]*$"), example = "staple battery horse")]
    new_password: String,
    /// The session of the request ends as well, and a new one begins.
    revoke_other_sessions: Option<bool>,
}

/// The answer to a change.
#[derive(Clone, Serialize, JsonSchema)]
struct PasswordChanged {
    /// Of the new session, where one was asked for.
    token: Option<String>,
    user: User,
}

async fn change(
    cx: &Cx,
    iam: Arc<Iam>,
    scope: SessionScope,
    input: Input<(), (), ChangePassword>,
) -> Result<Output<PasswordChanged>> {
    let body = input.body;
    let new = normal_password(&body.new_password)?;
    check_password(&new)?;
    let (_, checked) = check_own(cx, &iam, &scope, &body.current_password).await?;
    let hash = PasswordHash::new(cx.app.hasher.hash(&new).await.map_err(broken)?);
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

/// The caller and what their password was checked against; whoever has taken a session over must not try passwords
/// without end either.
pub(super) async fn check_own(
    cx: &Cx,
    iam: &Iam,
    scope: &SessionScope,
    password: &str,
) -> Result<(Stored<User>, PasswordCredential)> {
    let mut uow = cx.app.store.begin(Mode::Read).await?;
    let found = user::own_credential(scope, uow.as_mut()).await;
    uow.rollback().await;
    let (person, on_file) = found?;
    let attempt = begin_session_attempt(cx, iam, scope.session_id(), &person.email).await?;
    let hash = on_file.as_ref().map(|on_file| on_file.hash.expose());
    let normal = normal_password(password).unwrap_or_default();
    let right = cx.app.hasher.verify(&normal, hash).await.map_err(broken)?;
    let Some(on_file) = on_file.filter(|_| right && !normal.is_empty()) else {
        transact(cx.app.store.as_ref(), |uow, _| {
            Box::pin(user::password_check_failed(cx, scope, uow, &person))
        })
        .await?;
        return Err(wrong_password());
    };
    iam.failed_sign_ins.succeeded(&attempt).await;
    Ok((person, on_file))
}

/// The body of a check.
#[derive(Clone, Deserialize, JsonSchema)]
struct VerifyPassword {
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

/// Takes the caller's password as a fresh proof of who they are.
pub(super) async fn reauthenticate(
    cx: &Cx,
    iam: &Iam,
    scope: &SessionScope,
    password: &str,
) -> Result<()> {
    check_own(cx, iam, scope, password).await?;
    transact(cx.app.store.as_ref(), |uow, _| {
        Box::pin(session::reauthenticate_by_password(cx, scope, uow))
    })
    .await
}

/// The body of a request for a link.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct RequestPasswordReset {
    email: Email,
    /// The page that asks for the new password; one of ours when not said. It gets the token as `token`.
    redirect_to: Option<Target>,
}

/// The answer to a request for a link: the same for every address.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
struct PasswordResetRequested {
    status: bool,
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
    iam.refuse_foreign_origin(cx)?;
    iam.refuse_foreign_target(redirect_to.as_deref())?;
    send_reset_link(cx, &iam, &scope, uow, &email, redirect_to.as_deref()).await?;
    Ok(Output::new(PasswordResetRequested {
        status: true,
        message: "If this email exists in our system, check your email for the reset link",
    }))
}

/// Sends a link for a new password, if the address has a user; it leads to our own page when no other is named.
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

/// The query of a link.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct FollowPasswordReset {
    /// The page that asks for the new password.
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
    iam.refuse_foreign_target(Some(&target))?;
    let token = input.path.0.as_str();
    let good = user::check_reset_token(uow, token).await;
    let location = reset_page(&iam, &target, token, good)?;
    Ok(Redirect { location })
}

/// The address of a page of an application that asks for a new password: with the token, or with the reason why it is refused.
///
/// # Errors
/// Those that are no refusal of the token.
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

/// The body of a reset.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ResetPassword {
    #[schemars(length(max = MAX_PASSWORD_TEXT), regex(pattern = r"^[^\u0000]*$"), example = "staple battery horse")]
    new_password: String,
    #[schemars(length(min = 1, max = 512), regex(pattern = r"^[^\u0000]*$"))]
    token: String,
    /// Whether the API keys of the person are deleted as well. Default: false.
    delete_api_keys: Option<bool>,
}

async fn reset(
    cx: &Cx,
    iam: Arc<Iam>,
    scope: PublicScope,
    input: Input<(), (), ResetPassword>,
) -> Result<Output<Status>> {
    let body = input.body;
    iam.refuse_foreign_origin(cx)?;
    let new = NewPassword {
        token: &body.token,
        password: &body.new_password,
        delete_api_keys: body.delete_api_keys.unwrap_or(false),
    };
    set_by_link(cx, &iam, &scope, new).await?;
    Ok(Output::new(Status::OK))
}

/// A new password by the token of a link.
#[derive(Clone, Copy)]
pub(super) struct NewPassword<'a> {
    /// The token of the link.
    pub(super) token: &'a str,
    /// The new password, as entered.
    pub(super) password: &'a str,
    /// Whether the API keys of the person are deleted as well.
    pub(super) delete_api_keys: bool,
}

/// Sets a new password by the token of a link.
pub(super) async fn set_by_link(
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
    let password = normal_password(password)?;
    check_password(&password)?;
    let mut uow = cx.app.store.begin(Mode::Read).await?;
    let good = user::check_reset_token(uow.as_mut(), token).await;
    uow.rollback().await;
    good?;
    let hash = &PasswordHash::new(cx.app.hasher.hash(&password).await.map_err(broken)?);
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
