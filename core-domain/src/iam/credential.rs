//! Session tokens on the wire: the signed cookie, the bearer forms, and what is stored of a token or an API key.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

use super::oauth::is_access_token;
use crate::kernel::{TextValue, arbitrary, hex};

/// The SHA-256 of a session token or an API key in hexadecimal: all that is stored of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TokenHash(String);

impl TokenHash {
    /// What this token is recognised by.
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

/// The names of the cookies; those of an https installation are bound to https by their prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CookieNames {
    secure: bool,
}

impl CookieNames {
    /// The names for an installation that people reach at this address.
    #[must_use]
    pub fn for_url(base_url: &str) -> Self {
        Self {
            secure: base_url.starts_with("https://"),
        }
    }

    /// The cookie with the session's token.
    #[must_use]
    pub fn session(self) -> &'static str {
        self.pick(
            "better-auth.session_token",
            "__Secure-better-auth.session_token",
        )
    }

    /// The cookie other servers of this wire keep a copy of the session in; only ever cleared here.
    #[must_use]
    pub fn session_data(self) -> &'static str {
        self.pick(
            "better-auth.session_data",
            "__Secure-better-auth.session_data",
        )
    }

    /// The cookie that says the session shall end with the browser.
    #[must_use]
    pub fn dont_remember(self) -> &'static str {
        self.pick(
            "better-auth.dont_remember",
            "__Secure-better-auth.dont_remember",
        )
    }

    /// The cookie of a sign-in that waits for its second factor.
    #[must_use]
    pub fn two_factor(self) -> &'static str {
        self.pick("better-auth.two_factor", "__Secure-better-auth.two_factor")
    }

    /// The cookie of a device that its owner trusts.
    #[must_use]
    pub fn trust_device(self) -> &'static str {
        self.pick(
            "better-auth.trust_device",
            "__Secure-better-auth.trust_device",
        )
    }

    /// The cookie of a browser that has signed in before, see [`DeviceCookie`](super::DeviceCookie).
    #[must_use]
    pub fn device(self) -> &'static str {
        self.pick("core.device", "__Secure-core.device")
    }

    /// The cookie of a challenge that waits for a passkey.
    #[must_use]
    pub fn passkey(self) -> &'static str {
        self.pick(
            "better-auth.better-auth-passkey",
            "__Secure-better-auth.better-auth-passkey",
        )
    }

    /// A `Set-Cookie` value; without `max_age` (in seconds) it ends with the browser.
    #[must_use]
    pub fn set(self, name: &str, value: &str, max_age: Option<u64>) -> String {
        let value = percent_encoded(value);
        let age = max_age.map_or_else(String::new, |seconds| format!("; Max-Age={seconds}"));
        let secure = if self.secure { "; Secure" } else { "" };
        format!("{name}={value}{age}; Path=/; HttpOnly{secure}; SameSite=Lax")
    }

    /// The `Set-Cookie` values that take all cookies away.
    #[must_use]
    pub fn clearing(self) -> [String; 3] {
        [self.session(), self.session_data(), self.dont_remember()]
            .map(|name| self.set(name, "", Some(0)))
    }

    const fn pick(self, plain: &'static str, secure: &'static str) -> &'static str {
        if self.secure { secure } else { plain }
    }
}

/// Signs what is put into cookies: `value.base64(HMAC-SHA256(secret, value))`.
#[derive(Clone)]
pub struct CookieSigner(Vec<u8>);

// The secret stays out of logs.
impl std::fmt::Debug for CookieSigner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CookieSigner(..)")
    }
}

impl CookieSigner {
    /// Signs with this secret.
    #[must_use]
    pub fn new(secret: impl Into<Vec<u8>>) -> Self {
        Self(secret.into())
    }

    /// A signer whose signatures no other purpose accepts.
    #[must_use]
    pub fn for_purpose(&self, purpose: &str) -> Self {
        let secret = self.mac(purpose).map(|mac| mac.finalize().into_bytes());
        Self(secret.unwrap_or_default().to_vec())
    }

    /// A digest of a value that nobody can compute without the secret: 43 characters `[A-Za-z0-9_-]`.
    #[must_use]
    pub fn digest(&self, value: &str) -> String {
        let digest = self.mac(value).map(|mac| mac.finalize().into_bytes());
        URL_SAFE_NO_PAD.encode(digest.unwrap_or_default())
    }

    /// The value with its signature.
    #[must_use]
    pub fn signed(&self, value: &str) -> String {
        let signature = self.mac(value).map(|mac| mac.finalize().into_bytes());
        // HMAC takes keys of any length, so there always is a signature.
        format!("{value}.{}", STANDARD.encode(signature.unwrap_or_default()))
    }

