//! The outbox: what must reach another service or the outside, written with the change that causes it.

use serde_json::Value;

#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::{count, json};
use crate::kernel::{OutboxId, Timestamp, record};

/// The topic of mails. They go to the installation's [`Mailer`](crate::port::Mailer), all others to its outlet.
pub const MAIL_TOPIC: &str = "mail";

/// A message waiting to leave the process.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct OutboxMessage {
    /// The message's id; the receiver may see it twice and must not act twice.
    pub id: OutboxId,
    /// What it is: `platform.status`.
    pub topic: String,
    /// What it says.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "json()"))]
    pub payload: Value,
    /// Failed deliveries so far.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub attempts: i64,
    /// Not to be tried before this instant.
    pub run_at: Timestamp,
    /// When it was written.
    pub created_at: Timestamp,
}

record! {
    OutboxMessage as "outbox message" by id, asked OutboxQuery;
}

/// Questions about outbox messages.
#[derive(Clone, Debug, PartialEq)]
pub enum OutboxQuery {
    /// Those for the outlet that may be sent at this instant, oldest first.
    DueAt(Timestamp),
    /// The mails that may be sent at this instant, oldest first.
    MailDueAt(Timestamp),
    /// Those with these ids.
    WithIds(Vec<OutboxId>),
}
