//! Responses to sign-ins: either a session, or the request for a second factor.

use core_domain::iam::{CHALLENGE_LIFETIME, DEVICE_TRUST_LIFETIME};
use core_domain::use_case::iam::session::{PendingSignIn, SignInOutcome};
use http::header;
use schemars::JsonSchema;
use serde::Serialize;

use super::config::{Iam, with_parameters};
use super::cookies::{no_store, set_sign_in_cookies, with_header};
use crate::kernel::{Cx, Output};

/// The response to a correct first factor of a user who has a second factor. No session exists yet.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct TwoFactorRedirect {
    /// Always `true`: the client must ask for a code of the second factor.
    two_factor_redirect: bool,
}

impl TwoFactorRedirect {
    pub(super) const REQUIRED: Self = Self {
        two_factor_redirect: true,
    };
}

/// Sets the cookie that identifies a sign-in until its second factor is verified.
pub(super) fn set_challenge_cookie<T>(
    iam: &Iam,
    output: Output<T>,
    challenged: &PendingSignIn,
) -> Output<T> {
    let signed = iam.signer.sign(&challenged.token);
    let age = Some(CHALLENGE_LIFETIME.as_secs());
    let cookie = iam.names.set(iam.names.two_factor(), &signed, age);
    no_store(with_header(output, header::SET_COOKIE, &cookie))
}

/// Sets the cookie of a trusted device, which replaces the second factor at the next sign-in. Without a token the
/// response stays unchanged.
pub(super) fn set_trust_cookie<T>(iam: &Iam, output: Output<T>, token: Option<&str>) -> Output<T> {
    let Some(token) = token else { return output };
    let signed = iam.signer.sign(token);
    let age = Some(DEVICE_TRUST_LIFETIME.as_secs());
    let cookie = iam.names.set(iam.names.trust_device(), &signed, age);
    with_header(output, header::SET_COOKIE, &cookie)
}

/// Sets the cookies of the new session, or the cookie of the sign-in that waits for a second factor.
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

/// Redirects the browser to `target` after a sign-in. If a second factor is required, the parameter `twoFactorRedirect`
/// is added to the URL.
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
