//! Records that belong to no single service: the audit, the outbox, idempotency keys.

mod audit;
mod idempotency;
mod outbox;

pub use audit::{AuditEntry, AuditQuery, Happening, audited};
pub use idempotency::{IdempotencyKey, IdempotencyQuery, KEPT_FOR, forget_expired_keys};
pub use outbox::{OutboxMessage, OutboxQuery, send};
