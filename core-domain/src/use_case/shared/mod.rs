//! What every service needs of the records they share: the outbox, stored answers, webhooks.

mod dry_run;
mod idempotency;
mod mail;
mod mail_delivery;
mod mail_quota;
mod outbox;
mod seal;
mod sweep;
pub mod webhook;

pub use dry_run::record_dry_run;
pub use idempotency::{find_answer, remove_expired_answers, store_answer};
pub use mail::queued_mail;
pub(in crate::use_case) use mail::{queue_decoy, queue_mail};
pub use mail_delivery::{ClaimedMail, LONGEST_HANDOVER, MailFate, claim_mails, settle_mail};
pub use mail_quota::remove_expired_mail_quotas;
pub(in crate::use_case) use mail_quota::{MailPermit, MailSubject, take_mail};
pub(in crate::use_case) use outbox::send;
pub use outbox::{LoneRelay, Relayed, relay};
pub use seal::{Sealed, seal, sign_due_checkpoints};
pub(in crate::use_case) use sweep::remove_expired_slice;

pub use crate::shared::MAIL_TOPIC;
