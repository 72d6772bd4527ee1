//! The configuration of the adapter.

use std::fmt;
use std::time::Duration;

use core_domain::kernel::{Secret, duration_text};
use http::Uri;
use serde::{Deserialize, Serialize};

/// The base URL of the Cloudflare API.
pub const API_BASE_URL: &str = "https://api.cloudflare.com/client/v4";

/// Maximum of [`CloudflareOptions::request_timeout`]: the job engine gives a step one minute.
const MAX_REQUEST_TIMEOUT: Duration = Duration::from_mins(1);

/// The Cloudflare account that is used.
#[derive(Clone)]
pub struct CloudflareAccount {
    /// The API token. The crate documentation lists the permissions that it needs.
    pub token: Secret,
    /// The id of the account: 32 hexadecimal digits.
    pub account_id: String,
    /// The base URL of the API, without a slash at the end. Use [`API_BASE_URL`] for Cloudflare itself.
    pub base_url: String,
}

impl fmt::Debug for CloudflareAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CloudflareAccount")
            .field("account_id", &self.account_id)
            .field("base_url", &self.base_url)
            .finish_non_exhaustive()
    }
}

/// The options of the Cloudflare adapter. Durations are written as `90s` or `1h 30m`, sizes in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CloudflareOptions {
    /// The name or id of the zone that contains customers' custom hostnames ("Cloudflare for SaaS"). If it is not set,
    /// customers' hostnames are not served. The operator must set the fallback origin of the zone. Default: not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub saas_zone: Option<String>,
    /// The compatibility date of uploaded workers. Default: `2026-11-01`.
    pub compatibility_date: String,
    /// If `true`, workers are also served at the account's workers.dev subdomain, if it has one. Default: `true`.
    pub workers_dev: bool,
    /// Maximum number of requests of this process in one window. Cloudflare allows 1200 for each token, so processes
    /// with the same token must divide this number. Minimum: 2. Default: 1200.
    pub requests: u32,
    /// The length of the window. Default: 5 minutes.
    #[serde(with = "duration_text")]
    pub window: Duration,
    /// Maximum time that a request waits for the rate limiter. If it would have to wait longer, it fails as throttled.
    /// Default: 2 seconds.
    #[serde(with = "duration_text")]
    pub longest_wait: Duration,
    /// Maximum time to open a connection. Default: 5 seconds.
    #[serde(with = "duration_text")]
    pub connect_timeout: Duration,
    /// Maximum time until a response starts, at most 1 minute. Default: 30 seconds.
    #[serde(with = "duration_text")]
    pub request_timeout: Duration,
    /// Maximum time until the response to an upload of up to 54 MiB starts. Default: 2 minutes.
    #[serde(with = "duration_text")]
    pub upload_timeout: Duration,
    /// Maximum time between two pieces of a response body. Default: 10 seconds.
    #[serde(with = "duration_text")]
    pub idle_timeout: Duration,
    /// Maximum length of a response body, in bytes. Default: 16 MiB.
    pub answer_bytes: usize,
    /// The pause before the first retry of a call that can be repeated. It doubles with each retry. Default: 1 second.
    #[serde(with = "duration_text")]
    pub retry_delay: Duration,
    /// Maximum number of parts of sites that the process holds in memory and uploads at the same time. A part has up to
    /// 54 MiB. Default: 3.
    pub uploads: u32,
    /// Maximum time that one call deletes objects of a bucket before the bucket can be deleted. The next call
    /// continues. Default: 30 seconds.
    #[serde(with = "duration_text")]
    pub emptying_time: Duration,
}

impl Default for CloudflareOptions {
    fn default() -> Self {
        Self {
            saas_zone: None,
            compatibility_date: "2026-11-01".to_owned(),
            workers_dev: true,
            requests: 1_200,
            window: Duration::from_mins(5),
            longest_wait: Duration::from_secs(2),
            connect_timeout: Duration::from_secs(5),
            request_timeout: Duration::from_secs(30),
            upload_timeout: Duration::from_mins(2),
            idle_timeout: Duration::from_secs(10),
            answer_bytes: 16 * 1024 * 1024,
            retry_delay: Duration::from_secs(1),
            uploads: 3,
            emptying_time: Duration::from_secs(30),
        }
    }
}

