//! Sending webhooks.

use std::time::Duration;

use async_trait::async_trait;

use super::Cause;
use crate::shared::WebhookUrl;

/// How long sending one webhook may take at most, whatever is configured.
pub const LONGEST_SENDING: Duration = Duration::from_secs(30);

/// A signed request to be: a `POST` of JSON.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookRequest {
    /// Where to.
    pub url: WebhookUrl,
    /// The header `webhook-id`.
    pub id: String,
    /// The header `webhook-timestamp`: the instant of the attempt, in seconds.
    pub timestamp: String,
    /// The header `webhook-signature`: one for each secret, with blanks in between.
    pub signature: String,
    /// The body.
    pub body: String,
}

// Address, signature and body are for the receiver alone.
impl std::fmt::Debug for WebhookRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebhookRequest")
            .field("id", &self.id)
            .field("to", &self.url.origin())
            .finish_non_exhaustive()
    }
}

/// What the receiver answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookAnswer {
    /// The status; redirects are not followed.
    pub status: u16,
    /// The header `Retry-After`.
    pub retry_after: Option<String>,
    /// The first 1,024 bytes of the body, as text.
    pub body: String,
}

/// Why there was no answer. The words are for the webhook's owner, the cause is for the log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WebhookSendError {
    /// The address, or what its host means, is none that this installation sends to.
    #[error("the address is not one that this installation sends to")]
    Forbidden,
    /// The host has no address.
    #[error("the host was not found")]
    UnknownHost(#[source] Cause),
    /// No connection, or none with TLS.
    #[error("the receiver could not be connected to")]
    Unreachable(#[source] Cause),
    /// The connection ended, or what came was no answer.
    #[error("the receiver did not answer")]
    NoAnswer(#[source] Cause),
    /// It took too long.
    #[error("the receiver did not answer in time")]
    TimedOut,
    /// This installation cannot send.
    #[error("this installation cannot send webhooks")]
    Unavailable(#[source] Cause),
}

/// Sends webhooks.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
#[async_trait]
pub trait WebhookSender: Send + Sync + std::fmt::Debug {
    /// Sends a request once, and follows no redirect. Whether the address may be sent to is checked on the very address
    /// that is connected to.
    ///
    /// # Errors
    /// [`WebhookSendError`] when there was no answer.
    async fn send(&self, request: &WebhookRequest) -> Result<WebhookAnswer, WebhookSendError>;
}
