//! Settings for sending webhooks.

use std::time::Duration;

use core_domain::kernel::duration_text;
use core_domain::port::MAX_SEND_DURATION;
use core_domain::shared::WebhookTargets;
use core_domain::use_case::shared::webhook::DispatchLimits;
use core_http::gateway::ConfigError;
use serde::{Deserialize, Serialize};

/// Limits for sending webhooks, and their allowed receivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WebhookOptions {
    /// Maximum number of messages that are sent at the same time. Default: 16.
    pub concurrency: u32,
    /// Maximum number of these messages to one webhook. Default: 4.
    pub concurrency_per_webhook: u32,
    /// Maximum time for a receiver to respond, at most 30 s. Default: 15 s.
    #[serde(with = "duration_text")]
    pub timeout: Duration,
    /// Allows receivers without TLS, at `http://` URLs. Default: false.
    pub allow_http: bool,
    /// Allows receivers with private addresses: on this machine, or in its network. Default: false, so that users who
    /// create webhooks cannot reach internal services.
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
    /// Checks that webhooks can be sent with these options.
    ///
    /// # Errors
    /// [`ConfigError`] names the first invalid option.
    pub fn check(&self) -> Result<(), ConfigError> {
        let refused = |setting, problem: &str| {
            let problem = problem.to_owned();
            Err(ConfigError { setting, problem })
        };
        if self.concurrency == 0 {
            return refused("webhooks.concurrency", "must be greater than 0");
        }
        if self.concurrency_per_webhook == 0 {
            return refused("webhooks.concurrency_per_webhook", "must be greater than 0");
        }
        if self.timeout.is_zero() || self.timeout > MAX_SEND_DURATION {
            return refused(
                "webhooks.timeout",
                "must be greater than 0 and at most 30 s",
            );
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
