//! Sign-in with a link that is sent by mail.

use std::sync::Arc;

use core_domain::access::PublicScope;
use core_domain::gateway::RateClass;
use core_domain::iam::User;
use core_domain::kernel::{Code, Email, Error, PersonName, Result};
use core_domain::port::UnitOfWork;
use core_domain::use_case::iam::session::{Challenged, SignInOutcome, SignedIn};
use core_domain::use_case::iam::user;
use core_domain::use_case::iam::verification::Links;
use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::challenge::{TwoFactorRedirect, set_challenge_cookie};
use super::config::{Iam, with_parameters};
use super::cookies::set_session_cookie;
use super::session::AuthSession;
use super::status::Status;
use super::target::Target;
use crate::kernel::{Cx, Endpoint, ErrorStyle, Input, Output, RedirectOr, get, post, with};

const VERIFY: &str = "/api/auth/magic-link/verify";

pub(super) fn rows(iam: &Arc<Iam>) -> Vec<Endpoint> {
    vec![
        post("/api/auth/sign-in/magic-link", "signInMagicLink")
            .summary("Sends a link that signs in whoever reads mail at the address.")
            .rate(RateClass::Strict)
            .errors(ErrorStyle::TopLevelCode)
            .refuses(&[Code::InvalidCallbackUrl, Code::InvalidOrigin])
            .writes(with(iam, send)),
        get(VERIFY, "verifyMagicLink")
            .summary("Signs in by the token of a link, once; redirects where the link says.")
            .success(&[StatusCode::OK, StatusCode::FOUND])
            .rate(RateClass::Strict)
            .errors(ErrorStyle::TopLevelCode)
            .refuses(&[Code::InvalidCallbackUrl])
            .writes(with(iam, verify)),
    ]
}

/// Where to go after a sign-in.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(super) struct Targets {
    /// A path of ours or a trusted origin.
    #[serde(rename = "callbackURL")]
    pub(super) callback: Option<Target>,
    /// For somebody who is new.
    #[serde(rename = "newUserCallbackURL")]
    pub(super) new_user: Option<Target>,
    /// When the link is good for nothing.
    #[serde(rename = "errorCallbackURL")]
    pub(super) error: Option<Target>,
}

impl Targets {
    fn ensure_ours(&self, iam: &Iam) -> Result<()> {
        for target in [&self.callback, &self.new_user, &self.error] {
            iam.refuse_foreign_target(target.as_deref())?;
        }
        Ok(())
    }
}

/// The body of a request for a link.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct SendMagicLink {
    email: Email,
    /// The person's name, for somebody new.
    name: Option<PersonName>,
    #[serde(flatten)]
    targets: Targets,
}

async fn send(
    cx: &Cx,
    iam: Arc<Iam>,
    scope: PublicScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), SendMagicLink>,
) -> Result<Output<Status>> {
    let SendMagicLink {
        email,
        name,
        targets,
    } = input.body;
    iam.refuse_foreign_origin(cx)?;
    targets.ensure_ours(&iam)?;
    send_link(cx, &iam, &scope, uow, (&email, name), &targets).await?;
    Ok(Output::new(Status::OK))
}

/// Sends a link to an address; its owner calls themselves so, when they are new.
pub(super) async fn send_link(
    cx: &Cx,
    iam: &Iam,
    scope: &PublicScope,
    uow: &mut dyn UnitOfWork,
    (email, name): (&Email, Option<PersonName>),
    targets: &Targets,
) -> Result<()> {
    let link = |token: &str| {
        let mut parameters = vec![("token", token)];
        parameters.push(("callbackURL", targets.callback.as_deref().unwrap_or("/")));
        parameters.extend(
            targets
                .new_user
                .as_deref()
                .map(|url| ("newUserCallbackURL", url)),
        );
        parameters.extend(
            targets
                .error
                .as_deref()
                .map(|url| ("errorCallbackURL", url)),
        );
        iam.link(VERIFY, &parameters)
    };
    let links = Links {
        link: &link,
        cipher: &cx.app.cipher,
    };
    user::send_magic_link(cx, scope, uow, email, name, links).await
}

