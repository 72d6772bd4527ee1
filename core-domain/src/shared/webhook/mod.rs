//! Webhooks: who is told of changes by signed requests, and the messages that tell. After Standard Webhooks.

mod address;
mod delivery;
mod message;
mod record;
mod schedule;
mod secret;
mod url;

pub use address::is_public;
pub use delivery::{
    WebhookAttempt, WebhookDelivery, WebhookDeliveryEvent, WebhookDeliveryFilter,
    WebhookDeliveryQuery, WebhookDeliveryStatus, WebhookOutcome,
};
pub use message::{LONGEST_MESSAGE, change_message, test_message};
pub use record::{
    CreateWebhook, MAX_SECRETS, SealedWebhookSecret, UpdateWebhook, Webhook, WebhookEvent,
    WebhookEventType, WebhookQuery, WebhookStatus,
};
pub use secret::WebhookSecret;
pub use url::{UrlTarget, WebhookTargets, WebhookUrl};
