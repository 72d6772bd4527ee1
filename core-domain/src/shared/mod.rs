//! Records that belong to no single service: the audit, the outbox, idempotency keys.

mod audit;
mod change_event;
mod idempotency;
mod outbox;

pub use audit::{AuditEntry, AuditFilter, AuditQuery, AuditStream, PlatformAuditFilter};
pub use change_event::ChangeEvent;
pub use idempotency::{IdempotencyKey, IdempotencyQuery, KEPT_FOR};
pub use outbox::{MAIL_TOPIC, OutboxMessage, OutboxQuery};
