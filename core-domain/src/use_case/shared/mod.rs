//! Use cases for the records that all services share: audit seals, the outbox, mail, stored responses, maintenance
//! leases, webhooks and metered usage.

mod audit_archive;
mod backlog;
mod dry_run;
mod due_queue;
mod idempotency;
mod link_mail;
mod mail;
mod maintenance_lease;
mod outbox;
pub mod quota;
mod seal;
mod sweep;
pub mod usage;
pub mod webhook;

pub(in crate::use_case) use audit_archive::{ChainBase, chain_base, newest_archive};
pub use audit_archive::{archive_next_month, remove_archived};
pub use backlog::{DeliveryBacklog, QueueBacklog, audit_lag, delivery_backlog};
pub use dry_run::record_dry_run;
pub use due_queue::claim_duration;
pub use idempotency::{find_answer, remove_expired_answers, replace_answer, store_answer};
pub(in crate::use_case) use link_mail::LinkMail;
pub use mail::{
    ClaimedMail, MailOutcome, claim_mails, queued_mail, remove_expired_mail_quotas,
    store_mail_outcome,
};
pub(in crate::use_case) use mail::{
    MailPermit, MailSubject, check_mail_quotas, queue_decoy, queue_mail,
};
pub use maintenance_lease::LeaseHolder;
pub(in crate::use_case) use outbox::send;
pub use outbox::{
    ClaimedMessage, MAX_HANDOVER_TIME, MessageOutcome, claim_messages, store_message_outcomes,
};
pub use seal::{SealResult, seal, sign_due_checkpoints, sign_due_installation_checkpoint};
pub(in crate::use_case) use sweep::remove_first;
pub use sweep::{MAX_SLICE, RemoveSlice, Slice, sweep_slice};

pub use crate::shared::MAIL_TOPIC;
