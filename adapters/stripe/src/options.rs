//! The configuration of the adapter.

use std::fmt;
use std::time::Duration;

use core_domain::kernel::{Secret, duration_text};
use http::Uri;
use serde::{Deserialize, Serialize};

/// The base URL of the Stripe API.
pub const API_BASE_URL: &str = "https://api.stripe.com";

/// Maximum length of a request of a job. The job engine gives a step one minute.
const MAX_JOB_TIMEOUT: Duration = Duration::from_mins(1);

/// The Stripe account that is used.
#[derive(Clone)]
pub struct StripeAccount {
    /// The secret key, or a restricted key. The crate documentation lists the permissions that it needs.
    pub secret_key: Secret,
    /// The secrets of the webhook endpoint. While a secret is replaced, both are valid. Without one, webhooks are refused.
    pub webhook_secrets: Vec<Secret>,
    /// The key with which browsers send card data to Stripe.
    pub publishable_key: Option<String>,
    /// The base URL of the API, without a slash at the end. Use [`API_BASE_URL`] for Stripe itself.
    pub base_url: String,
}

impl fmt::Debug for StripeAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StripeAccount")
            .field("is_live", &self.is_live())
            .field("base_url", &self.base_url)
            .finish_non_exhaustive()
    }
}

/// The options of the Stripe adapter. Durations are written as `90s` or `1h 30m`, sizes in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StripeOptions {
    /// Maximum number of requests of this process in one second. Stripe allows 100 in live mode, so processes with the
    /// same account must divide this number. Default: 100.
    pub requests: u32,
    /// Maximum number of requests of this process to one endpoint in one second. Stripe allows 25. Default: 25.
    pub endpoint_requests: u32,
    /// Maximum time of a call for a waiting person, with all its requests. Default: 10 seconds.
    #[serde(with = "duration_text")]
    pub timeout: Duration,
    /// Maximum time of a call of a job, with all its requests, at most 1 minute. Default: 30 seconds.
    #[serde(with = "duration_text")]
    pub job_timeout: Duration,
    /// Maximum time to open a connection. Default: 5 seconds.
    #[serde(with = "duration_text")]
    pub connect_timeout: Duration,
    /// Maximum number of retries of a request after a lost connection, a conflict or an error of the server. A retry has
    /// the same idempotency key. Default: 2.
    pub retries: u32,
    /// The pause before the first retry. It doubles with each retry, and is shortened by up to a half, differently for
    /// each request. Default: 500 milliseconds.
    #[serde(with = "duration_text")]
    pub retry_delay: Duration,
    /// Number of failures in a row after which no requests are sent for some time. Default: 5.
    pub breaker_failures: u32,
    /// Time during which no requests are sent after too many failures. Default: 30 seconds.
    #[serde(with = "duration_text")]
    pub breaker_pause: Duration,
    /// Maximum length of a response body, in bytes. Default: 4 MiB.
    pub answer_bytes: usize,
    /// The id of the configuration of the customer portal. It must allow payment methods and invoices only. Default: not
    /// set, which is the default configuration of the account.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub portal_configuration: Option<String>,
}

impl Default for StripeOptions {
    fn default() -> Self {
        Self {
            requests: 100,
            endpoint_requests: 25,
            timeout: Duration::from_secs(10),
            job_timeout: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(5),
            retries: 2,
            retry_delay: Duration::from_millis(500),
            breaker_failures: 5,
            breaker_pause: Duration::from_secs(30),
            answer_bytes: 4 * 1024 * 1024,
            portal_configuration: None,
        }
    }
}

/// An invalid option.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{setting}: {problem}")]
pub struct OptionError {
    /// The name of the setting: `stripe.` and the field of [`StripeAccount`] or [`StripeOptions`].
    pub setting: &'static str,
    /// The problem with the value; never contains a secret.
    pub problem: &'static str,
}

const fn option_error(setting: &'static str, problem: &'static str) -> OptionError {
    OptionError { setting, problem }
}

/// Returns the mode of a key with one of these types: `true` for live, `false` for test. Returns `None` if it is no such
/// key.
fn mode_of(key: &str, kinds: &[&str]) -> Option<bool> {
    let rest = kinds.iter().find_map(|kind| key.strip_prefix(kind))?;
    let (mode, rest) = rest.split_once('_')?;
    let is_valid = !rest.is_empty() && key.bytes().all(|byte| byte.is_ascii_graphic());
    match mode {
        "live" if is_valid => Some(true),
        "test" if is_valid => Some(false),
        _ => None,
    }
}

impl StripeAccount {
    /// Returns whether the secret key moves real money.
    #[must_use]
    pub fn is_live(&self) -> bool {
        mode_of(self.secret_key.expose(), &["sk_", "rk_"]).unwrap_or_default()
    }

