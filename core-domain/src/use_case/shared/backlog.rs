//! The backlog of messages, mails, webhooks and audit entries, for metrics.

use std::time::Duration;

use crate::access::unowned_records;
use crate::kernel::{Record, Result, Stored, Timestamp, Unowned};
use crate::port::{Persisted, UnitOfWork};
use crate::shared::{
    AuditEntry, OutboxMessage, OutboxQuery, WebhookDelivery, WebhookDeliveryQuery,
};

/// The number of records whose age is read. They are those that are due next.
const MAX_READ_RECORDS: u32 = 20;

/// The records of a queue that are not delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueBacklog {
    /// The number of records.
    pub pending: u64,
    /// The age of the oldest record, among the 20 that are due next. Zero if there is none.
    pub oldest: Duration,
}

/// The backlogs of all queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeliveryBacklog {
    /// Messages for the outlet.
    pub outbox: QueueBacklog,
    /// Mails that the mailer has not accepted.
    pub mails: QueueBacklog,
    /// Messages to webhooks.
    pub webhooks: QueueBacklog,
}

/// Reads the backlogs of all queues. Every query uses an index and reads only records that are not delivered.
///
/// # Errors
/// Only those of the store.
pub async fn delivery_backlog(uow: &mut dyn UnitOfWork) -> Result<DeliveryBacklog> {
    let ever = Timestamp::from_millis(i64::MAX);
    let of_message = |message: &OutboxMessage| message.created_at;
    let webhooks = WebhookDeliveryQuery::DueAt {
        now: ever,
        except: Vec::new(),
    };
    Ok(DeliveryBacklog {
        outbox: backlog(uow, &OutboxQuery::DueAt(ever), of_message).await?,
        mails: backlog(uow, &OutboxQuery::MailDueAt(ever), of_message).await?,
        webhooks: backlog(uow, &webhooks, |delivery: &WebhookDelivery| {
            delivery.created_at
        })
        .await?,
    })
}

async fn backlog<R>(
    uow: &mut dyn UnitOfWork,
    query: &R::Query,
    created_at: impl Fn(&R) -> Timestamp,
) -> Result<QueueBacklog>
where
    R: Persisted + Record<Owner = Unowned>,
{
    let now = uow.now().await?;
    let pending = unowned_records::<R>(uow).count(query).await?;
    let next = unowned_records::<R>(uow).list(query, MAX_READ_RECORDS);
    let next: Vec<Stored<R>> = next.await?;
    let ages = next.iter().map(|record| now.since(created_at(record)));
    Ok(QueueBacklog {
        pending,
        oldest: ages.max().unwrap_or_default(),
    })
}

/// Returns the age of the oldest audit entry that is not sealed; zero if all entries are sealed.
///
/// # Errors
/// Only those of the store.
pub async fn audit_lag(uow: &mut dyn UnitOfWork) -> Result<Duration> {
    let now = uow.now().await?;
    let waiting = unowned_records::<AuditEntry>(uow);
    let waiting = waiting.list_staged(MAX_READ_RECORDS).await?;
    // Damaged entries are never sealed.
    let entries = waiting.iter().filter_map(|staged| staged.record.as_ref());
    let ages = entries.map(|entry| now.since(entry.created_at));
    Ok(ages.max().unwrap_or_default())
}
