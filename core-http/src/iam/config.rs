//! The settings that the embedding program gives to IAM.

use std::sync::Arc;

use core_domain::gateway::{RatePlan, TrustedProxies};
use core_domain::iam::{CookieNames, CookieSigner, InvitationRef};
use core_domain::kernel::{Code, Error, Result};
use core_domain::port::Passkeys;
use core_domain::use_case::iam::verification::Notices;
use http::{Uri, header};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::failed_sign_ins::FailedSignIns;
use super::options::IamOptions;
use super::wrong_user_codes::WrongUserCodes;
use crate::kernel::admission::limiter::SharedLimiter;
use crate::kernel::{Cx, ensure_trusted_form, invalid_origin};

/// Path of the page that email verification links open.
pub(super) const VERIFY_EMAIL: &str = "/verify-email";

/// The settings of IAM.
#[derive(Clone)]
pub struct IamConfig {
    /// Key that signs cookies; the same on every node. At least 32 random bytes.
    pub secret: Vec<u8>,
    /// The public URL of IAM, for example `https://iam.example.org`. With `https`, cookies are sent only over HTTPS.
    pub base_url: String,
    /// Origins, besides that of `base_url`, whose pages may call IAM with its cookies, for example
    /// `https://app.example.org`.
    pub trusted_origins: Vec<String>,
    /// Proxies in front of IAM whose `X-Forwarded-For` header is trusted.
    pub trusted_proxies: TrustedProxies,
    /// Requirements for sign-up and sign-in.
    pub options: IamOptions,
    /// Registers and verifies passkeys. `None` disables passkeys; their routes then return `PASSKEYS_DISABLED`.
    pub passkeys: Option<Arc<dyn Passkeys>>,
}

// The secret stays out of logs.
impl std::fmt::Debug for IamConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IamConfig")
            .field("base_url", &self.base_url)
            .field("trusted_origins", &self.trusted_origins)
            .field("trusted_proxies", &self.trusted_proxies)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// The settings and counters that the handlers use.
#[derive(Debug)]
pub(super) struct Iam {
    pub(super) signer: CookieSigner,
    pub(super) names: CookieNames,
    pub(super) failed_sign_ins: FailedSignIns,
    pub(super) wrong_user_codes: WrongUserCodes,
    /// The public URL of IAM, without a trailing slash.
    pub(super) base_url: String,
    pub(super) options: IamOptions,
    /// URL of the page that lists everything with access to the user's account.
    security_page: String,
    origins: Vec<String>,
    passkeys: Option<Arc<dyn Passkeys>>,
}

impl Iam {
    pub(super) fn new(config: &IamConfig, rates: &RatePlan, limiter: &Arc<SharedLimiter>) -> Self {
        let base = std::iter::once(&config.base_url);
        let origins = base.chain(&config.trusted_origins);
        let base_url = config.base_url.trim_end_matches('/').to_owned();
        Self {
            failed_sign_ins: FailedSignIns::new(rates, Arc::clone(limiter)),
            wrong_user_codes: WrongUserCodes::new(rates, Arc::clone(limiter)),
            options: config.options,
            signer: CookieSigner::new(config.secret.clone()),
            names: CookieNames::for_url(&config.base_url),
            security_page: format!("{base_url}{SECURITY_PAGE}"),
            base_url,
            origins: origins.filter_map(|url| origin_of(url)).collect(),
            passkeys: config.passkeys.clone(),
        }
    }

    /// Returns the passkey provider.
    ///
    /// # Errors
    /// Returns `PASSKEYS_DISABLED` if no provider is configured.
    pub(super) fn passkeys(&self) -> Result<&dyn Passkeys> {
        self.passkeys
            .as_deref()
            .ok_or_else(|| Error::refused(Code::PasskeysDisabled, "Passkeys are not available"))
    }

    /// Returns the origins whose pages may use the cookies of IAM, in the form in which browsers send them.
    pub(super) fn trusted_origins(&self) -> &[String] {
        &self.origins
    }

