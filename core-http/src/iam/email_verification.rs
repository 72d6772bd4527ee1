//! Proving that one reads mail at one's address.

use std::sync::Arc;

use core_domain::access::PublicScope;
use core_domain::gateway::RateClass;
use core_domain::iam::User;
use core_domain::kernel::{Code, Email, Error, Result};
use core_domain::port::UnitOfWork;
use core_domain::use_case::iam::session::SignInOutcome;
use core_domain::use_case::iam::user;
use core_domain::use_case::iam::verification::Links;
use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::challenge::set_outcome_cookie;
use super::config::{Iam, with_parameters};
use super::status::Status;
use super::target::Target;
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
            .summary("Confirms an address by the token of a link; redirects where the link says.")
            .success(&[StatusCode::OK, StatusCode::FOUND])
            .rate(RateClass::Strict)
            .errors(ErrorStyle::TopLevelCode)
            .refuses(&[Code::InvalidCallbackUrl])
            .refuses_as(Code::InvalidToken, StatusCode::UNAUTHORIZED)
            .writes(with(iam, verify)),
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
    let link = |token: &str| verification_link(iam, token, target);
    let links = Links {
        link: &link,
        cipher: &cx.app.cipher,
    };
    user::send_verification_email(cx, scope, uow, email, links).await
}

/// The link that confirms an address and leads on from there.
pub(super) fn verification_link(iam: &Iam, token: &str, target: Option<&str>) -> String {
    let target = target.unwrap_or("/");
    iam.link(VERIFY, &[("token", token), ("callbackURL", target)])
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
    // Those who only look at a link must not use it up.
    let outcome = if cx.method == Method::HEAD {
        Err(Error::refused(Code::InvalidToken, "Invalid token"))
    } else {
        let sign_in = iam.options.auto_sign_in_after_verification;
        let notices = iam.notices(cx);
        user::verify_email(cx, &scope, uow, &query.token, sign_in, notices).await
    };
    let Some(target) = query.callback_url.map(|target| iam.absolute(&target)) else {
        let signed_in = outcome?.signed_in;
        let done = EmailVerified {
            status: true,
            user: None,
        };
        let done = with_cookie(&iam, Output::new(done), signed_in.as_ref());
        return Ok(RedirectOr::Json(done));
    };
    match outcome {
        Ok(done) => {
            let signed_in = done.signed_in.as_ref();
            let target = match signed_in {
                Some(SignInOutcome::SecondFactorRequired(_)) => {
                    with_parameters(target, &[("twoFactorRedirect", "true")])
                }
                _ => target,
            };
            let to = with_cookie(&iam, Output::new(target), signed_in);
            Ok(RedirectOr::To(to))
        }
        Err(error) if error.code() == Code::InvalidToken => {
            let target = with_parameters(target, &[("error", error.code().as_str())]);
            Ok(RedirectOr::To(Output::new(target)))
        }
        Err(error) => Err(error),
    }
}

fn with_cookie<T>(iam: &Iam, output: Output<T>, signed_in: Option<&SignInOutcome>) -> Output<T> {
    match signed_in {
        None => output,
        Some(outcome) => set_outcome_cookie(iam, output, outcome),
    }
}
