//! How names are looked up.

use std::time::Duration;

use core_domain::kernel::duration_text;
use core_http::gateway::ConfigError;
use serde::{Deserialize, Serialize};

/// How long a look-up may take: what its port promises.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(20);

/// Who is asked for the DNS records of custom domains, and how long that may take (feature `dns`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DnsOptions {
    /// Name servers that look up names of anybody, as `192.0.2.53` or `[2001:db8::53]:5353`. Those of the system unless set.
    pub nameservers: Vec<String>,
    /// How long a look-up may take, 20 s at the most. 5 s unless set.
    #[serde(with = "duration_text")]
    pub timeout: Duration,
    /// Time between two look-ups of the proofs of all hostnames that are served. Default: 1 day.
    #[serde(with = "duration_text")]
    pub proof_interval: Duration,
    /// How long the proof of a hostname may be missing before the hostname is served no longer. Default: 3 days.
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
    /// Tells whether names can be looked up with them.
    ///
    /// # Errors
    /// [`ConfigError`] names the first one that is not valid.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.timeout.is_zero() || self.timeout > LONGEST_TIMEOUT {
            return Err(ConfigError {
                setting: "dns.timeout",
                problem: "must be between nothing and 20 s".to_owned(),
            });
        }
        if self.proof_interval.is_zero() {
            return Err(ConfigError {
                setting: "dns.proof_interval",
                problem: "must be more than nothing".to_owned(),
            });
        }
        Ok(())
    }
}