    /// The value of a signed text; `None` when the signature is missing or wrong.
    #[must_use]
    pub fn verified(&self, signed: &str) -> Option<String> {
        let (value, signature) = signed.rsplit_once('.')?;
        let signature = STANDARD.decode(signature).ok()?;
        self.mac(value)?.verify_slice(&signature).ok()?;
        Some(value.to_owned())
    }

    /// The session token in a `Cookie` header; `None` without a validly signed one.
    #[must_use]
    pub fn token_in_cookies(&self, names: CookieNames, header: &str) -> Option<String> {
        self.value_in_cookies(names.session(), header)
    }

    /// The value of a cookie in a `Cookie` header; `None` without a validly signed one.
    #[must_use]
    pub fn value_in_cookies(&self, cookie: &str, header: &str) -> Option<String> {
        header
            .split(';')
            .filter_map(|pair| pair.trim().split_once('='))
            .filter(|(name, _)| *name == cookie)
            .find_map(|(_, value)| self.verified(&percent_decoded(value)?))
    }

    /// The token in the value of an `Authorization` header: a session token in the signed form, percent-encoded or not, or
    /// bare, or an access token.
    #[must_use]
    pub fn token_in_bearer(&self, header: &str) -> Option<String> {
        let (scheme, presented) = header.split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let presented = percent_decoded(presented.trim())?;
        if presented.contains('.') {
            return self.verified(&presented);
        }
        let bare = !presented.is_empty() && presented.bytes().all(|b| b.is_ascii_alphanumeric());
        (bare || is_access_token(&presented)).then_some(presented)
    }

    fn mac(&self, value: &str) -> Option<Hmac<Sha256>> {
        let mac = <Hmac<Sha256> as KeyInit>::new_from_slice(&self.0).ok()?;
        Some(mac.chain_update(value))
    }
}

/// As `encodeURIComponent` would.
pub(super) fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len() + 8);
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.!~*'()".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let high = char::from(bytes.next()?).to_digit(16)?;
        let low = char::from(bytes.next()?).to_digit(16)?;
        decoded.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(decoded).ok()
}

/// What the names of all cookies of IAM begin with, without the prefix of an https installation. The names are those of
/// [`CookieNames`](super::CookieNames).
const COOKIE_PREFIXES: [&str; 2] = ["better-auth.", "core.device"];

/// The prefixes by which a browser binds a cookie to https or to one host (RFC 6265bis, section 4.1.3).
const BINDING_PREFIXES: [&str; 2] = ["__secure-", "__host-"];

/// Tells whether a cookie of this name is one of IAM's.
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
    fn the_signature_is_padded_base64_of_hmac_sha256() {
        // RFC 4231, test case 2.
        let signed = CookieSigner::new("Jefe").signed("what do ya want for nothing?");
        let (_, signature) = signed.rsplit_once('.').unwrap();
        assert_eq!(signature, "W9zBRr9gdU5qBCQmCJV1x1oAPwidJzmDnexYuWTsOEM=");
        assert_eq!(signature.len(), 44);
    }

    #[test]
    fn a_cookie_is_read_back_among_others() {
        let cookie = names().set(names().session(), &signer().signed(TOKEN), Some(604_800));
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
    fn bare_and_wrongly_signed_cookies_are_nothing() {
        let foreign = CookieSigner::new("another secret").signed(TOKEN);
        for value in [TOKEN, &foreign, "", ".", "%", "%zz", "a.b"] {
            let header = format!("{}={value}", names().session());
            assert_eq!(signer().token_in_cookies(names(), &header), None, "{value}");
        }
    }

    #[test]
    fn a_bearer_is_bare_signed_or_encoded_but_never_wrongly_signed() {
        let signed = signer().signed(TOKEN);
        for presented in [TOKEN, &signed, &percent_encoded(&signed)] {
            let header = format!("bEaReR {presented}");
            assert_eq!(
                signer().token_in_bearer(&header).as_deref(),
                Some(TOKEN),
                "{presented}"
            );
        }
        let foreign = CookieSigner::new("another secret").signed(TOKEN);
        for header in [
            format!("Bearer {foreign}"),
            format!("Basic {TOKEN}"),
            "Bearer ".to_owned(),
        ] {
            assert_eq!(signer().token_in_bearer(&header), None, "{header}");
        }
    }

    #[test]
    fn cookies_of_an_https_installation_are_bound_to_https() {
        let names = CookieNames::for_url("https://iam.example.org");
        let cleared = names.clearing();
        assert_eq!(
            cleared[0],
            "__Secure-better-auth.session_token=; Max-Age=0; Path=/; HttpOnly; Secure; SameSite=Lax"
        );
    }

    #[test]
    fn every_cookie_of_iam_is_known_as_its_own() {
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
