//! The port that sends webhooks.

use std::time::Duration;

use async_trait::async_trait;

use super::Cause;
use crate::shared::WebhookUrl;

/// Maximum time for sending one webhook. A configured time-out cannot exceed it.
pub const MAX_SEND_DURATION: Duration = Duration::from_secs(30);

/// A signed `POST` request with a JSON body.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookRequest {
    /// The URL of the receiver.
    pub url: WebhookUrl,
    /// The value of the `webhook-id` header.
    pub id: String,
    /// The value of the `webhook-timestamp` header: the time of the attempt in Unix seconds.
    pub timestamp: String,
    /// The value of the `webhook-signature` header: one signature for each secret, separated by spaces.
    pub signature: String,
    /// The JSON body.
    pub body: String,
}

// URL, signature and body stay out of logs, because they are only for the receiver.
impl std::fmt::Debug for WebhookRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebhookRequest")
            .field("id", &self.id)
            .field("to", &self.url.origin())
            .finish_non_exhaustive()
    }
}

/// The response of the receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookResponse {
    /// The HTTP status. Redirects are not followed.
    pub status: u16,
    /// The value of the `Retry-After` header, if present.
    pub retry_after: Option<String>,
    /// The first 1,024 bytes of the body, as text.
    pub body: String,
}

impl WebhookResponse {
    /// Returns whether the receiver accepted the message.
    #[must_use]
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// The reason why there was no response. The text is for the owner of the webhook, the cause only for the log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WebhookSendError {
    /// The installation does not send to this URL or to the addresses of its host.
    #[error("the address is not one that this installation sends to")]
    Forbidden,
    /// The host has no address.
    #[error("the host was not found")]
    UnknownHost(#[source] Cause),
    /// A connection to the receiver, or TLS on it, could not be established.
    #[error("no connection to the receiver could be established")]
    Unreachable(#[source] Cause),
    /// The connection was closed before a valid response arrived.
    #[error("the receiver did not respond")]
    NoResponse(#[source] Cause),
    /// The time limit was exceeded.
    #[error("the receiver did not respond in time")]
    TimedOut,
    /// The installation has no sender for webhooks.
    #[error("this installation cannot send webhooks")]
    Unavailable(#[source] Cause),
}

/// Sends webhooks to their receivers.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
#[async_trait]
pub trait WebhookSender: Send + Sync + std::fmt::Debug {
    /// Sends a request once, without following redirects. The address to which the connection is made is checked
    /// against the allowed addresses.
    ///
    /// # Errors
    /// [`WebhookSendError`] if there is no response.
    async fn send(&self, request: &WebhookRequest) -> Result<WebhookResponse, WebhookSendError>;
}
