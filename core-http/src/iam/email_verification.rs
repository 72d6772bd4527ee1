//! Verification of email addresses. The token of a mailed link is accepted only together with a session or the password
//! of the account.

use std::sync::Arc;

use core_domain::access::PublicScope;
use core_domain::gateway::RateClass;
use core_domain::iam::User;
use core_domain::kernel::{Code, Email, Error, Result};
use core_domain::port::{Mode, UnitOfWork, transact};
use core_domain::use_case::iam::user::{self, AccountProof, ConfirmableAccount, VerifiedEmail};
use core_domain::use_case::iam::verification::Links;
use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bounds::MAX_PASSWORD_TEXT;
use super::challenge::set_outcome_cookie;
use super::config::{Iam, with_parameters};
use super::sign_in::check_counted_password;
use super::status::Status;
use super::target::Target;
use crate::kernel::{Cx, Endpoint, ErrorStyle, Input, Output, RedirectOr, get, post, with};

const VERIFY: &str = "/api/auth/verify-email";

pub(super) fn rows(iam: &Arc<Iam>) -> Vec<Endpoint> {
    vec![
        post("/api/auth/send-verification-email", "sendVerificationEmail")
            .summary("Sends an email verification link.")
            .description(
                "Mails a verification link if the address belongs to a user who has not verified \
                 it. The response is the same for every address. A link is valid for one hour; \
                 earlier links stay valid. The number of mails to an address per hour is limited; \
                 mails beyond it are silently dropped.",
            )
            .rate(RateClass::Strict)
            .errors(ErrorStyle::TopLevelCode)
            .refuses(&[Code::InvalidCallbackUrl, Code::InvalidOrigin])
            .writes(with(iam, send)),
        get(VERIFY, "verifyEmail")
            .summary("Verifies the caller's email address with a mailed token.")
            .description(
                "Requires a session of the account that the token belongs to. The token can be \
                 used once, and the owner is informed by mail. Without `callbackURL` the response \
                 is JSON. With it the browser is redirected there; for an invalid token, \
                 `error=INVALID_TOKEN` is added to the URL. With `callbackURL` but without a \
                 session of the account, the browser is redirected to a page that asks for the \
                 password.",
            )
            .success(&[StatusCode::OK, StatusCode::FOUND])
            .rate(RateClass::Strict)
            .errors(ErrorStyle::TopLevelCode)
            .refuses(&[Code::InvalidCallbackUrl])
            .refuses_as(Code::InvalidToken, StatusCode::UNAUTHORIZED)
            .refuses(&[Code::Unauthorized])
            .writes(with(iam, verify)),
        post(VERIFY, "verifyEmailByPost")
            .summary("Verifies an email address with a mailed token and a proof.")
            .description(
                "The proof is the password of the account or a session of it. The token can be \
                 used once; the owner is informed by mail. If the installation signs users in \
                 after the verification, a request with a password also starts a session. Users \
                 with an authenticator must then complete the second factor.",
            )
            .rate(RateClass::Strict)
            .errors(ErrorStyle::TopLevelCode)
            .refuses(&[
                Code::Unauthorized,
                Code::InvalidEmailOrPassword,
                Code::InvalidOrigin,
            ])
            .refuses_as(Code::InvalidToken, StatusCode::UNAUTHORIZED)
            .plain(with(iam, verify_by_post)),
    ]
}

/// The address that the verification link is sent to.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct SendVerificationEmail {
    /// The email address to verify.
    email: Email,
    /// Redirect target after the verification: a path of IAM or a URL of a trusted origin. Default: `/`.
    #[serde(rename = "callbackURL")]
    callback_url: Option<Target>,
}

async fn send(
    cx: &Cx,
    iam: Arc<Iam>,
    scope: PublicScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), SendVerificationEmail>,
) -> Result<Output<Status>> {
    let body = input.body;
    iam.ensure_trusted_origin(cx)?;
    iam.ensure_trusted_target(body.callback_url.as_deref())?;
    let target = body.callback_url.as_deref();
    send_link(cx, &iam, &scope, uow, &body.email, target).await?;
    Ok(Output::new(Status::OK))
}

/// Sends a verification link that redirects to `target`, if the address belongs to a user who has not verified it.
pub(super) async fn send_link(
    cx: &Cx,
    iam: &Iam,
    scope: &PublicScope,
    uow: &mut dyn UnitOfWork,
    email: &Email,
    target: Option<&str>,
) -> Result<()> {
    let link = |token: &str| iam.verification_link(token, target);
    let links = Links {
        link: &link,
        cipher: &cx.app.cipher,
    };
    user::send_verification_email(cx, scope, uow, email, links).await
}

impl EmailVerified {
    const YES: Self = Self {
        status: true,
        user: None,
    };
}

