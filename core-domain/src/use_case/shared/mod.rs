//! What every service needs of the records they share: the outbox, stored answers, webhooks.

mod dry_run;
mod due_queue;
mod idempotency;
mod mail;
mod mail_delivery;
mod mail_quota;
mod maintenance_lease;
mod outbox;
mod seal;
mod seal_installation;
mod sweep;
pub mod webhook;

pub use dry_run::record_dry_run;
pub use due_queue::claim_duration;
pub use idempotency::{find_answer, remove_expired_answers, store_answer};
pub use mail::queued_mail;
pub(in crate::use_case) use mail::{queue_decoy, queue_mail};
pub use mail_delivery::{ClaimedMail, MailFate, claim_mails, settle_mail};
pub use mail_quota::remove_expired_mail_quotas;
pub(in crate::use_case) use mail_quota::{MailPermit, MailSubject, take_mail};
pub use maintenance_lease::LeaseHolder;
pub(in crate::use_case) use outbox::send;
pub use outbox::{
    ClaimedMessage, LONGEST_HANDOVER, MessageOutcome, claim_messages, settle_messages,
};
pub use seal::{Sealed, seal, sign_due_checkpoints};
pub use seal_installation::sign_due_installation_checkpoint;
pub(in crate::use_case) use sweep::remove_first;
pub use sweep::{MAX_SLICE, RemoveSlice, Slice, sweep_slice};

pub use crate::shared::MAIL_TOPIC;