/// The query of a link.
#[derive(Clone, Deserialize, JsonSchema)]
struct VerifyMagicLink {
    #[schemars(length(min = 1, max = 512), regex(pattern = r"^[^\u0000]*$"))]
    token: String,
    #[serde(flatten)]
    targets: Targets,
}

/// The answer to a link that says nowhere to go.
#[derive(Clone, Serialize, JsonSchema)]
#[serde(untagged)]
enum LinkAnswer {
    /// There is a session.
    SignedIn(Box<SignedInByLink>),
    /// The second factor is asked for.
    Asked(TwoFactorRedirect),
}

/// The session that a link began.
#[derive(Clone, Serialize, JsonSchema)]
struct SignedInByLink {
    token: String,
    user: User,
    session: AuthSession,
}

async fn verify(
    cx: &Cx,
    iam: Arc<Iam>,
    scope: PublicScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(), VerifyMagicLink>,
) -> Result<RedirectOr<LinkAnswer>> {
    let VerifyMagicLink { token, targets } = input.query;
    targets.ensure_ours(&iam)?;
    // Those who only look at a link must not use it up.
    let outcome = if cx.method == Method::HEAD {
        Err(Error::refused(Code::InvalidToken, "Invalid token"))
    } else {
        user::verify_magic_link(cx, &scope, uow, &token).await
    };
    let done = match outcome {
        Ok(done) => done,
        Err(error) if is_refusal(&error) => return Ok(to_error(&iam, &targets, error.code())),
        Err(error) => return Err(error),
    };
    let target = match (&targets.new_user, &targets.callback) {
        (Some(target), _) if done.is_new => Some(target),
        (_, target) => target.as_ref(),
    };
    let SignedIn {
        user,
        session,
        token,
    } = match done.outcome {
        SignInOutcome::SignedIn(signed_in) => signed_in,
        SignInOutcome::SecondFactorRequired(challenged) => {
            return Ok(asked(&iam, target, &challenged));
        }
    };
    Ok(match target {
        Some(target) => {
            let to = Output::new(iam.absolute(target));
            RedirectOr::To(set_session_cookie(&iam, to, &session, &token))
        }
        None => {
            let answer = Output::new(LinkAnswer::SignedIn(Box::new(SignedInByLink {
                user: user.edit(),
                session: AuthSession::new(&session, token.clone()),
                token: token.clone(),
            })));
            RedirectOr::Json(set_session_cookie(&iam, answer, &session, &token))
        }
    })
}

/// The page the link leads to asks for the second factor.
fn asked(iam: &Iam, target: Option<&Target>, challenged: &Challenged) -> RedirectOr<LinkAnswer> {
    match target {
        Some(target) => {
            let to = with_parameters(iam.absolute(target), &[("twoFactorRedirect", "true")]);
            RedirectOr::To(set_challenge_cookie(iam, Output::new(to), challenged))
        }
        None => {
            let answer = Output::new(LinkAnswer::Asked(TwoFactorRedirect::ASKED));
            RedirectOr::Json(set_challenge_cookie(iam, answer, challenged))
        }
    }
}

fn is_refusal(error: &Error) -> bool {
    matches!(error.code(), Code::InvalidToken | Code::BannedUser)
}

/// A person follows a link: they are told on a page, not by a status.
fn to_error<T>(iam: &Iam, targets: &Targets, code: Code) -> RedirectOr<T> {
    let target = targets.error.as_deref().or(targets.callback.as_deref());
    let target = iam.absolute(target.unwrap_or("/"));
    RedirectOr::To(Output::new(with_parameters(
        target,
        &[("error", code.as_str())],
    )))
}
