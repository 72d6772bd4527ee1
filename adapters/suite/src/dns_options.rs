//! Settings for DNS lookups.

use std::time::Duration;

use core_domain::kernel::duration_text;
use core_http::gateway::ConfigError;
use serde::{Deserialize, Serialize};

/// Maximum time for a lookup, which the port `DnsResolver` guarantees.
const MAX_TIMEOUT: Duration = Duration::from_secs(20);

/// Name servers for the DNS records of custom domains, and time limits (feature `dns`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DnsOptions {
    /// Recursive name servers, as `192.0.2.53` or `[2001:db8::53]:5353`. Default: the name servers of the system.
    pub nameservers: Vec<String>,
    /// Maximum time for one lookup, at most 20 s. Default: 5 s.
    #[serde(with = "duration_text")]
    pub timeout: Duration,
    /// Time between two checks of the ownership records of all served hostnames. Default: 1 day.
    #[serde(with = "duration_text")]
    pub proof_interval: Duration,
    /// How long the ownership record of a hostname may be missing before the hostname is no longer served. Default: 3
    /// days.
    #[serde(with = "duration_text")]
    pub proof_patience: Duration,
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl Default for DnsOptions {
    fn default() -> Self {
        Self {
            nameservers: Vec::new(),
            timeout: Duration::from_secs(5),
            proof_interval: DAY,
            proof_patience: 3 * DAY,
        }
    }
}

impl DnsOptions {
    /// Checks that DNS lookups can use these options.
    ///
    /// # Errors
    /// [`ConfigError`] names the first invalid option.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.timeout.is_zero() || self.timeout > MAX_TIMEOUT {
            return Err(ConfigError {
                setting: "dns.timeout",
                problem: "must be greater than 0 and at most 20 s".to_owned(),
            });
        }
        if self.proof_interval.is_zero() {
            return Err(ConfigError {
                setting: "dns.proof_interval",
                problem: "must be greater than 0".to_owned(),
            });
        }
        Ok(())
    }
}
