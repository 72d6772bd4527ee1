//! What a sign-in answers that waits for a second factor, or need not wait as its device is trusted.

use core_domain::iam::{CHALLENGE_LIFETIME, TRUSTED_FOR};
use core_domain::use_case::iam::session::Challenged;
use http::header;
use schemars::JsonSchema;
use serde::Serialize;

use super::config::Iam;
use super::cookies::{no_store, with_header};
use crate::kernel::Output;

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
pub(super) fn set_device_cookie<T>(iam: &Iam, output: Output<T>, token: Option<&str>) -> Output<T> {
    let Some(token) = token else { return output };
    let signed = iam.signer.signed(token);
    let age = Some(TRUSTED_FOR.as_secs());
    let cookie = iam.names.set(iam.names.trust_device(), &signed, age);
    with_header(output, header::SET_COOKIE, &cookie)
}
