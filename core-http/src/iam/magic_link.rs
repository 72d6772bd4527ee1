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

/// The page that links lead to.
pub(super) const PAGE: &str = "/magic-link";

pub(super) fn rows(iam: &Arc<Iam>) -> Vec<Endpoint> {
    vec![
        post("/api/auth/sign-in/magic-link", "signInMagicLink")
            .summary("Sends a link that signs in whoever reads mail at the address.")
            .rate(RateClass::Strict)
            .errors(ErrorStyle::TopLevelCode)
            .refuses(&[Code::InvalidCallbackUrl, Code::InvalidOrigin])
            .writes(with(iam, send)),
        get("/api/auth/magic-link/verify", "verifyMagicLink")
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
    /// Refuses targets that are neither a path of ours nor of a trusted origin.
    pub(super) fn ensure_ours(&self, iam: &Iam) -> Result<()> {
        for (_, target) in self.parameters() {
            iam.refuse_foreign_target(Some(target))?;
        }
        Ok(())
    }

    /// The targets that are named, as parameters of a link.
    pub(super) fn parameters(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let named = [
            ("callbackURL", &self.callback),
            ("newUserCallbackURL", &self.new_user),
            ("errorCallbackURL", &self.error),
        ];
        let named = named.into_iter();
        named.filter_map(|(name, target)| Some((name, target.as_deref()?)))
    }

    /// Where a sign-in leads.
    fn after_sign_in(&self, is_new: bool) -> Option<&Target> {
        let callback = self.callback.as_ref();
        let new_user = self.new_user.as_ref().filter(|_| is_new);
        new_user.or(callback)
    }

    /// Where a link leads that signs nobody in. The page there learns the reason by `error`.
    pub(super) fn after_refusal(&self, iam: &Iam, code: Code) -> String {
        let target = self.error.as_deref().or(self.callback.as_deref());
        let target = iam.absolute(target.unwrap_or("/"));
        with_parameters(target, &[("error", code.as_str())])
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
        Ok(done) if targets.after_sign_in(done.is_new).is_none() => done,
        outcome => return Ok(RedirectOr::To(lead_on(cx, &iam, &targets, outcome)?)),
    };
    let answer = match &done.outcome {
        SignInOutcome::SignedIn(done) => LinkAnswer::SignedIn(Box::new(SignedInByLink {
            user: done.user.edit(),
            session: AuthSession::new(&done.session, done.token.clone()),
            token: done.token.clone(),
        })),
        SignInOutcome::SecondFactorRequired(_) => LinkAnswer::Asked(TwoFactorRedirect::ASKED),
    };
    let answer = set_outcome_cookie(cx, &iam, Output::new(answer), &done.outcome);
    Ok(RedirectOr::Json(answer))
}

/// Sends the browser of somebody who followed a link on to the target of its outcome. A refusal is told on a page, not by a
/// status.
///
/// # Errors
/// Those that are no refusal of the link.
pub(super) fn lead_on(
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
