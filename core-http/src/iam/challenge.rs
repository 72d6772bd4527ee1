//! The answers to sign-ins: a session, or the question for a second factor.

use core_domain::iam::{CHALLENGE_LIFETIME, TRUSTED_FOR};
use core_domain::use_case::iam::session::{Challenged, SignInOutcome};
use http::header;
use schemars::JsonSchema;
use serde::Serialize;

use super::config::{Iam, with_parameters};
use super::cookies::{no_store, set_sign_in_cookies, with_header};
use crate::kernel::{Cx, Output};

/// The answer to a first factor that was right when there is a second: no session yet.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct TwoFactorRedirect {
    /// Always true: ask the person for a code.
    two_factor_redirect: bool,
}

impl TwoFactorRedirect {
    pub(super) const ASKED: Self = Self {
        two_factor_redirect: true,
    };
}

/// Gives the client what it shows with the second factor.
pub(super) fn set_challenge_cookie<T>(
    iam: &Iam,
    output: Output<T>,
    challenged: &Challenged,
) -> Output<T> {
    let signed = iam.signer.signed(&challenged.token);
    let age = Some(CHALLENGE_LIFETIME.as_secs());
    let cookie = iam.names.set(iam.names.two_factor(), &signed, age);
    no_store(with_header(output, header::SET_COOKIE, &cookie))
}

/// Gives the client what it shows in the place of a second factor the next time, if it is trusted.
pub(super) fn set_trust_cookie<T>(iam: &Iam, output: Output<T>, token: Option<&str>) -> Output<T> {
    let Some(token) = token else { return output };
    let signed = iam.signer.signed(token);
    let age = Some(TRUSTED_FOR.as_secs());
    let cookie = iam.names.set(iam.names.trust_device(), &signed, age);
    with_header(output, header::SET_COOKIE, &cookie)
}

/// Gives the client the session that a sign-in began, or what it shows with the second factor.
pub(super) fn set_outcome_cookie<T>(
    cx: &Cx,
    iam: &Iam,
    output: Output<T>,
    outcome: &SignInOutcome,
) -> Output<T> {
    match outcome {
        SignInOutcome::SignedIn(done) => set_sign_in_cookies(cx, iam, output, done),
        SignInOutcome::SecondFactorRequired(challenged) => {
            set_challenge_cookie(iam, output, challenged)
        }
    }
}

/// Sends the browser on to a target after a sign-in. The page there learns by `twoFactorRedirect` that a second factor is asked
/// for.
pub(super) fn redirect_after_sign_in(
    cx: &Cx,
    iam: &Iam,
    target: &str,
    outcome: &SignInOutcome,
) -> Output<String> {
    let target = iam.absolute(target);
    let target = match outcome {
        SignInOutcome::SignedIn(_) => target,
        SignInOutcome::SecondFactorRequired(_) => {
            with_parameters(target, &[("twoFactorRedirect", "true")])
        }
    };
    set_outcome_cookie(cx, iam, Output::new(target), outcome)
}
