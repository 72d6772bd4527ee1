//! How webhooks are sent, and to whom.

use std::time::Duration;

use core_domain::kernel::duration_text;
use core_domain::port::LONGEST_SENDING;
use core_domain::shared::WebhookTargets;
use core_domain::use_case::shared::webhook::DispatchLimits;
use core_http::gateway::ConfigError;
use serde::{Deserialize, Serialize};

/// How webhooks are sent, and to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WebhookOptions {
    /// Messages sent at a time at the most. 16 unless set.
    pub concurrency: u32,
    /// Of these to one webhook. 4 unless set.
    pub concurrency_per_webhook: u32,
    /// How long a receiver has to answer, 30 s at the most. 15 s unless set.
    #[serde(with = "duration_text")]
    pub timeout: Duration,
    /// Whether receivers without TLS are sent to as well. No unless set.
    pub allow_http: bool,
    /// Whether receivers are sent to whose address is not public: on this machine, or in its network. No unless set: then
    /// nobody who may create webhooks can reach what only this machine can.
    pub allow_private_addresses: bool,
}

impl Default for WebhookOptions {
    fn default() -> Self {
        Self {
            concurrency: 16,
            concurrency_per_webhook: 4,
            timeout: Duration::from_secs(15),
            allow_http: false,
            allow_private_addresses: false,
        }
    }
}

impl WebhookOptions {
    /// Tells whether webhooks can be sent with them.
    ///
    /// # Errors
    /// [`ConfigError`] names the first one that is not valid.
    pub fn check(&self) -> Result<(), ConfigError> {
        let refused = |setting, problem: &str| {
            let problem = problem.to_owned();
            Err(ConfigError { setting, problem })
        };
        if self.concurrency == 0 {
            return refused("webhooks.concurrency", "must be more than nothing");
        }
        if self.concurrency_per_webhook == 0 {
            return refused(
                "webhooks.concurrency_per_webhook",
                "must be more than nothing",
            );
        }
        if self.timeout.is_zero() || self.timeout > LONGEST_SENDING {
            return refused("webhooks.timeout", "must be between nothing and 30 s");
        }
        Ok(())
    }

    pub(crate) const fn limits(&self) -> DispatchLimits {
        DispatchLimits {
            concurrency: self.concurrency,
            concurrency_per_webhook: self.concurrency_per_webhook,
        }
    }

    pub(crate) const fn targets(&self) -> WebhookTargets {
        WebhookTargets {
            allow_http: self.allow_http,
            allow_private_addresses: self.allow_private_addresses,
        }
    }
}