    /// Returns whether pages of this origin may use the cookies of IAM.
    pub(super) fn trusts(&self, origin: &str) -> bool {
        origin_of(origin).is_some_and(|origin| self.origins.contains(&origin))
    }

    /// Returns the host name of the public URL.
    pub(super) fn host(&self) -> &str {
        let (_, rest) = self
            .base_url
            .split_once("://")
            .unwrap_or(("", &self.base_url));
        rest.split(['/', ':']).next().unwrap_or(rest)
    }

    /// Returns the public URL of a path, with these query parameters.
    pub(super) fn link(&self, path: &str, parameters: &[(&str, &str)]) -> String {
        with_parameters(format!("{}{path}", self.base_url), parameters)
    }

    /// Returns the link that verifies an email address and then redirects to `target`. Default target: `/`.
    pub(super) fn verification_link(&self, token: &str, target: Option<&str>) -> String {
        let target = target.unwrap_or("/");
        self.link(VERIFY_EMAIL, &[("token", token), ("callbackURL", target)])
    }

    /// Returns a path as the browser requests it: below the path of the public URL.
    pub(super) fn path(&self, path: &str) -> String {
        let rest = self.base_url.split_once("://").map_or("", |(_, rest)| rest);
        let below = rest.find('/').and_then(|slash| rest.get(slash..));
        format!("{}{path}", below.unwrap_or_default())
    }

    /// Returns the settings for the mails that inform account owners about changes.
    pub(super) fn notices<'a>(&'a self, cx: &'a Cx) -> Notices<'a> {
        Notices {
            page: &self.security_page,
            cipher: &cx.app.cipher,
        }
    }

    /// Returns the link in the mail of an invitation.
    pub(super) fn invitation_link(&self, name: &InvitationRef) -> String {
        self.link("/accept-invitation", &[("id", &name.expose())])
    }

    /// Returns the absolute URL of a redirect target. A path is relative to the public URL.
    pub(super) fn absolute(&self, target: &str) -> String {
        if target.starts_with('/') {
            format!("{}{target}", self.base_url)
        } else {
            target.to_owned()
        }
    }

    /// Returns the origin of a validated target if it differs from the origin of IAM.
    pub(super) fn foreign_origin(&self, target: &str) -> Option<String> {
        let own = origin_of(&self.base_url);
        origin_of(target).filter(|origin| Some(origin) != own.as_ref())
    }

    /// Rejects a request from a page of an untrusted origin, with or without cookies.
    pub(super) fn ensure_trusted_origin(&self, cx: &Cx) -> Result<()> {
        match cx.header(header::ORIGIN.as_str()) {
            Some(origin) if !self.trusts(origin) => Err(invalid_origin()),
            _ => Ok(()),
        }
    }

    /// Rejects a form that does not prove that a trusted page sent it. Browsers always send the origin of a form, so
    /// programs need no exception. This also holds without cookies, so that another site cannot sign a person in to a
    /// different account.
    pub(super) fn ensure_trusted_form(&self, cx: &Cx) -> Result<()> {
        ensure_trusted_form(cx, |origin| self.trusts(origin))
    }

    /// Rejects a redirect target that is neither a path of IAM nor a URL of a trusted origin.
    pub(super) fn ensure_trusted_target(&self, target: Option<&str>) -> Result<()> {
        let Some(target) = target else { return Ok(()) };
        let path = target.starts_with('/') && !target.starts_with("//");
        // Browsers treat a backslash as a slash and ignore control characters.
        let plain = target.bytes().all(|b| b.is_ascii_graphic() && b != b'\\');
        if plain && (path || self.trusts(target)) {
            Ok(())
        } else {
            Err(invalid_target())
        }
    }
}

/// Path of the page that lists everything with access to the user's account.
pub(super) const SECURITY_PAGE: &str = "/account/security";

