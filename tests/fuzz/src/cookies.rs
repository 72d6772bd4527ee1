//! Cookies and session tokens.
//!
//! A value that was signed and set as a cookie is read back. A text that the server did not sign is never accepted.

use core_domain::iam::{CookieNames, CookieSigner, DeviceCookie, is_access_token, is_iam_cookie};
use core_domain::kernel::Email;
use core_domain::testing::SeededEntropy;

/// Values, and headers with cookies of other programs.
pub(crate) const SEEDS: &[&str] = &[
    "mZ2WZ8DgGxJ4k7yTnq0xS5b1Vd3Rf6Uh",
    "better-auth.session_token=abc.def; theme=dark",
    "__Secure-better-auth.session_token=a%2Eb%3D; core.device=x",
    "Bearer abc.def",
    "Bearer cat_0123456789",
    "digest:nonce,digest:nonce",
    "a.b.c=; ;;%00%ff",
];

/// Checks the claims for one text, as a value and as a header.
pub(crate) fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let signer = CookieSigner::new("the secret of the installation");
    for names in [
        CookieNames::for_url("http://x"),
        CookieNames::for_url("https://x"),
    ] {
        check_round_trip(&signer, names, text);
        assert_eq!(
            signer.token_in_cookies(names, text),
            None,
            "an unsigned cookie is accepted"
        );
        assert!(DeviceCookie::in_cookies(&signer, names, text).is_none());
        assert!(is_iam_cookie(names.session()) && is_iam_cookie(names.device()));
    }
    assert_eq!(signer.verify(text), None, "a forged signature is accepted");
    check_bearer(&signer, text);
    check_device(&signer, text);
    let _ = is_iam_cookie(text);
}

fn check_round_trip(signer: &CookieSigner, names: CookieNames, text: &str) {
    let signed = signer.sign(text);
    assert_eq!(signer.verify(&signed).as_deref(), Some(text));
    assert_eq!(signer.for_purpose("another").verify(&signed), None);
    let set = names.set(names.session(), &signed, Some(1));
    assert!(
        !set.contains(['\r', '\n', '\0']),
        "the cookie breaks its header"
    );
    let pair = set.split(';').next().unwrap_or_default();
    let header = format!("other=1; {pair}; last=2");
    assert_eq!(
        signer.token_in_cookies(names, &header).as_deref(),
        Some(text)
    );
    assert!(signer.has_digest(text, &signer.digest(text)));
}

fn check_bearer(signer: &CookieSigner, text: &str) {
    let Some(token) = signer.token_in_bearer(text) else {
        return;
    };
    let is_plain = token.bytes().all(|byte| byte.is_ascii_alphanumeric());
    assert!(
        is_plain || is_access_token(&token),
        "an unsigned token is accepted"
    );
    assert_eq!(
        signer.token_in_bearer(&format!("Bearer {token}")),
        Some(token)
    );
}

/// The device cookie of an account knows this account, and no forged cookie is read.
fn check_device(signer: &CookieSigner, text: &str) {
    let names = CookieNames::for_url("http://x");
    let Ok(email) = Email::parse(text) else {
        return;
    };
    let value = DeviceCookie::default().after_sign_in(signer, &email, &SeededEntropy::new(1));
    let set = names.set(names.device(), &value, None);
    let pair = set.split(';').next().unwrap_or_default();
    let read = DeviceCookie::in_cookies(signer, names, pair);
    assert!(read.is_some_and(|read| read.nonce(signer, &email).is_some()));
}
