//! What IAM must be told by whoever embeds it.

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
use crate::kernel::Cx;
use crate::kernel::shared_limiter::SharedLimiter;

/// The page that links which confirm an address lead to.
pub(super) const VERIFY_EMAIL: &str = "/verify-email";

/// The settings of IAM.
#[derive(Clone)]
pub struct IamConfig {
    /// What cookies are signed with; the same on every node. At least 32 random bytes.
    pub secret: Vec<u8>,
    /// The address people reach IAM at: `https://iam.example.org`. With https, cookies are bound to https.
    pub base_url: String,
    /// Origins besides that of `base_url` whose pages may call IAM with its cookies: `https://app.example.org`.
    pub trusted_origins: Vec<String>,
    /// Proxies before IAM whose `X-Forwarded-For` is believed.
    pub trusted_proxies: TrustedProxies,
    /// What people must show before they are signed in.
    pub options: IamOptions,
    /// Registers and verifies passkeys. `None`: there are none, and their routes say so.
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

/// The settings as the handlers use them.
#[derive(Debug)]
pub(super) struct Iam {
    pub(super) signer: CookieSigner,
    pub(super) names: CookieNames,
    pub(super) failed_sign_ins: FailedSignIns,
    pub(super) wrong_user_codes: WrongUserCodes,
    /// The address people reach IAM at, without a slash at its end.
    pub(super) base_url: String,
    pub(super) options: IamOptions,
    /// The address of the page that shows people what can act for them.
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

    /// What registers and verifies passkeys.
    ///
    /// # Errors
    /// `PASSKEYS_DISABLED`.
    pub(super) fn passkeys(&self) -> Result<&dyn Passkeys> {
        self.passkeys
            .as_deref()
            .ok_or_else(|| Error::refused(Code::PasskeysDisabled, "There are no passkeys here"))
    }

    /// The origins whose pages may use our cookies, as browsers write them.
    pub(super) fn trusted_origins(&self) -> &[String] {
        &self.origins
    }

    /// Whether pages of this origin may use our cookies.
    pub(super) fn trusts(&self, origin: &str) -> bool {
        origin_of(origin).is_some_and(|origin| self.origins.contains(&origin))
    }

    /// The host people reach IAM at.
    pub(super) fn host(&self) -> &str {
        let (_, rest) = self
            .base_url
            .split_once("://")
            .unwrap_or(("", &self.base_url));
        rest.split(['/', ':']).next().unwrap_or(rest)
    }

    /// An address of ours, with these parameters.
    pub(super) fn link(&self, path: &str, parameters: &[(&str, &str)]) -> String {
        with_parameters(format!("{}{path}", self.base_url), parameters)
    }

    /// The link that confirms an address and leads on from there.
    pub(super) fn verification_link(&self, token: &str, target: Option<&str>) -> String {
        let target = target.unwrap_or("/");
        self.link(VERIFY_EMAIL, &[("token", token), ("callbackURL", target)])
    }

    /// A path of ours as browsers ask for it: below that of the address people reach IAM at.
    pub(super) fn path(&self, path: &str) -> String {
        let rest = self.base_url.split_once("://").map_or("", |(_, rest)| rest);
        let below = rest.find('/').and_then(|slash| rest.get(slash..));
        format!("{}{path}", below.unwrap_or_default())
    }

    /// How the owners of accounts are told what has happened to them.
    pub(super) fn notices<'a>(&'a self, cx: &'a Cx) -> Notices<'a> {
        Notices {
            page: &self.security_page,
            cipher: &cx.app.cipher,
        }
    }

    /// The link of the mail in which a person is invited.
    pub(super) fn invitation_link(&self, name: &InvitationRef) -> String {
        self.link("/accept-invitation", &[("id", &name.expose())])
    }

    /// Where a redirection leads: a path is one of ours.
    pub(super) fn absolute(&self, target: &str) -> String {
        if target.starts_with('/') {
            format!("{}{target}", self.base_url)
        } else {
            target.to_owned()
        }
    }

    /// The origin of a target that was checked, if it is another one than that of our pages.
    pub(super) fn foreign_origin(&self, target: &str) -> Option<String> {
        let own = origin_of(&self.base_url);
        origin_of(target).filter(|origin| Some(origin) != own.as_ref())
    }

    /// Refuses a request that a page of a foreign origin sent, whether with cookies or without.
    pub(super) fn refuse_foreign_origin(&self, cx: &Cx) -> Result<()> {
        match cx.header(header::ORIGIN.as_str()) {
            Some(origin) if !self.trusts(origin) => Err(invalid_origin()),
            _ => Ok(()),
        }
    }

    /// Refuses a form that does not say that it comes from a trusted page. Browsers always say where a form was sent from, so
    /// there are no programs to make an exception for; without cookies too: nobody is to be signed in as somebody else.
    pub(super) fn refuse_foreign_form(&self, cx: &Cx) -> Result<()> {
        if let Some(origin) = cx.headers.get(header::ORIGIN) {
            let trusted = origin.to_str().is_ok_and(|origin| self.trusts(origin));
            return if trusted {
                Ok(())
            } else {
                Err(invalid_origin())
            };
        }
        if cx.header("sec-fetch-site") == Some("same-origin") {
            return Ok(());
        }
        Err(Error::refused(
            Code::MissingOrNullOrigin,
            "Missing or null Origin",
        ))
    }

    /// Refuses a redirect to anywhere but a path of ours or a trusted origin.
    pub(super) fn refuse_foreign_target(&self, target: Option<&str>) -> Result<()> {
        let Some(target) = target else { return Ok(()) };
        let path = target.starts_with('/') && !target.starts_with("//");
        // Browsers read a backslash as a slash and leave out control characters.
        let plain = target.bytes().all(|b| b.is_ascii_graphic() && b != b'\\');
        if plain && (path || self.trusts(target)) {
            Ok(())
        } else {
            Err(invalid_target())
        }
    }
}

/// The page that shows people what can act for them.
pub(super) const SECURITY_PAGE: &str = "/account/security";

/// What a value of a query must not have as it is.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// An address with more parameters.
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

pub(super) fn invalid_origin() -> Error {
    Error::refused(Code::InvalidOrigin, "Invalid origin")
}

/// Scheme, host and port of an address, in lower case; the scheme's own port left out.
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
        let limiter = SharedLimiter::new(limiter, Duration::ZERO, clock);
        Iam::new(config, &RatePlan::default(), &Arc::new(limiter))
    }

    #[test]
    fn an_origin_is_scheme_host_and_port() {
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
    fn a_path_is_below_that_of_the_address() {
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
    fn redirects_stay_at_home() {
        for good in ["/", "/dash?x=1", "https://iam.example.org/dash"] {
            assert!(iam().refuse_foreign_target(Some(good)).is_ok(), "{good}");
        }
        for bad in [
            "//evil.net",
            "/\\evil.net",
            "https://evil.net/",
            "javascript:alert(1)",
            "dash",
            "/\tx",
        ] {
            assert!(iam().refuse_foreign_target(Some(bad)).is_err(), "{bad}");
        }
    }
}
