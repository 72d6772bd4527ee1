//! Confirmation of addresses: the mailed link, and the routes that confirm by it together with a session or the password.

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
use super::status::Status;
use super::target::Target;
use super::user::checked_password;
use crate::kernel::{Cx, Endpoint, ErrorStyle, Input, Output, RedirectOr, get, post, with};

const VERIFY: &str = "/api/auth/verify-email";

pub(super) fn rows(iam: &Arc<Iam>) -> Vec<Endpoint> {
    vec![
        post("/api/auth/send-verification-email", "sendVerificationEmail")
            .summary(
                "Sends a link that confirms an address, if it has a user who has not confirmed it.",
            )
            .rate(RateClass::Strict)
            .errors(ErrorStyle::TopLevelCode)
            .refuses(&[Code::InvalidCallbackUrl, Code::InvalidOrigin])
            .writes(with(iam, send)),
        get(VERIFY, "verifyEmail")
            .summary(
                "Confirms the caller's address by the token of a link, and redirects where the link says. Without a session of the account \
                 it leads to the page that asks for its password.",
            )
            .success(&[StatusCode::OK, StatusCode::FOUND])
            .rate(RateClass::Strict)
            .errors(ErrorStyle::TopLevelCode)
            .refuses(&[Code::InvalidCallbackUrl])
            .refuses_as(Code::InvalidToken, StatusCode::UNAUTHORIZED)
            .refuses(&[Code::Unauthorized])
            .writes(with(iam, verify)),
        post(VERIFY, "verifyEmailByPost")
            .summary("Confirms an address by the token of a link, together with a session of its account or the password.")
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

/// The body of a request for a link.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct SendVerificationEmail {
    email: Email,
    /// Where the link leads in the end.
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
    iam.refuse_foreign_origin(cx)?;
    iam.refuse_foreign_target(body.callback_url.as_deref())?;
    let target = body.callback_url.as_deref();
    send_link(cx, &iam, &scope, uow, &body.email, target).await?;
    Ok(Output::new(Status::OK))
}

/// Sends a link that confirms an address and leads to `target`, if the address has a user who has not confirmed it.
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

/// The query of a link.
#[derive(Clone, Deserialize, JsonSchema)]
struct VerifyEmail {
    #[schemars(length(min = 1, max = 512), regex(pattern = r"^[^\u0000]*$"))]
    token: String,
    /// Where to go.
    #[serde(rename = "callbackURL")]
    callback_url: Option<Target>,
}

/// The address is confirmed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct EmailVerified {
    /// Always true.
    status: bool,
    /// Always null: who is signed in is told by the session.
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
    iam.refuse_foreign_target(query.callback_url.as_deref())?;
    let target = query.callback_url.as_deref();
    // Those who only look at a link must not use it up.
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

/// The address that a link leads to which is not valid any more.
pub(super) fn refused_target(iam: &Iam, target: &str) -> String {
    let code = Code::InvalidToken.as_str();
    with_parameters(iam.absolute(target), &[("error", code)])
}

/// The body of a confirmation.
#[derive(Clone, Deserialize, JsonSchema)]
struct VerifyEmailByPost {
    /// The token of the link.
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
    iam.refuse_foreign_origin(cx)?;
    let done = confirm(cx, &iam, &scope, token, password.as_deref()).await?;
    let answer = Output::new(EmailVerified::YES);
    Ok(match &done.signed_in {
        Some(outcome) => set_outcome_cookie(cx, &iam, answer, outcome),
        None => answer,
    })
}

/// Confirms the address of a token: by the password if there is one, otherwise by the session of the request.
///
/// # Errors
/// `INVALID_TOKEN`; `UNAUTHORIZED` without a password and a session of the account; `INVALID_EMAIL_OR_PASSWORD`;
/// `RATE_LIMITED` when too many passwords were wrong.
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
            Some(checked_password(cx, iam, scope, &account.user.email, password).await?)
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

/// The account whose address a token confirms. The token is not used up.
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