/// An invalid option.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{setting}: {problem}")]
pub struct OptionError {
    /// The name of the setting: `cloudflare.` and the field of [`CloudflareAccount`] or [`CloudflareOptions`].
    pub setting: &'static str,
    /// The problem with the value; never contains a secret.
    pub problem: &'static str,
}

const fn option_error(setting: &'static str, problem: &'static str) -> OptionError {
    OptionError { setting, problem }
}

impl CloudflareAccount {
    /// Checks the format of the values, without any requests.
    ///
    /// # Errors
    /// [`OptionError`] names the first invalid value.
    pub fn check(&self) -> Result<(), OptionError> {
        let token = self.token.expose();
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(option_error("cloudflare.token", "is not a valid API token"));
        }
        if !is_id(&self.account_id) {
            return Err(option_error(
                "cloudflare.account_id",
                "must be 32 hexadecimal digits",
            ));
        }
        if !is_base_url(&self.base_url) {
            return Err(option_error(
                "cloudflare.base_url",
                "must have the form https://host/path (http:// only for this machine)",
            ));
        }
        Ok(())
    }
}

impl CloudflareOptions {
    /// Checks the values, without any requests.
    ///
    /// # Errors
    /// [`OptionError`] names the first invalid value.
    pub fn check(&self) -> Result<(), OptionError> {
        if self.saas_zone.as_deref() == Some("") {
            return Err(option_error(
                "cloudflare.saas_zone",
                "must be the name or id of a zone",
            ));
        }
        if !is_date(&self.compatibility_date) {
            return Err(option_error(
                "cloudflare.compatibility_date",
                "must be YYYY-MM-DD",
            ));
        }
        if self.requests < 2 {
            return Err(option_error("cloudflare.requests", "must be at least 2"));
        }
        if self.request_timeout > MAX_REQUEST_TIMEOUT {
            return Err(option_error(
                "cloudflare.request_timeout",
                "must be at most 1 min",
            ));
        }
        if self.answer_bytes == 0 {
            return Err(option_error(
                "cloudflare.answer_bytes",
                "must be greater than zero",
            ));
        }
        if self.uploads == 0 {
            return Err(option_error(
                "cloudflare.uploads",
                "must be greater than zero",
            ));
        }
        let times = [
            ("cloudflare.window", self.window),
            ("cloudflare.connect_timeout", self.connect_timeout),
            ("cloudflare.request_timeout", self.request_timeout),
            ("cloudflare.upload_timeout", self.upload_timeout),
            ("cloudflare.idle_timeout", self.idle_timeout),
            ("cloudflare.emptying_time", self.emptying_time),
        ];
        match times.iter().find(|(_, time)| time.is_zero()) {
            Some((setting, _)) => Err(option_error(setting, "must be greater than zero")),
            None => Ok(()),
        }
    }
}

/// Returns whether a text is the id of an account or a zone.
pub(crate) fn is_id(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns whether a text is a valid base URL. Every request contains the token, so plain HTTP is allowed only to this
/// machine.
fn is_base_url(text: &str) -> bool {
    let Ok(uri) = text.parse::<Uri>() else {
        return false;
    };
    let host = uri.host().unwrap_or_default();
    let is_here = matches!(host, "127.0.0.1" | "[::1]" | "localhost");
    let is_safe = uri.scheme_str() == Some("https") || uri.scheme_str() == Some("http") && is_here;
    let names_nobody = uri.authority().is_some_and(|of| !of.as_str().contains('@'));
    is_safe && names_nobody && !host.is_empty() && uri.query().is_none() && !text.ends_with('/')
}

fn is_date(text: &str) -> bool {
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<_> = text.split('-').collect();
    matches!(parts[..], [year, month, day] if year.len() == 4 && month.len() == 2 && day.len() == 2)
        && parts.into_iter().all(digits)
}
