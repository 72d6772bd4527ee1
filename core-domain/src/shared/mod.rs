//! Records that belong to no single service: the audit, the outbox, idempotency keys.

mod audit;
mod idempotency;
mod outbox;

pub use audit::{AuditEntry, AuditFilter, AuditQuery, AuditStream, PlatformAuditFilter};
pub use idempotency::{IdempotencyKey, IdempotencyQuery, KEPT_FOR};
pub use outbox::{MAIL_TOPIC, OutboxMessage, OutboxQuery};
