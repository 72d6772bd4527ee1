//! Sign-in with a link that is sent by mail.

use std::sync::Arc;

use core_domain::access::PublicScope;
use core_domain::gateway::RateClass;
use core_domain::iam::User;
use core_domain::kernel::{Code, Email, Error, PersonName, Result};
use core_domain::port::UnitOfWork;
use core_domain::use_case::iam::session::SignInOutcome;
use core_domain::use_case::iam::user::{self, LinkSignIn};
use core_domain::use_case::iam::verification::Links;
use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::challenge::{TwoFactorRedirect, redirect_after_sign_in, set_outcome_cookie};
use super::config::{Iam, with_parameters};
use super::session::AuthSession;
use super::status::Status;
use super::target::Target;
use crate::kernel::{Cx, Endpoint, ErrorStyle, Input, Output, RedirectOr, get, post, with};

/// Path of the page that sign-in links open.
pub(super) const PAGE: &str = "/magic-link";

pub(super) fn rows(iam: &Arc<Iam>) -> Vec<Endpoint> {
    vec![
        post("/api/auth/sign-in/magic-link", "signInMagicLink")
            .summary("Sends a sign-in link by mail.")
            .description(
                "Mails a link that signs the recipient in. It is valid for 5 minutes and works \
                 once; earlier links stay valid. The response is the same for known and unknown \
                 addresses. The number of mails to an address per hour is limited; mails beyond \
                 it are silently dropped.",
            )
            .rate(RateClass::Strict)
            .errors(ErrorStyle::TopLevelCode)
            .refuses(&[Code::InvalidCallbackUrl, Code::InvalidOrigin])
            .writes(with(iam, send)),
        get("/api/auth/magic-link/verify", "verifyMagicLink")
            .summary("Signs in with the token of a mailed link.")
            .description(
                "Creates the user if the address is unknown and marks the address as verified. If \
                 an existing address was not verified before, its password, sessions, second \
                 factors and API keys are removed first. Users with a second factor must complete \
                 it before the session starts. With a target URL the browser is redirected; \
                 otherwise the response is JSON. An invalid token always redirects, with the code \
                 as `error` in the query.",
            )
            .success(&[StatusCode::OK, StatusCode::FOUND])
            .rate(RateClass::Strict)
            .errors(ErrorStyle::TopLevelCode)
            .refuses(&[Code::InvalidCallbackUrl])
            .writes(with(iam, verify)),
    ]
}

/// Redirect targets after the sign-in. Each is a path of IAM or a URL of a trusted origin.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(super) struct Targets {
    /// Redirect target after a successful sign-in.
    #[serde(rename = "callbackURL")]
    pub(super) callback: Option<Target>,
    /// Redirect target for a user who was just created. Default: `callbackURL`.
    #[serde(rename = "newUserCallbackURL")]
    pub(super) new_user: Option<Target>,
    /// Redirect target for an invalid link; `error` is added to its query. Default: `callbackURL`, otherwise `/`.
    #[serde(rename = "errorCallbackURL")]
    pub(super) error: Option<Target>,
}

impl Targets {
    /// Rejects targets that are neither a path of IAM nor a URL of a trusted origin.
    pub(super) fn ensure_trusted(&self, iam: &Iam) -> Result<()> {
        for (_, target) in self.parameters() {
            iam.ensure_trusted_target(Some(target))?;
        }
        Ok(())
    }

    /// Returns the targets that are present, as query parameters of a link.
    pub(super) fn parameters(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let named = [
            ("callbackURL", &self.callback),
            ("newUserCallbackURL", &self.new_user),
            ("errorCallbackURL", &self.error),
        ];
        let named = named.into_iter();
        named.filter_map(|(name, target)| Some((name, target.as_deref()?)))
    }

    /// Returns the redirect target after a successful sign-in.
    fn after_sign_in(&self, is_new: bool) -> Option<&Target> {
        let callback = self.callback.as_ref();
        let new_user = self.new_user.as_ref().filter(|_| is_new);
        new_user.or(callback)
    }

    /// Returns the redirect URL for a link that was refused. The parameter `error` contains the code.
    pub(super) fn after_refusal(&self, iam: &Iam, code: Code) -> String {
        let target = self.error.as_deref().or(self.callback.as_deref());
        let target = iam.absolute(target.unwrap_or("/"));
        with_parameters(target, &[("error", code.as_str())])
    }
}

