//! The options of the adapter.

use std::path::PathBuf;
use std::time::Duration;

use core_domain::kernel::duration_text;
use serde::{Deserialize, Serialize};

/// Maximum of [`S3Options::request_timeout`]: the job engine gives a step one minute, and requests are repeated.
const MAX_REQUEST_TIMEOUT: Duration = Duration::from_mins(1);

/// The options that need no secret. Durations are written as `90s` or `1h 30m`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct S3Options {
    /// The region if the URL of the bucket names none. Default: not set, which is an error without an endpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Maximum time to open a connection. Default: 5 seconds.
    #[serde(with = "duration_text")]
    pub connect_timeout: Duration,
    /// Maximum time to send a request, with up to 8 MiB, and to wait until its response starts. At most 1 minute.
    /// Default: 30 seconds.
    #[serde(with = "duration_text")]
    pub request_timeout: Duration,
    /// Maximum time between two pieces of a response body. Default: 10 seconds.
    #[serde(with = "duration_text")]
    pub idle_timeout: Duration,
    /// A PEM file with the root certificates that the server's certificate must come from. Default: the system's root
    /// certificates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root_certificates: Option<PathBuf>,
}

impl Default for S3Options {
    fn default() -> Self {
        Self {
            region: None,
            connect_timeout: Duration::from_secs(5),
            request_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(10),
            root_certificates: None,
        }
    }
}

/// An invalid option.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{setting}: {problem}")]
pub struct OptionError {
    /// The name of the setting: `s3.` and the field of [`S3Config`](crate::S3Config),
    /// [`S3Credentials`](crate::S3Credentials) or [`S3Options`].
    pub setting: &'static str,
    /// The problem with the value; never contains a secret.
    pub problem: String,
}

pub(crate) fn option_error(setting: &'static str, problem: impl Into<String>) -> OptionError {
    OptionError {
        setting,
        problem: problem.into(),
    }
}

impl S3Options {
    /// Checks the options.
    ///
    /// # Errors
    /// [`OptionError`] names the invalid option.
    pub fn check(&self) -> Result<(), OptionError> {
        let times = [
            ("s3.connect_timeout", self.connect_timeout),
            ("s3.request_timeout", self.request_timeout),
            ("s3.idle_timeout", self.idle_timeout),
        ];
        if let Some((setting, _)) = times.iter().find(|(_, time)| time.is_zero()) {
            return Err(option_error(setting, "must be greater than 0"));
        }
        if self.request_timeout > MAX_REQUEST_TIMEOUT {
            return Err(option_error(
                "s3.request_timeout",
                "must be at most 1 minute",
            ));
        }
        Ok(())
    }
}
