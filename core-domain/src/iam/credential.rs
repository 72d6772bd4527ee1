//! Session tokens in HTTP headers: the signed cookie, the bearer token, and the stored hash of a token or API key.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use sha2::{Digest, Sha256};

use crate::kernel::{TextValue, arbitrary, hex};

/// The SHA-256 of a session token or an API key, in hexadecimal. Only this hash is stored.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TokenHash(String);

impl TokenHash {
    /// Returns the hash of this token.
    #[must_use]
    pub fn of(token: &str) -> Self {
        Self(hex(&Sha256::digest(token)))
    }
}

impl TextValue for TokenHash {
    fn as_text(&self) -> &str {
        &self.0
    }

    fn from_text(text: &str) -> Option<Self> {
        let good = text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit());
        good.then(|| Self(text.to_owned()))
    }
}

impl AsRef<str> for TokenHash {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

arbitrary!(TokenHash as "[0-9a-f]{64}");

/// The names of the cookies. With an https base URL they have the prefix `__Secure-`, which binds them to https.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CookieNames {
    secure: bool,
}

impl CookieNames {
    /// Returns the cookie names for an installation with this base URL.
    #[must_use]
    pub fn for_url(base_url: &str) -> Self {
        Self {
            secure: base_url.starts_with("https://"),
        }
    }

    /// The name of the cookie with the session token.
    #[must_use]
    pub fn session(self) -> &'static str {
        self.with_prefix(
            "better-auth.session_token",
            "__Secure-better-auth.session_token",
        )
    }

    /// The name of better-auth's cookie with a copy of the session. This server never sets it, and only clears it.
    #[must_use]
    pub fn session_data(self) -> &'static str {
        self.with_prefix(
            "better-auth.session_data",
            "__Secure-better-auth.session_data",
        )
    }

    /// The name of the cookie that marks a session that ends with the browser.
    #[must_use]
    pub fn dont_remember(self) -> &'static str {
        self.with_prefix(
            "better-auth.dont_remember",
            "__Secure-better-auth.dont_remember",
        )
    }

    /// The name of the cookie of a sign-in that waits for its second factor.
    #[must_use]
    pub fn two_factor(self) -> &'static str {
        self.with_prefix("better-auth.two_factor", "__Secure-better-auth.two_factor")
    }

    /// The name of the cookie of a trusted device.
    #[must_use]
    pub fn trust_device(self) -> &'static str {
        self.with_prefix(
            "better-auth.trust_device",
            "__Secure-better-auth.trust_device",
        )
    }

    /// The name of the cookie of a browser that has signed in before; see [`DeviceCookie`](super::DeviceCookie).
    #[must_use]
    pub fn device(self) -> &'static str {
        self.with_prefix("core.device", "__Secure-core.device")
    }

    /// The name of the cookie of a passkey challenge.
    #[must_use]
    pub fn passkey(self) -> &'static str {
        self.with_prefix(
            "better-auth.better-auth-passkey",
            "__Secure-better-auth.better-auth-passkey",
        )
    }

    /// Returns a `Set-Cookie` value. `max_age` is in seconds; without it the cookie ends with the browser.
    #[must_use]
    pub fn set(self, name: &str, value: &str, max_age: Option<u64>) -> String {
        let value = percent_encoded(value);
        let age = max_age.map_or_else(String::new, |seconds| format!("; Max-Age={seconds}"));
        let secure = if self.secure { "; Secure" } else { "" };
        format!("{name}={value}{age}; Path=/; HttpOnly{secure}; SameSite=Lax")
    }

    /// Returns the `Set-Cookie` values that clear the three session cookies.
    #[must_use]
    pub fn clear_all(self) -> [String; 3] {
        [self.session(), self.session_data(), self.dont_remember()]
            .map(|name| self.set(name, "", Some(0)))
    }

    const fn with_prefix(self, plain: &'static str, secure: &'static str) -> &'static str {
        if self.secure { secure } else { plain }
    }
}

/// Signs cookie values: `value.base64(HMAC-SHA256(secret, value))`.
#[derive(Clone)]
pub struct CookieSigner(Vec<u8>);

// The `Debug` output hides the secret, so that it does not appear in logs.
impl std::fmt::Debug for CookieSigner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CookieSigner(..)")
    }
}

impl CookieSigner {
    /// Creates a signer with this secret.
    #[must_use]
    pub fn new(secret: impl Into<Vec<u8>>) -> Self {
        Self(secret.into())
    }

