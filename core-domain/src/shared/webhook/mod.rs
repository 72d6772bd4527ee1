//! Webhooks: who is told of changes by signed requests, and the messages that tell. After Standard Webhooks.

mod delivery;
mod record;
mod url;

pub use delivery::{
    LONGEST_MESSAGE, WebhookAttempt, WebhookDelivery, WebhookDeliveryEvent, WebhookDeliveryFilter,
    WebhookDeliveryQuery, WebhookDeliveryStatus, WebhookOutcome, change_message, test_message,
};
pub use record::{
    CreateWebhook, MAX_SECRETS, SealedWebhookSecret, UpdateWebhook, Webhook, WebhookEvent,
    WebhookEventType, WebhookQuery, WebhookSecret, WebhookStatus,
};
pub use url::{UrlTarget, WebhookTargets, WebhookUrl, is_public};
