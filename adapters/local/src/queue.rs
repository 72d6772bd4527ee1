//! A message queue: a SQLite file with one table. Delivery is at least once.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use core_domain::kernel::Clock;
use rusqlite::{Connection, Row, Transaction, TransactionBehavior, params};

use crate::error::{LocalError, Result};
use crate::execution::Execution;
use crate::sqlite::Database;

pub(crate) const FILE: &str = "messages.sqlite";
pub(crate) const SCHEMA: &str = "
    CREATE TABLE messages (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        body BLOB NOT NULL,
        visible_at INTEGER NOT NULL,
        attempts INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    CREATE INDEX messages_by_visibility ON messages (visible_at, id);";

/// Keeps the number and the size of all messages, so that no call has to count them. The first call that opens a queue
/// of an older version adds the table.
const TOTALS: &str = "
    CREATE TABLE totals (messages INTEGER NOT NULL, bytes INTEGER NOT NULL) STRICT;
    INSERT INTO totals SELECT count(*), coalesce(sum(length(body)), 0) FROM messages;
    CREATE TRIGGER add_to_totals AFTER INSERT ON messages BEGIN
        UPDATE totals SET messages = messages + 1, bytes = bytes + length(new.body);
    END;
    CREATE TRIGGER subtract_from_totals AFTER DELETE ON messages BEGIN
        UPDATE totals SET messages = messages - 1, bytes = bytes - length(old.body);
    END;";

/// Maximum length of a message body, in bytes.
const MAX_BODY: usize = 128 * 1024;
/// Maximum number of messages in one push or pull.
pub(crate) const MAX_BATCH: usize = 100;
/// Maximum total length of the bodies of a batch, in bytes.
const MAX_BATCH_BYTES: usize = 256 * 1024;

/// An open queue. If the queue is deleted while it is open, calls continue to work on the deleted file.
#[derive(Clone, Debug)]
pub struct Queue {
    database: Database,
    clock: Arc<dyn Clock>,
}

/// A pulled message. No other consumer receives it until its lease expires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The id of the message; a later message has a higher id.
    pub id: i64,
    /// The body of the message as pushed.
    pub body: Vec<u8>,
    /// Number of times that the message was pulled, including this time.
    pub attempts: i64,
}

impl Queue {
    pub(crate) async fn open(
        path: &Path,
        execution: &Execution,
        clock: Arc<dyn Clock>,
    ) -> Result<Self> {
        let database = Database::open(path, execution).await?;
        database.run(add_totals).await?;
        Ok(Self { database, clock })
    }

    /// Adds a message and returns its id. It can be pulled after `delay`. The message is durable when this returns.
    ///
    /// # Errors
    /// [`LocalError::Invalid`] if the body is longer than 128 KiB.
    pub async fn push(&self, body: &[u8], delay: Duration) -> Result<i64> {
        self.push_all(vec![(body.to_vec(), delay)]).await
    }

    /// Adds all messages or none. Each message has its own delay. Returns the id of the last message.
    ///
    /// # Errors
    /// [`LocalError::Invalid`] if a body is longer than 128 KiB. [`LocalError::Limit`] if there are more than 100
    /// messages, if their bodies are longer than 256 KiB together, or if the queue is full.
    pub async fn push_all(&self, messages: Vec<(Vec<u8>, Duration)>) -> Result<i64> {
        if messages.iter().any(|(body, _)| body.len() > MAX_BODY) {
            let what = format!("a message is longer than {MAX_BODY} bytes");
            return Err(LocalError::Invalid(what));
        }
        if messages.len() > MAX_BATCH {
            let what = format!("a batch has more than {MAX_BATCH} messages");
            return Err(LocalError::Limit(what));
        }
        let bytes: usize = messages.iter().map(|(body, _)| body.len()).sum();
        if bytes > MAX_BATCH_BYTES {
            let what = format!("a batch has more than {MAX_BATCH_BYTES} bytes");
            return Err(LocalError::Limit(what));
        }
        let now = self.clock.now();
        let push = move |connection: &Connection| {
            let change = connection.unchecked_transaction()?;
            let insert = "INSERT INTO messages (body, visible_at) VALUES (?1, ?2)";
            for (body, delay) in messages {
                let visible_at = now.plus(delay).millis();
                change
                    .prepare_cached(insert)?
                    .insert(params![body, visible_at])?;
            }
            let last = change.last_insert_rowid();
            change.commit()?;
            Ok::<_, rusqlite::Error>(last)
        };
        self.database.run(push).await
    }

