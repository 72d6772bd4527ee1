//! The configuration of the exporter.

use std::path::PathBuf;
use std::time::Duration;

use core_domain::kernel::{Secret, duration_text};
use http::{HeaderName, HeaderValue, Uri};
use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};

use crate::error::{OtlpError, otlp_error};

/// The path of the traces below the base URL of a collector.
const TRACES: &str = "/v1/traces";

/// The limits of the exporter. Durations are written as `90s` or `1h 30m`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OtlpOptions {
    /// Maximum number of spans that wait for the collector. Further spans are dropped. Default: 4,096.
    pub queue: usize,
    /// Maximum number of spans in a request. Default: 512.
    pub batch: usize,
    /// Maximum time that a span waits for others before it is sent. Default: 2 seconds.
    #[serde(with = "duration_text")]
    pub delay: Duration,
    /// Maximum duration of a request. Default: 10 seconds.
    #[serde(with = "duration_text")]
    pub timeout: Duration,
    /// How long a batch is repeated while the collector cannot be reached or is overloaded. Default: 30 seconds.
    #[serde(with = "duration_text")]
    pub retry: Duration,
    /// Maximum time for sending the waiting spans when the process stops. Default: 3 seconds.
    #[serde(with = "duration_text")]
    pub flush: Duration,
    /// A PEM file with the root certificates that the collector's certificate must come from. Default: the system's root
    /// certificates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root_certificates: Option<PathBuf>,
}

impl Default for OtlpOptions {
    fn default() -> Self {
        Self {
            queue: 4_096,
            batch: 512,
            delay: Duration::from_secs(2),
            timeout: Duration::from_secs(10),
            retry: Duration::from_secs(30),
            flush: Duration::from_secs(3),
            root_certificates: None,
        }
    }
}

impl OtlpOptions {
    /// Checks that spans can be exported with these options.
    ///
    /// # Errors
    /// [`OtlpError`] names the invalid option.
    pub fn check(&self) -> Result<(), OtlpError> {
        let zeros = [
            ("otlp.queue", self.queue == 0),
            ("otlp.batch", self.batch == 0),
            ("otlp.timeout", self.timeout.is_zero()),
        ];
        match zeros.into_iter().find(|(_, is_zero)| *is_zero) {
            Some((setting, _)) => Err(otlp_error(setting, "must be greater than 0")),
            None => Ok(()),
        }
    }
}

/// The collector, and how spans are sent to it.
#[derive(Clone, PartialEq, Eq)]
pub struct OtlpConfig {
    /// The URL that spans are posted to, such as `http://127.0.0.1:4318/v1/traces`. See [`Self::of_collector`].
    pub endpoint: String,
    /// Headers of every request, such as a credential: `name=value`, separated by commas. Values are percent-encoded.
    pub headers: Option<Secret>,
    /// The name of the service in the traces. Default: `core-suite`.
    pub service_name: String,
    /// The limits.
    pub options: OtlpOptions,
}

// The headers stay out of logs.
impl std::fmt::Debug for OtlpConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OtlpConfig")
            .field("endpoint", &self.endpoint)
            .field("service_name", &self.service_name)
            .finish_non_exhaustive()
    }
}

impl OtlpConfig {
    /// Posts spans to this URL, without headers.
    #[must_use]
    pub fn new(endpoint: impl Into<String>) -> Self {
        Self {
            endpoint: endpoint.into(),
            headers: None,
            service_name: "core-suite".to_owned(),
            options: OtlpOptions::default(),
        }
    }

    /// Posts spans to the path `/v1/traces` below the base URL of a collector, such as `http://127.0.0.1:4318`.
    #[must_use]
    pub fn of_collector(base: &str) -> Self {
        Self::new(format!("{}{TRACES}", base.trim_end_matches('/')))
    }

    /// Checks the configuration without a request.
    ///
    /// # Errors
    /// [`OtlpError`] names the invalid setting.
    pub fn check(&self) -> Result<(), OtlpError> {
        self.options.check()?;
        self.uri()?;
        self.header_lines()?;
        crate::tls::configuration(self.options.root_certificates.as_deref()).map(drop)
    }

    /// Returns whether requests are sent without encryption to another machine.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        let uri = self.uri().ok();
        let plain = uri.filter(|uri| uri.scheme_str() == Some("http"));
        plain.is_some_and(|uri| {
            let host = uri.host().unwrap_or_default();
            !matches!(host, "localhost" | "127.0.0.1" | "[::1]")
        })
    }

    /// Parses the URL.
    pub(crate) fn uri(&self) -> Result<Uri, OtlpError> {
        // The errors do not contain the URL, which may have a password.
        let uri: Uri = self
            .endpoint
            .parse()
            .map_err(|_| otlp_error("otlp.endpoint", "is not a valid URL"))?;
        let has_scheme = matches!(uri.scheme_str(), Some("http" | "https"));
        let authority = uri.authority().filter(|_| has_scheme);
        if authority.is_none_or(|authority| authority.as_str().contains('@')) {
            let form = "must have the form http://host:port or https://host:port";
            return Err(otlp_error("otlp.endpoint", form));
        }
        Ok(uri)
    }

    /// Parses the headers.
    pub(crate) fn header_lines(&self) -> Result<Vec<(HeaderName, HeaderValue)>, OtlpError> {
        let text = self.headers.as_ref().map_or("", Secret::expose);
        let pairs = text.split(',').filter(|pair| !pair.trim().is_empty());
        pairs.map(header_line).collect()
    }
}

/// Parses `name=value`. The errors do not contain the value.
fn header_line(pair: &str) -> Result<(HeaderName, HeaderValue), OtlpError> {
    let refused = |problem: &str| otlp_error("otlp.headers", problem);
    let (name, value) = pair
        .split_once('=')
        .ok_or_else(|| refused("must have the form name=value,name=value"))?;
    let name = name.trim().parse::<HeaderName>();
    let name = name.map_err(|_| refused("contain an invalid name"))?;
    let value = percent_decode_str(value.trim()).decode_utf8();
    let value = value.map_err(|_| refused("contain a value that is not text"))?;
    let mut value = HeaderValue::from_str(&value)
        .map_err(|_| refused("contain a value with characters that headers cannot have"))?;
    value.set_sensitive(true);
    Ok((name, value))
}