/// The query of a verification link.
#[derive(Clone, Deserialize, JsonSchema)]
struct VerifyEmail {
    /// The token of the verification link.
    #[schemars(length(min = 1, max = 512), regex(pattern = r"^[^\u0000]*$"))]
    token: String,
    /// Redirect target after the verification: a path of IAM or a URL of a trusted origin. Default: none, the response
    /// is JSON.
    #[serde(rename = "callbackURL")]
    callback_url: Option<Target>,
}

/// The response after the address was verified.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct EmailVerified {
    /// Always `true` in this response.
    status: bool,
    /// Always `null`; read the session to get the user.
    user: Option<User>,
}

async fn verify(
    cx: &Cx,
    iam: Arc<Iam>,
    scope: PublicScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(), VerifyEmail>,
) -> Result<RedirectOr<EmailVerified>> {
    let query = input.query;
    iam.ensure_trusted_target(query.callback_url.as_deref())?;
    let target = query.callback_url.as_deref();
    // A HEAD request must not consume the token.
    let outcome = if cx.method == Method::HEAD {
        Err(Error::Unauthorized)
    } else {
        let notices = iam.notices(cx);
        user::verify_email(
            cx,
            &scope,
            uow,
            &query.token,
            AccountProof::Session,
            notices,
        )
        .await
    };
    match (outcome, target) {
        (Ok(_), None) => Ok(RedirectOr::Json(Output::new(EmailVerified::YES))),
        (Ok(_), Some(target)) => Ok(RedirectOr::To(Output::new(iam.absolute(target)))),
        (Err(Error::Unauthorized), Some(_)) => {
            let page = iam.verification_link(&query.token, target);
            Ok(RedirectOr::To(Output::new(page)))
        }
        (Err(error), Some(target)) if error.code() == Code::InvalidToken => {
            Ok(RedirectOr::To(Output::new(refused_target(&iam, target))))
        }
        (Err(error), _) => Err(error),
    }
}

/// Returns the URL to redirect to if the token of a link is invalid.
pub(super) fn refused_target(iam: &Iam, target: &str) -> String {
    let code = Code::InvalidToken.as_str();
    with_parameters(iam.absolute(target), &[("error", code)])
}

/// The token of a link, and optionally the password of the account.
#[derive(Clone, Deserialize, JsonSchema)]
struct VerifyEmailByPost {
    /// The token of the verification link.
    #[schemars(length(min = 1, max = 512), regex(pattern = r"^[^\u0000]*$"))]
    token: String,
    /// The password of the account. Without it, the request needs a session of the account.
    #[schemars(length(max = MAX_PASSWORD_TEXT), regex(pattern = r"^[^\u0000]*$"), example = &"correct horse battery")]
    password: Option<String>,
}

async fn verify_by_post(
    cx: &Cx,
    iam: Arc<Iam>,
    scope: PublicScope,
    input: Input<(), (), VerifyEmailByPost>,
) -> Result<Output<EmailVerified>> {
    let VerifyEmailByPost { token, password } = &input.body;
    iam.ensure_trusted_origin(cx)?;
    let done = confirm(cx, &iam, &scope, token, password.as_deref()).await?;
    let answer = Output::new(EmailVerified::YES);
    Ok(match &done.signed_in {
        Some(outcome) => set_outcome_cookie(cx, &iam, answer, outcome),
        None => answer,
    })
}

/// Verifies the address of a token. The proof is the password if there is one, otherwise the session of the request.
///
/// # Errors
/// Returns `INVALID_TOKEN` for a token that is unknown, used or expired, and `INVALID_EMAIL_OR_PASSWORD` for a wrong
/// password. Returns `UNAUTHORIZED` without a password and a session of the account. Returns `RATE_LIMITED` after too
/// many wrong passwords.
pub(super) async fn confirm(
    cx: &Cx,
    iam: &Iam,
    scope: &PublicScope,
    token: &str,
    password: Option<&str>,
) -> Result<VerifiedEmail> {
    let checked = match password {
        Some(password) => {
            let account = confirmable(cx, scope, token).await?;
            Some(check_counted_password(cx, iam, scope, &account.user.email, password).await?)
        }
        None => None,
    };
    let proof = match &checked {
        Some(checked) => AccountProof::Password {
            checked,
            sign_in: iam.options.auto_sign_in_after_verification,
        },
        None => AccountProof::Session,
    };
    let notices = iam.notices(cx);
    transact(cx.app.store.as_ref(), |uow, _| {
        Box::pin(user::verify_email(cx, scope, uow, token, proof, notices))
    })
    .await
}

/// Returns the account whose address a token verifies, without consuming the token.
pub(super) async fn confirmable(
    cx: &Cx,
    scope: &PublicScope,
    token: &str,
) -> Result<ConfirmableAccount> {
    let mut uow = cx.app.store.begin(Mode::Read).await?;
    let account = user::confirmable_account(scope, uow.as_mut(), token).await;
    uow.rollback().await;
    account
}