    /// Returns the number of messages and the total length of their bodies in bytes.
    ///
    /// # Errors
    /// [`LocalError::Sqlite`] if the file cannot be read.
    pub async fn backlog(&self) -> Result<(u64, u64)> {
        let count = "SELECT messages, bytes FROM totals";
        let count = |connection: &Connection| {
            connection.query_row(count, [], |row| Ok((row.get(0)?, row.get(1)?)))
        };
        let (count, bytes): (i64, i64) = self.database.run(count).await?;
        Ok((count.unsigned_abs(), bytes.unsigned_abs()))
    }

    /// Pulls the messages that have waited longest, at most 100. Each is hidden from other consumers for `lease`. It
    /// becomes visible again afterwards unless it is acknowledged.
    ///
    /// # Errors
    /// [`LocalError::Sqlite`] if the file cannot be written.
    pub async fn pull(&self, limit: u32, lease: Duration) -> Result<Vec<Message>> {
        let now = self.clock.now();
        let until = now.plus(lease).millis();
        let limit = limit.min(MAX_BATCH as u32);
        let update = "UPDATE messages SET visible_at = ?1, attempts = attempts + 1
             WHERE id IN (SELECT id FROM messages WHERE visible_at <= ?2 ORDER BY visible_at, id LIMIT ?3)
             RETURNING id, body, attempts";
        let pull = move |connection: &Connection| {
            let mut statement = connection.prepare_cached(update)?;
            let rows = statement.query_map(params![until, now.millis(), limit], parse_row)?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        };
        let mut messages = self.database.run(pull).await?;
        // SQLite returns changed rows in no particular order.
        messages.sort_by_key(|message| message.id);
        Ok(messages)
    }

    /// Acknowledges a message: deletes it from the queue. Returns `false` if another consumer has pulled it since.
    ///
    /// # Errors
    /// [`LocalError::Sqlite`] if the file cannot be written.
    pub async fn ack(&self, message: &Message) -> Result<bool> {
        let (id, attempts) = (message.id, message.attempts);
        let ack = move |connection: &Connection| {
            let delete = "DELETE FROM messages WHERE id = ?1 AND attempts = ?2";
            connection.prepare_cached(delete)?.execute([id, attempts])
        };
        Ok(self.database.run(ack).await? > 0)
    }

    /// Releases a message: it can be pulled again after `delay`. Returns `false` if another consumer has pulled it
    /// since.
    ///
    /// # Errors
    /// [`LocalError::Sqlite`] if the file cannot be written.
    pub async fn release(&self, message: &Message, delay: Duration) -> Result<bool> {
        let visible_at = self.clock.now().plus(delay).millis();
        let (id, attempts) = (message.id, message.attempts);
        let release = move |connection: &Connection| {
            let update = "UPDATE messages SET visible_at = ?1 WHERE id = ?2 AND attempts = ?3";
            connection
                .prepare_cached(update)?
                .execute([visible_at, id, attempts])
        };
        Ok(self.database.run(release).await? > 0)
    }
}

/// Adds the table of totals to a queue that has none.
fn add_totals(connection: &Connection) -> rusqlite::Result<()> {
    let query = "SELECT 1 FROM sqlite_schema WHERE name = 'totals'";
    if connection.prepare(query)?.exists([])? {
        return Ok(());
    }
    // Another connection may add them at the same time.
    let change = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    if !change.prepare(query)?.exists([])? {
        change.execute_batch(TOTALS)?;
    }
    change.commit()
}

fn parse_row(row: &Row<'_>) -> rusqlite::Result<Message> {
    Ok(Message {
        id: row.get("id")?,
        body: row.get("body")?,
        attempts: row.get("attempts")?,
    })
}