/// The recipient of the link and the redirect targets.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct SendMagicLink {
    /// The email address that the link is sent to.
    email: Email,
    /// The name of the user, if the sign-in creates one. Default: empty.
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
    iam.ensure_trusted_origin(cx)?;
    targets.ensure_trusted(&iam)?;
    send_link(cx, &iam, &scope, uow, &email, name, &targets).await?;
    Ok(Output::new(Status::OK))
}

/// Sends a sign-in link to an address. The name is used if the sign-in creates the user.
pub(super) async fn send_link(
    cx: &Cx,
    iam: &Iam,
    scope: &PublicScope,
    uow: &mut dyn UnitOfWork,
    email: &Email,
    name: Option<PersonName>,
    targets: &Targets,
) -> Result<()> {
    let link = |token: &str| {
        let mut parameters = vec![("token", token)];
        if targets.callback.is_none() {
            parameters.push(("callbackURL", "/"));
        }
        parameters.extend(targets.parameters());
        iam.link(PAGE, &parameters)
    };
    let links = Links {
        link: &link,
        cipher: &cx.app.cipher,
    };
    user::send_magic_link(cx, scope, uow, email, name, links).await
}

/// The query of a sign-in link.
#[derive(Clone, Deserialize, JsonSchema)]
struct VerifyMagicLink {
    /// The token of the link.
    #[schemars(length(min = 1, max = 512), regex(pattern = r"^[^\u0000]*$"))]
    token: String,
    #[serde(flatten)]
    targets: Targets,
}

/// The response to a link without redirect targets.
#[derive(Clone, Serialize, JsonSchema)]
#[serde(untagged)]
enum LinkAnswer {
    /// The user is signed in.
    SignedIn(Box<SignedInByLink>),
    /// The user must complete the second factor.
    Asked(TwoFactorRedirect),
}

/// The session that the link started.
#[derive(Clone, Serialize, JsonSchema)]
struct SignedInByLink {
    /// The token of the session.
    token: String,
    /// The user who is signed in.
    user: User,
    /// The session that the link started.
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
    targets.ensure_trusted(&iam)?;
    // A HEAD request must not consume the token.
    let outcome = if cx.method == Method::HEAD {
        Err(Error::refused(Code::InvalidToken, "Invalid token"))
    } else {
        user::verify_magic_link(cx, &scope, uow, &token).await
    };
    let done = match outcome {
        Ok(done) if targets.after_sign_in(done.is_new).is_none() => done,
        outcome => {
            return Ok(RedirectOr::To(redirect_after_link(
                cx, &iam, &targets, outcome,
            )?));
        }
    };
    let answer = match &done.outcome {
        SignInOutcome::SignedIn(done) => LinkAnswer::SignedIn(Box::new(SignedInByLink {
            user: done.user.edit(),
            session: AuthSession::new(&done.session, done.token.clone()),
            token: done.token.clone(),
        })),
        SignInOutcome::SecondFactorRequired(_) => LinkAnswer::Asked(TwoFactorRedirect::REQUIRED),
    };
    let answer = set_outcome_cookie(cx, &iam, Output::new(answer), &done.outcome);
    Ok(RedirectOr::Json(answer))
}

/// Redirects the browser of a person who followed a link. A refusal of the link is reported to the target page as a
/// parameter, not as a status code.
///
/// # Errors
/// Returns errors other than `INVALID_TOKEN` and `BANNED_USER`.
pub(super) fn redirect_after_link(
    cx: &Cx,
    iam: &Iam,
    targets: &Targets,
    outcome: Result<LinkSignIn>,
) -> Result<Output<String>> {
    match outcome {
        Ok(done) => {
            let target = targets.after_sign_in(done.is_new);
            let target = target.map_or("/", |target| target);
            Ok(redirect_after_sign_in(cx, iam, target, &done.outcome))
        }
        Err(error) if matches!(error.code(), Code::InvalidToken | Code::BannedUser) => {
            Ok(Output::new(targets.after_refusal(iam, error.code())))
        }
        Err(error) => Err(error),
    }
}
