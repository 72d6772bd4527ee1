//! The configuration of the adapter.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use core_domain::kernel::Secret;
use serde::{Deserialize, Serialize};

use crate::stream::{Target, TlsSetup};

/// Maximum length of the prefix of keys, in bytes.
const MAX_PREFIX_BYTES: usize = 64;

/// The Redis server, and how it is used.
#[derive(Clone)]
pub struct RedisConfig {
    /// The URL of the server: `redis://user:password@host:6379/0`, `rediss://` for TLS, or `unix:///path` for a socket
    /// of this machine.
    pub url: Secret,
    /// Maximum time for the response to a command. It must be shorter than the time after which the caller counts in
    /// memory. Default: 75 milliseconds.
    pub response_timeout: Duration,
    /// Maximum time to open a connection, including TLS and authentication. Default: 1 second.
    pub connect_timeout: Duration,
    /// The other options.
    pub options: RedisOptions,
}

/// The options that need no secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RedisOptions {
    /// The beginning of every key and of the channel for notices. Installations that share a server need different
    /// prefixes. Default: `core:`.
    pub key_prefix: String,
    /// A PEM file with the root certificates that the server's certificate must come from, used with `rediss://`.
    /// Default: the system's root certificates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root_certificates: Option<PathBuf>,
}

impl Default for RedisOptions {
    fn default() -> Self {
        Self {
            key_prefix: "core:".to_owned(),
            root_certificates: None,
        }
    }
}

impl fmt::Debug for RedisConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The URL may contain a password.
        f.debug_struct("RedisConfig")
            .field("response_timeout", &self.response_timeout)
            .field("connect_timeout", &self.connect_timeout)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// An invalid option.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{setting}: {problem}")]
pub struct OptionError {
    /// The name of the setting: `redis.` and the field of [`RedisConfig`] or [`RedisOptions`].
    pub setting: &'static str,
    /// The problem with the value; never contains a secret.
    pub problem: String,
}

impl RedisConfig {
    /// Creates the default configuration for a server.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: Secret::new(url),
            response_timeout: Duration::from_millis(75),
            connect_timeout: Duration::from_secs(1),
            options: RedisOptions::default(),
        }
    }

    /// Checks the configuration, and reads the root certificates if TLS is used.
    ///
    /// # Errors
    /// [`OptionError`] names the invalid option.
    pub fn check(&self) -> Result<(), OptionError> {
        self.target().map(drop)
    }

    /// Returns the server that the valid configuration describes.
    pub(crate) fn target(&self) -> Result<Target, OptionError> {
        self.options.check()?;
        let Some(address) = Address::parse(self.url.expose()) else {
            return Err(option_error(
                "redis.url",
                "must have the form redis://user:password@host:port/database, rediss://.. or unix:///path",
            ));
        };
        let file = self.options.root_certificates.as_deref();
        let tls = address.uses_tls.then(|| TlsSetup::new(file)).transpose();
        Ok(Target {
            server: address.server,
            tls: tls.map_err(|problem| option_error("redis.root_certificates", problem))?,
            response_timeout: self.response_timeout,
            connect_timeout: self.connect_timeout,
        })
    }
}

impl RedisOptions {
    /// Checks the options.
    ///
    /// # Errors
    /// [`OptionError`] names the invalid option.
    pub fn check(&self) -> Result<(), OptionError> {
        let prefix = &self.key_prefix;
        if prefix.is_empty() || prefix.len() > MAX_PREFIX_BYTES {
            return Err(option_error("redis.key_prefix", "must have 1 to 64 bytes"));
        }
        if !prefix.bytes().all(|b| b.is_ascii_graphic()) {
            let problem = "must consist of visible ASCII characters";
            return Err(option_error("redis.key_prefix", problem));
        }
        Ok(())
    }
}

fn option_error(setting: &'static str, problem: impl Into<String>) -> OptionError {
    OptionError {
        setting,
        problem: problem.into(),
    }
}

/// The server of a URL, and whether to use TLS.
struct Address {
    server: redis::ConnectionInfo,
    uses_tls: bool,
}

impl Address {
    /// Parses a URL. The errors of the driver are dropped, because they could contain a part of it.
    fn parse(url: &str) -> Option<Self> {
        // The driver refuses these schemes without its own TLS.
        let secure = ["rediss://", "valkeys://"];
        let secure = secure.iter().find_map(|scheme| url.strip_prefix(scheme));
        let plain = secure.map(|rest| format!("redis://{rest}"));
        let url = plain.as_deref().unwrap_or(url);
        // The driver understands `#insecure` only with its own TLS.
        if url.contains('#') {
            return None;
        }
        Some(Self {
            server: redis::IntoConnectionInfo::into_connection_info(url).ok()?,
            uses_tls: secure.is_some(),
        })
    }
}