    /// Returns a signer with a key derived for one purpose. Its signatures are invalid for every other purpose.
    #[must_use]
    pub fn for_purpose(&self, purpose: &str) -> Self {
        let secret = self.mac(purpose).map(|mac| mac.finalize().into_bytes());
        Self(secret.unwrap_or_default().to_vec())
    }

    /// Returns a keyed digest of a value: 43 characters `[A-Za-z0-9_-]`. It cannot be computed without the secret.
    #[must_use]
    pub fn digest(&self, value: &str) -> String {
        let digest = self.mac(value).map(|mac| mac.finalize().into_bytes());
        URL_SAFE_NO_PAD.encode(digest.unwrap_or_default())
    }

    /// Returns whether this is the keyed digest of a value. Takes the same time for every wrong digest.
    #[must_use]
    pub fn has_digest(&self, value: &str, digest: &str) -> bool {
        let digest = URL_SAFE_NO_PAD.decode(digest).unwrap_or_default();
        let mac = self.mac(value);
        mac.is_some_and(|mac| mac.verify_slice(&digest).is_ok())
    }

    /// Returns the value with its signature.
    #[must_use]
    pub fn sign(&self, value: &str) -> String {
        let signature = self.mac(value).map(|mac| mac.finalize().into_bytes());
        // HMAC accepts keys of any length, so the signature always exists.
        format!("{value}.{}", STANDARD.encode(signature.unwrap_or_default()))
    }

    /// Verifies a signed text and returns its value; `None` if the signature is missing or wrong.
    #[must_use]
    pub fn verify(&self, signed: &str) -> Option<String> {
        let (value, signature) = signed.rsplit_once('.')?;
        let signature = STANDARD.decode(signature).ok()?;
        self.mac(value)?.verify_slice(&signature).ok()?;
        Some(value.to_owned())
    }

    /// Returns the session token from a `Cookie` header; `None` without a cookie with a valid signature.
    #[must_use]
    pub fn token_in_cookies(&self, names: CookieNames, header: &str) -> Option<String> {
        self.value_in_cookies(names.session(), header)
    }

    /// Returns the value of a cookie from a `Cookie` header; `None` without a cookie with a valid signature.
    #[must_use]
    pub fn value_in_cookies(&self, cookie: &str, header: &str) -> Option<String> {
        header
            .split(';')
            .filter_map(|pair| pair.trim().split_once('='))
            .filter(|(name, _)| *name == cookie)
            .find_map(|(_, value)| self.verify(&percent_decoded(value)?))
    }

    /// Returns the token from an `Authorization` header with the `Bearer` scheme. A session token may be signed
    /// (percent-encoded or not) or unsigned. An access token is accepted too.
    #[must_use]
    pub fn token_in_bearer(&self, header: &str) -> Option<String> {
        let (scheme, presented) = header.split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let presented = percent_decoded(presented.trim())?;
        if presented.contains('.') {
            return self.verify(&presented);
        }
        let bare = !presented.is_empty() && presented.bytes().all(|b| b.is_ascii_alphanumeric());
        (bare || is_access_token(&presented)).then(|| presented.into_owned())
    }

    fn mac(&self, value: &str) -> Option<Hmac<Sha256>> {
        let mac = <Hmac<Sha256> as KeyInit>::new_from_slice(&self.0).ok()?;
        Some(mac.chain_update(value))
    }
}

/// The characters that `encodeURIComponent` encodes.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'!')
    .remove(b'~')
    .remove(b'*')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')');

/// Percent-encodes like `encodeURIComponent`.
pub(super) fn percent_encoded(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

fn percent_decoded(text: &str) -> Option<Cow<'_, str>> {
    percent_decode_str(text).decode_utf8().ok()
}

/// The prefixes of the names of all IAM cookies, without the prefix of an https installation. The names are those of
/// [`CookieNames`](super::CookieNames).
const COOKIE_PREFIXES: [&str; 2] = ["better-auth.", "core.device"];

/// The name prefixes by which browsers bind a cookie to https or to one host (RFC 6265bis, section 4.1.3).
const BINDING_PREFIXES: [&str; 2] = ["__secure-", "__host-"];

/// Returns whether a cookie with this name belongs to IAM.
#[must_use]
pub fn is_iam_cookie(name: &str) -> bool {
    // Some browsers compare the prefixes without regard to case.
    let name = name.trim().to_ascii_lowercase();
    let mut binding = BINDING_PREFIXES.iter();
    let bare = binding.find_map(|prefix| name.strip_prefix(prefix));
    let bare = bare.unwrap_or(&name);
    COOKIE_PREFIXES
        .iter()
        .any(|prefix| bare.starts_with(prefix))
}

