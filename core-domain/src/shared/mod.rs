//! Records that all services share: the audit log, the outbox, idempotency keys, mail quotas, maintenance leases and
//! webhooks.

mod audit;
mod audit_archive;
mod audit_archive_file;
mod audit_checkpoint;
mod audit_seal;
mod change_event;
mod idempotency;
mod mail_quota;
mod maintenance_lease;
mod outbox;
mod webhook;

pub use audit::{
    AuditEntry, AuditFilter, AuditOrder, AuditQuery, AuditStream, PlatformAuditFilter,
    first_segment,
};
pub use audit_archive::{ArchiveStatement, AuditArchive, AuditArchiveQuery};
pub use audit_archive_file::{ArchiveFault, ArchiveVerifier, ArchiveWriter, ContentDigest};
pub use audit_checkpoint::{
    AuditCheckpoint, AuditCheckpointFilter, AuditCheckpointQuery, InstallationStatement,
    MAX_UNCHECKED_ENTRIES, MAX_UNCHECKED_TIME,
};
pub use audit_seal::{
    AuditChain, AuditHead, AuditHeadQuery, AuditSeal, AuditSealQuery, GENESIS, link_hash,
};
pub use change_event::ChangeEvent;
pub use idempotency::{IdempotencyQuery, RESPONSE_LIFETIME, StoredResponse};
pub use mail_quota::{ExceededRate, MailQuota, MailQuotaQuery, MailRate};
pub use maintenance_lease::{MaintenanceLease, MaintenanceLeaseQuery};
pub use outbox::{MAIL_TOPIC, OutboxMessage, OutboxQuery};
pub use webhook::{
    CreateWebhook, MAX_MESSAGE_BYTES, MAX_SECRETS, SealedWebhookSecret, UpdateWebhook, UrlTarget,
    Webhook, WebhookAttempt, WebhookDelivery, WebhookDeliveryEvent, WebhookDeliveryFilter,
    WebhookDeliveryQuery, WebhookDeliveryStatus, WebhookEvent, WebhookEventType, WebhookOutcome,
    WebhookQuery, WebhookRef, WebhookSecret, WebhookStatus, WebhookTargets, WebhookUrl,
    change_message, is_public, test_message,
};