/// The characters that are percent-encoded in a query value: all except letters, digits and `-_.~`.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// Returns the URL with these parameters added to its query.
pub(super) fn with_parameters(mut address: String, parameters: &[(&str, &str)]) -> String {
    for (name, value) in parameters {
        let value = utf8_percent_encode(value, ESCAPED);
        address.push(if address.contains('?') { '&' } else { '?' });
        address.push_str(&format!("{name}={value}"));
    }
    address
}

pub(super) fn invalid_target() -> Error {
    Error::refused(Code::InvalidCallbackUrl, "Invalid callbackURL")
}

/// Returns the origin of a URL in lower case: scheme, host and port. The default port of the scheme is omitted.
fn origin_of(url: &str) -> Option<String> {
    let uri: Uri = url.parse().ok()?;
    let scheme = uri.scheme_str()?.to_ascii_lowercase();
    let authority = uri.authority()?;
    if authority.as_str().contains('@') {
        return None;
    }
    let host = authority.host().to_ascii_lowercase();
    let port = match (scheme.as_str(), authority.port_u16()) {
        ("http", Some(80)) | ("https", Some(443)) | (_, None) => String::new(),
        (_, Some(port)) => format!(":{port}"),
    };
    Some(format!("{scheme}://{host}{port}"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use core_domain::kernel::Timestamp;
    use core_domain::testing::ManualClock;

    use super::*;
    use crate::kernel::MemoryRateLimiter;
    use crate::kernel::metrics::Metrics;

    fn iam() -> Iam {
        let config = IamConfig {
            secret: b"secret".to_vec(),
            base_url: "https://iam.example.org".to_owned(),
            trusted_origins: vec!["https://app.example.org:8443/".to_owned()],
            trusted_proxies: TrustedProxies::default(),
            options: IamOptions::default(),
            passkeys: None,
        };
        iam_of(&config)
    }

    fn iam_of(config: &IamConfig) -> Iam {
        let clock = Arc::new(ManualClock::at(Timestamp::from_millis(0)));
        let limiter = Arc::new(MemoryRateLimiter::new());
        let limiter = SharedLimiter::new(limiter, Duration::ZERO, clock, &Metrics::new());
        Iam::new(config, &RatePlan::default(), &Arc::new(limiter))
    }

    #[test]
    fn only_the_configured_origins_are_trusted() {
        for good in [
            "https://iam.example.org",
            "https://IAM.example.org:443",
            "https://app.example.org:8443",
        ] {
            assert!(iam().trusts(good), "{good}");
        }
        for bad in [
            "null",
            "",
            "http://iam.example.org",
            "https://iam.example.org.evil.net",
            "https://iam.example.org@evil.net",
            "https://app.example.org",
        ] {
            assert!(!iam().trusts(bad), "{bad}");
        }
    }

    #[test]
    fn paths_are_prefixed_with_the_path_of_the_base_url() {
        assert_eq!(iam().path("/sign-in"), "/sign-in");
        let config = IamConfig {
            secret: b"secret".to_vec(),
            base_url: "https://example.org/iam/".to_owned(),
            trusted_origins: Vec::new(),
            trusted_proxies: TrustedProxies::default(),
            options: IamOptions::default(),
            passkeys: None,
        };
        let below = iam_of(&config);
        assert_eq!(below.path("/sign-in"), "/iam/sign-in");
    }

    #[test]
    fn redirects_to_untrusted_targets_are_rejected() {
        for good in ["/", "/dash?x=1", "https://iam.example.org/dash"] {
            assert!(iam().ensure_trusted_target(Some(good)).is_ok(), "{good}");
        }
        for bad in [
            "//evil.net",
            "/\\evil.net",
            "https://evil.net/",
            "javascript:alert(1)",
            "dash",
            "/\tx",
        ] {
            assert!(iam().ensure_trusted_target(Some(bad)).is_err(), "{bad}");
        }
    }
}
