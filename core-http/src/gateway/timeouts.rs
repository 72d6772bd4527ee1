//! The timeouts of forwarded requests.

use std::time::Duration;

use core_domain::kernel::optional_duration_text;
use serde::{Deserialize, Serialize};

/// The timeouts of one service that replace those of the gateway. A timeout that is absent is that of the gateway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServiceTimeouts {
    /// Replaces [`GatewayConfig::response_timeout`](super::GatewayConfig::response_timeout).
    #[serde(
        with = "optional_duration_text",
        skip_serializing_if = "Option::is_none"
    )]
    pub response: Option<Duration>,
    /// Replaces [`GatewayConfig::upload_idle_timeout`](super::GatewayConfig::upload_idle_timeout).
    #[serde(
        with = "optional_duration_text",
        skip_serializing_if = "Option::is_none"
    )]
    pub upload_idle: Option<Duration>,
    /// Replaces [`GatewayConfig::response_idle_timeout`](super::GatewayConfig::response_idle_timeout).
    #[serde(
        with = "optional_duration_text",
        skip_serializing_if = "Option::is_none"
    )]
    pub response_idle: Option<Duration>,
}

/// The timeouts of a request to one service.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeouts {
    /// Maximum time from the end of the upload to the head of the response.
    pub(crate) response: Duration,
    /// Maximum pause of the client during the upload.
    pub(crate) upload_idle: Duration,
    /// Maximum pause of the service during the response.
    pub(crate) response_idle: Duration,
}

impl Timeouts {
    /// Returns these timeouts with those of a service in their place. Returns `None` if one is zero.
    pub(super) fn of_service(self, service: &ServiceTimeouts) -> Option<Self> {
        let other = |replacement: Option<Duration>, own| {
            let timeout: Duration = replacement.unwrap_or(own);
            (!timeout.is_zero()).then_some(timeout)
        };
        Some(Self {
            response: other(service.response, self.response)?,
            upload_idle: other(service.upload_idle, self.upload_idle)?,
            response_idle: other(service.response_idle, self.response_idle)?,
        })
    }
}
