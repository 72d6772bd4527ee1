//! Settings of the outbox.

use std::time::Duration;

use core_domain::kernel::duration_text;
use core_domain::use_case::shared::LONGEST_HANDOVER;
use core_http::gateway::ConfigError;
use serde::{Deserialize, Serialize};

/// Limits for handing messages of the outbox to the outlet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OutboxOptions {
    /// Maximum number of messages that are handed over at the same time. With 1, they come one after the other. Default: 8.
    pub concurrency: u32,
    /// The time that handing one message over may take, 1 min at most. Default: 30 s.
    #[serde(with = "duration_text")]
    pub timeout: Duration,
}

impl Default for OutboxOptions {
    fn default() -> Self {
        Self {
            concurrency: 8,
            timeout: Duration::from_secs(30),
        }
    }
}

impl OutboxOptions {
    /// Checks that messages can be handed over with the options.
    ///
    /// # Errors
    /// [`ConfigError`] names the first option that is not valid.
    pub fn check(&self) -> Result<(), ConfigError> {
        let refused = |setting, problem: &str| {
            let problem = problem.to_owned();
            Err(ConfigError { setting, problem })
        };
        if self.concurrency == 0 {
            return refused("outbox.concurrency", "must be more than nothing");
        }
        if self.timeout.is_zero() || self.timeout > LONGEST_HANDOVER {
            return refused("outbox.timeout", "must be between nothing and 1 min");
        }
        Ok(())
    }
}