/// The prefix of access tokens. Session tokens consist of letters and digits only, so they never have it.
pub const ACCESS_TOKEN_PREFIX: &str = "cat_";

/// The prefix of refresh tokens.
pub const REFRESH_TOKEN_PREFIX: &str = "crt_";

/// Returns whether a text has the form of an access token.
#[must_use]
pub fn is_access_token(text: &str) -> bool {
    let secret = text.strip_prefix(ACCESS_TOKEN_PREFIX);
    secret.is_some_and(|s| !s.is_empty() && s.bytes().all(|b| b.is_ascii_alphanumeric()))
}

#[cfg(test)]
mod tests {

    use super::*;

    const TOKEN: &str = "mZ2WZ8DgGxJ4k7yTnq0xS5b1Vd3Rf6Uh";

    fn signer() -> CookieSigner {
        CookieSigner::new("a secret of the installation")
    }

    fn names() -> CookieNames {
        CookieNames::for_url("http://localhost:8081")
    }

    #[test]
    fn signature_is_padded_base64_of_hmac_sha256() {
        // RFC 4231, test case 2.
        let signed = CookieSigner::new("Jefe").sign("what do ya want for nothing?");
        let (_, signature) = signed.rsplit_once('.').unwrap();
        assert_eq!(signature, "W9zBRr9gdU5qBCQmCJV1x1oAPwidJzmDnexYuWTsOEM=");
        assert_eq!(signature.len(), 44);
    }

    #[test]
    fn session_cookie_is_found_among_other_cookies() {
        let cookie = names().set(names().session(), &signer().sign(TOKEN), Some(604_800));
        let (pair, attributes) = cookie.split_once(';').unwrap();
        assert_eq!(
            attributes,
            " Max-Age=604800; Path=/; HttpOnly; SameSite=Lax"
        );
        assert!(pair.ends_with("%3D"), "{pair}");
        let header = format!("theme=dark; {pair}; x=1");
        assert_eq!(
            signer().token_in_cookies(names(), &header).as_deref(),
            Some(TOKEN)
        );
    }

    #[test]
    fn unsigned_and_wrongly_signed_cookies_are_ignored() {
        let foreign = CookieSigner::new("another secret").sign(TOKEN);
        for value in [TOKEN, &foreign, "", ".", "%", "%zz", "a.b"] {
            let header = format!("{}={value}", names().session());
            assert_eq!(signer().token_in_cookies(names(), &header), None, "{value}");
        }
    }

    #[test]
    fn bearer_token_may_be_unsigned_signed_or_percent_encoded() {
        let signed = signer().sign(TOKEN);
        for presented in [TOKEN, &signed, &percent_encoded(&signed)] {
            let header = format!("bEaReR {presented}");
            assert_eq!(
                signer().token_in_bearer(&header).as_deref(),
                Some(TOKEN),
                "{presented}"
            );
        }
        let foreign = CookieSigner::new("another secret").sign(TOKEN);
        for header in [
            format!("Bearer {foreign}"),
            format!("Basic {TOKEN}"),
            "Bearer ".to_owned(),
        ] {
            assert_eq!(signer().token_in_bearer(&header), None, "{header}");
        }
    }

    #[test]
    fn cookies_of_an_https_installation_are_secure() {
        let names = CookieNames::for_url("https://iam.example.org");
        let cleared = names.clear_all();
        assert_eq!(
            cleared[0],
            "__Secure-better-auth.session_token=; Max-Age=0; Path=/; HttpOnly; Secure; SameSite=Lax"
        );
    }

    #[test]
    fn is_iam_cookie_recognises_every_cookie_of_iam() {
        for url in ["http://localhost:8081", "https://iam.example.org"] {
            let names = CookieNames::for_url(url);
            for name in [
                names.session(),
                names.session_data(),
                names.dont_remember(),
                names.two_factor(),
                names.trust_device(),
                names.device(),
                names.passkey(),
            ] {
                assert!(is_iam_cookie(name), "{name}");
                assert!(is_iam_cookie(&format!(" {}.0", name.to_uppercase())));
            }
        }
        for other in ["", "theme", "core", "x-better-auth.session_token"] {
            assert!(!is_iam_cookie(other), "{other}");
        }
    }
}
