//! What every service needs of the records they share: the outbox, stored answers.

mod idempotency;
mod mail;
mod outbox;

pub use idempotency::{find_answer, remove_expired_answers, store_answer};
pub(in crate::use_case) use mail::queue_mail;
pub use mail::{MAIL_TOPIC, queued_mail};
pub(in crate::use_case) use outbox::send;
pub use outbox::{LoneRelay, Relayed, relay};
