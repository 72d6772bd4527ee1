//! The headers that set and clear session cookies.

use core_domain::iam::{DEVICE_COOKIE_LIFETIME, SESSION_LIFETIME, Session};
use core_domain::use_case::iam::session::SignedIn;
use http::{HeaderName, HeaderValue, header};

use super::config::Iam;
use crate::kernel::{Cx, Output};

const SET_AUTH_TOKEN: HeaderName = HeaderName::from_static("set-auth-token");

/// Sets the cookie of a new session and the device cookie, which marks the browser as known for the account. If the
/// person does not want to be remembered, both are browser-session cookies.
pub(super) fn set_sign_in_cookies<T>(
    cx: &Cx,
    iam: &Iam,
    output: Output<T>,
    signed_in: &SignedIn,
) -> Output<T> {
    let email = &signed_in.user.email;
    let known = iam.device_cookie(&cx.headers);
    let value = known.after_sign_in(&iam.signer, email, cx.app.entropy.as_ref());
    let remembered = signed_in.session.remembered;
    let age = remembered.then_some(DEVICE_COOKIE_LIFETIME.as_secs());
    let cookie = iam.names.set(iam.names.device(), &value, age);
    let output = set_session_cookie(iam, output, &signed_in.session, &signed_in.token);
    with_header(output, header::SET_COOKIE, &cookie)
}

/// Sets the session cookie, and the `set-auth-token` header for clients that do not use cookies.
pub(super) fn set_session_cookie<T>(
    iam: &Iam,
    output: Output<T>,
    session: &Session,
    token: &str,
) -> Output<T> {
    let signed = iam.signer.sign(token);
    let names = iam.names;
    let age = session.remembered.then_some(SESSION_LIFETIME.as_secs());
    let mut output = with_header(
        output,
        header::SET_COOKIE,
        &names.set(names.session(), &signed, age),
    );
    if !session.remembered {
        let flag = names.set(names.dont_remember(), &iam.signer.sign("true"), None);
        output = with_header(output, header::SET_COOKIE, &flag);
    }
    let output = with_header(output, SET_AUTH_TOKEN, &signed);
    with_header(
        output,
        header::ACCESS_CONTROL_EXPOSE_HEADERS,
        "set-auth-token",
    )
}

/// Clears all session cookies of IAM.
pub(super) fn clear_session_cookies<T>(iam: &Iam, output: Output<T>) -> Output<T> {
    iam.names.clear_all().iter().fold(output, |output, cookie| {
        with_header(output, header::SET_COOKIE, cookie)
    })
}

/// Prevents caches from storing the response.
pub(super) fn no_store<T>(output: Output<T>) -> Output<T> {
    let output = with_header(output, header::CACHE_CONTROL, "no-store");
    with_header(output, header::PRAGMA, "no-cache")
}

/// Adds a header to the response. A value that is invalid in a header is ignored.
pub(super) fn with_header<T>(output: Output<T>, name: HeaderName, value: &str) -> Output<T> {
    match HeaderValue::from_str(value) {
        Ok(value) => output.header(name, value),
        Err(_) => output,
    }
}