    /// Checks the format of the values, without any requests.
    ///
    /// # Errors
    /// [`OptionError`] names the first invalid value.
    pub fn check(&self) -> Result<(), OptionError> {
        let mode = mode_of(self.secret_key.expose(), &["sk_", "rk_"]);
        if mode.is_none() {
            return Err(option_error(
                "stripe.secret_key",
                "must begin with sk_live_, sk_test_, rk_live_ or rk_test_",
            ));
        }
        let is_webhook_secret = |secret: &Secret| secret.expose().starts_with("whsec_");
        if !self.webhook_secrets.iter().all(is_webhook_secret) {
            return Err(option_error(
                "stripe.webhook_secrets",
                "must begin with whsec_",
            ));
        }
        if let Some(key) = &self.publishable_key
            && mode_of(key, &["pk_"]) != mode
        {
            return Err(option_error(
                "stripe.publishable_key",
                "must begin with pk_live_ or pk_test_, in the mode of the secret key",
            ));
        }
        if !is_base_url(&self.base_url) {
            return Err(option_error(
                "stripe.base_url",
                "must have the form https://host (http:// only for this machine)",
            ));
        }
        Ok(())
    }
}

impl StripeOptions {
    /// Checks the values, without any requests.
    ///
    /// # Errors
    /// [`OptionError`] names the first invalid value.
    pub fn check(&self) -> Result<(), OptionError> {
        let counts = [
            ("stripe.requests", self.requests),
            ("stripe.endpoint_requests", self.endpoint_requests),
            ("stripe.breaker_failures", self.breaker_failures),
        ];
        let times = [
            ("stripe.timeout", self.timeout),
            ("stripe.job_timeout", self.job_timeout),
            ("stripe.connect_timeout", self.connect_timeout),
        ];
        let counts = counts.into_iter().filter(|(_, count)| *count == 0);
        let times = times.into_iter().filter(|(_, time)| time.is_zero());
        let zeros = counts
            .map(|(name, _)| name)
            .chain(times.map(|(name, _)| name));
        if let Some(setting) = zeros.into_iter().next() {
            return Err(option_error(setting, "must be greater than zero"));
        }
        if self.job_timeout > MAX_JOB_TIMEOUT {
            return Err(option_error("stripe.job_timeout", "must be at most 1 min"));
        }
        if self.answer_bytes == 0 {
            return Err(option_error(
                "stripe.answer_bytes",
                "must be greater than zero",
            ));
        }
        Ok(())
    }
}

/// Returns whether a text is a valid base URL. Every request contains the key, so plain HTTP is allowed only to this
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

#[cfg(test)]
mod tests {
    use super::*;

    fn account() -> StripeAccount {
        StripeAccount {
            secret_key: Secret::new("sk_test_abc"),
            webhook_secrets: vec![Secret::new("whsec_abc")],
            publishable_key: Some("pk_test_abc".to_owned()),
            base_url: API_BASE_URL.to_owned(),
        }
    }

    #[test]
    fn invalid_accounts_are_refused_by_the_name_of_the_setting() {
        assert_eq!(account().check(), Ok(()));
        type Change = fn(&mut StripeAccount);
        let changes: [(&str, Change); 9] = [
            ("stripe.secret_key", |own| own.secret_key = Secret::new("")),
            ("stripe.secret_key", |own| {
                own.secret_key = Secret::new("pk_test_abc");
            }),
            ("stripe.secret_key", |own| {
                own.secret_key = Secret::new("sk_test_");
            }),
            ("stripe.secret_key", |own| {
                own.secret_key = Secret::new("sk_test_a\nb");
            }),
            ("stripe.webhook_secrets", |own| {
                own.webhook_secrets.push(Secret::new("abc"));
            }),
            ("stripe.publishable_key", |own| {
                own.publishable_key = Some("pk_live_abc".to_owned());
            }),
            ("stripe.base_url", |own| {
                "http://example.com".clone_into(&mut own.base_url);
            }),
            ("stripe.base_url", |own| {
                "https://a@example.com".clone_into(&mut own.base_url);
            }),
            ("stripe.base_url", |own| {
                "https://example.com/".clone_into(&mut own.base_url);
            }),
        ];
        for (setting, change) in changes {
            let mut account = account();
            change(&mut account);
            assert_eq!(account.check().unwrap_err().setting, setting);
        }
    }

    #[test]
    fn the_key_decides_the_mode() {
        for (key, expected) in [
            ("sk_live_a", true),
            ("rk_live_a", true),
            ("sk_test_a", false),
            ("rk_test_a", false),
        ] {
            let account = StripeAccount {
                secret_key: Secret::new(key),
                ..account()
            };
            assert_eq!(account.is_live(), expected, "{key}");
        }
    }

    #[test]
    fn zeros_are_refused() {
        type Change = fn(&mut StripeOptions);
        let changes: [Change; 4] = [
            |own| own.requests = 0,
            |own| own.timeout = Duration::ZERO,
            |own| own.answer_bytes = 0,
            |own| own.job_timeout = Duration::from_secs(61),
        ];
        assert_eq!(StripeOptions::default().check(), Ok(()));
        for change in changes {
            let mut options = StripeOptions::default();
            change(&mut options);
            assert!(options.check().is_err());
        }
    }

    #[test]
    fn debug_output_has_no_secrets() {
        let text = format!("{:?}", account());
        assert!(!text.contains("abc"), "{text}");
    }
}
