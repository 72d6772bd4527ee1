//! What the adapter is told.

use std::fmt;
use std::time::Duration;

use core_domain::kernel::{Secret, duration_text};
use http::Uri;
use serde::{Deserialize, Serialize};

/// Where Cloudflare's API is.
pub const API: &str = "https://api.cloudflare.com/client/v4";

/// The longest answer to a request that can be waited for: the engine gives a step a minute.
const LONGEST_TIMEOUT: Duration = Duration::from_mins(1);

/// Whose account is worked in.
#[derive(Clone)]
pub struct CloudflareAccount {
    /// An API token; the crate says which permissions it needs.
    pub token: Secret,
    /// The account's id: 32 hexadecimal digits.
    pub account_id: String,
    /// Where the API is, without a slash at the end; [`API`] for Cloudflare itself.
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

/// How Cloudflare is worked with. Durations are written as `90s` or `1h 30m`, sizes as bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CloudflareOptions {
    /// The zone, by name or id, whose custom hostnames are the customers' own ("Cloudflare for SaaS"). Without one none are
    /// served. Its fallback origin is set by its operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub saas_zone: Option<String>,
    /// The compatibility date of workers that are uploaded. 2026-11-01 unless set.
    pub compatibility_date: String,
    /// Whether workers are served at the account's subdomain of workers.dev, where it has one. Yes unless set.
    pub workers_dev: bool,
    /// Requests this process sends in a window at the most. 1200 unless set, which is what Cloudflare allows a token: several
    /// processes with one token share it.
    pub requests: u32,
    /// How long the window is. 5 min unless set.
    #[serde(with = "duration_text")]
    pub window: Duration,
    /// How long a request waits for its turn; one that would wait longer is answered as throttled. 2 s unless set.
    #[serde(with = "duration_text")]
    pub longest_wait: Duration,
    /// How long a connection may take. 5 s unless set.
    #[serde(with = "duration_text")]
    pub connect_timeout: Duration,
    /// How long an answer may take to begin, 1 min at the most. 30 s unless set.
    #[serde(with = "duration_text")]
    pub request_timeout: Duration,
    /// How long an upload of up to 54 MiB may take until its answer begins. 2 min unless set.
    #[serde(with = "duration_text")]
    pub upload_timeout: Duration,
    /// How long an answer may pause. 10 s unless set.
    #[serde(with = "duration_text")]
    pub idle_timeout: Duration,
    /// The longest body of an answer that is read. 16 MiB unless set.
    pub answer_bytes: usize,
    /// The first pause before a call is repeated that may be repeated by itself; it doubles each time. 1 s unless set.
    #[serde(with = "duration_text")]
    pub retry_delay: Duration,
    /// Parts of sites that are in memory and uploaded at a time, each of up to 54 MiB, in the whole process. 3 unless set.
    pub uploads: u32,
    /// How long one call empties a bucket before it is removed; the next one goes on. 30 s unless set.
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

/// A value nothing could work with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{setting}: {problem}")]
pub struct OptionError {
    /// Which: `cloudflare.` and its name in [`CloudflareAccount`] or [`CloudflareOptions`].
    pub setting: &'static str,
    /// What is wrong with it; never a secret.
    pub problem: &'static str,
}

const fn refused(setting: &'static str, problem: &'static str) -> OptionError {
    OptionError { setting, problem }
}

impl CloudflareAccount {
    /// Tells whether the values go together, without asking anybody.
    ///
    /// # Errors
    /// [`OptionError`] names the first one that is wrong.
    pub fn check(&self) -> Result<(), OptionError> {
        let token = self.token.expose();
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(refused("cloudflare.token", "is no API token"));
        }
        if !is_id(&self.account_id) {
            return Err(refused(
                "cloudflare.account_id",
                "must be 32 hexadecimal digits",
            ));
        }
        if !is_base_url(&self.base_url) {
            return Err(refused(
                "cloudflare.base_url",
                "must be of the form https://host/path, or http:// on this machine",
            ));
        }
        Ok(())
    }
}

impl CloudflareOptions {
    /// Tells whether Cloudflare can be worked with like this.
    ///
    /// # Errors
    /// [`OptionError`] names the first one that is wrong.
    pub fn check(&self) -> Result<(), OptionError> {
        if self.saas_zone.as_deref() == Some("") {
            return Err(refused(
                "cloudflare.saas_zone",
                "must be the name or id of a zone",
            ));
        }
        if !is_date(&self.compatibility_date) {
            return Err(refused(
                "cloudflare.compatibility_date",
                "must be YYYY-MM-DD",
            ));
        }
        if self.requests < 2 {
            return Err(refused("cloudflare.requests", "must be two at least"));
        }
        if self.request_timeout > LONGEST_TIMEOUT {
            return Err(refused(
                "cloudflare.request_timeout",
                "must be 1 min at the most",
            ));
        }
        if self.answer_bytes == 0 {
            return Err(refused(
                "cloudflare.answer_bytes",
                "must be more than nothing",
            ));
        }
        if self.uploads == 0 {
            return Err(refused("cloudflare.uploads", "must be more than nothing"));
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
            Some((setting, _)) => Err(refused(setting, "must be more than nothing")),
            None => Ok(()),
        }
    }
}

/// Tells whether a text is an id of an account or a zone.
pub(crate) fn is_id(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The token travels in every request: without TLS to this machine alone.
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
