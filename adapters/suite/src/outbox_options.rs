//! Settings of the outbox.

use std::time::Duration;

use core_domain::kernel::duration_text;
use core_domain::use_case::shared::MAX_HANDOVER_TIME;
use core_http::gateway::ConfigError;
use serde::{Deserialize, Serialize};

/// Limits for delivering messages of the outbox to the outlet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OutboxOptions {
    /// Maximum number of messages that are delivered at the same time. With 1, messages are delivered in order, one
    /// after the other. Default: 8.
    pub concurrency: u32,
    /// Maximum time to deliver one message, at most 1 min. Default: 30 s.
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
    /// Checks that messages can be delivered with these options.
    ///
    /// # Errors
    /// [`ConfigError`] names the first invalid option.
    pub fn check(&self) -> Result<(), ConfigError> {
        let refused = |setting, problem: &str| {
            let problem = problem.to_owned();
            Err(ConfigError { setting, problem })
        };
        if self.concurrency == 0 {
            return refused("outbox.concurrency", "must be greater than 0");
        }
        if self.timeout.is_zero() || self.timeout > MAX_HANDOVER_TIME {
            return refused("outbox.timeout", "must be greater than 0 and at most 1 min");
        }
        Ok(())
    }
}
