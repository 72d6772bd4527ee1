//! Webhooks, which receive change events as signed HTTP requests, and the messages to them. Format and signatures
//! follow the Standard Webhooks specification.

mod delivery;
mod record;
mod url;

pub use delivery::{
    MAX_MESSAGE_BYTES, WebhookAttempt, WebhookDelivery, WebhookDeliveryEvent,
    WebhookDeliveryFilter, WebhookDeliveryQuery, WebhookDeliveryStatus, WebhookOutcome, WebhookRef,
    change_message, test_message,
};
pub use record::{
    CreateWebhook, MAX_SECRETS, SealedWebhookSecret, UpdateWebhook, Webhook, WebhookEvent,
    WebhookEventType, WebhookQuery, WebhookSecret, WebhookStatus,
};
pub use url::{UrlTarget, WebhookTargets, WebhookUrl, is_public};
