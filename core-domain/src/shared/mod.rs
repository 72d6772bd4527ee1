//! Records that belong to no single service: the audit, the outbox, idempotency keys, webhooks.

mod audit;
mod change_event;
mod idempotency;
mod outbox;
mod webhook;

pub use audit::{AuditEntry, AuditFilter, AuditQuery, AuditStream, PlatformAuditFilter};
pub use change_event::ChangeEvent;
pub use idempotency::{IdempotencyKey, IdempotencyQuery, KEPT_FOR};
pub use outbox::{MAIL_TOPIC, OutboxMessage, OutboxQuery};
pub use webhook::{
    CreateWebhook, LONGEST_MESSAGE, MAX_SECRETS, MAX_WEBHOOKS, SealedWebhookSecret, UpdateWebhook,
    UrlTarget, Webhook, WebhookAttempt, WebhookDelivery, WebhookDeliveryEvent,
    WebhookDeliveryFilter, WebhookDeliveryQuery, WebhookDeliveryStatus, WebhookEvent,
    WebhookEventType, WebhookOutcome, WebhookQuery, WebhookSecret, WebhookStatus, WebhookTargets,
    WebhookUrl, change_message, is_public, test_message,
};
