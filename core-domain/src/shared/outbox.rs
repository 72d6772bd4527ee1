//! The outbox. Messages for other systems are written in the unit of work of the change that causes them.

use serde_json::Value;

#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::{count, json};
use crate::kernel::{OutboxId, Timestamp, record};

/// The topic of mails. They are sent by the installation's [`Mailer`](crate::port::Mailer); all other messages go to
/// its outlet.
pub const MAIL_TOPIC: &str = "mail";

/// A message that waits for delivery.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct OutboxMessage {
    /// Unique id of the message. A receiver may get a message twice and must use the id to detect this.
    pub id: OutboxId,
    /// The type of the message, for example `platform.status`.
    pub topic: String,
    /// The content of the message; its members depend on the topic.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "json()"))]
    pub payload: Value,
    /// Number of delivery attempts, including one in progress.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub attempts: i64,
    /// The earliest time of the next attempt. While an attempt is in progress, the time at which its claim expires.
    pub run_at: Timestamp,
    /// The time at which the message was written.
    pub created_at: Timestamp,
}

record! {
    OutboxMessage as "outbox message" by id, asked OutboxQuery;
}

/// Queries for outbox messages.
#[derive(Clone, Debug, PartialEq)]
pub enum OutboxQuery {
    /// The messages for the outlet that are due at this time, longest due first.
    DueAt(Timestamp),
    /// The mails that are due at this time, longest due first.
    MailDueAt(Timestamp),
    /// The messages with these ids.
    WithIds(Vec<OutboxId>),
}
