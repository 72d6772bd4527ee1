//! A message queue: a SQLite file with one table. Delivery is at least once.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use core_domain::kernel::Clock;
use sqlx::{Row, SqlitePool};

use crate::error::{LocalError, Result};
use crate::sqlite;

pub(crate) const FILE: &str = "messages.sqlite";
pub(crate) const SCHEMA: &str = "
    CREATE TABLE messages (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        body BLOB NOT NULL,
        visible_at INTEGER NOT NULL,
        attempts INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    CREATE INDEX messages_by_visibility ON messages (visible_at, id);";

/// The longest body, in bytes.
const MAX_BODY: usize = 128 * 1024;

/// An open queue. After the queue was removed, it keeps working on nothing.
#[derive(Clone, Debug)]
pub struct Queue {
    pool: SqlitePool,
    clock: Arc<dyn Clock>,
}

/// A message that was pulled: ours until its lease ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its number; a later message has a higher one.
    pub id: i64,
    /// What was pushed.
    pub body: Vec<u8>,
    /// How often it was pulled, this time counted.
    pub attempts: i64,
}

impl Queue {
    pub(crate) async fn open(path: &Path, clock: Arc<dyn Clock>) -> Result<Self> {
        let pool = sqlite::open(path).await?;
        Ok(Self { pool, clock })
    }

    /// Adds a message, durable when this returns; nobody sees it before `delay` is over. Answers its number.
    ///
    /// # Errors
    /// [`LocalError::Invalid`] when the body has more than 128 KiB.
    pub async fn push(&self, body: &[u8], delay: Duration) -> Result<i64> {
        if body.len() > MAX_BODY {
            return Err(LocalError::Invalid("the message is too long".to_owned()));
        }
        let id = sqlx::query_scalar(
            "INSERT INTO messages (body, visible_at) VALUES ($1, $2) RETURNING id",
        )
        .bind(body)
        .bind(self.clock.now().plus(delay).millis())
        .fetch_one(&self.pool)
        .await?;
        Ok(id)
    }

    /// Takes the messages that have waited longest. Each is hidden from others for `lease` and comes back after it
    /// unless it was acknowledged.
    ///
    /// # Errors
    /// [`LocalError`] when the file cannot be written.
    pub async fn pull(&self, limit: u32, lease: Duration) -> Result<Vec<Message>> {
        let now = self.clock.now();
        let rows = sqlx::query(
            "UPDATE messages SET visible_at = $1, attempts = attempts + 1
             WHERE id IN (SELECT id FROM messages WHERE visible_at <= $2 ORDER BY visible_at, id LIMIT $3)
             RETURNING id, body, attempts",
        )
        .bind(now.plus(lease).millis())
        .bind(now.millis())
        .bind(limit)
        .fetch_all(&self.pool)
        .await?;
        let mut messages = Vec::with_capacity(rows.len());
        for row in rows {
            messages.push(Message {
                id: row.try_get("id")?,
                body: row.try_get("body")?,
                attempts: row.try_get("attempts")?,
            });
        }
        // SQLite returns changed rows in no order.
        messages.sort_by_key(|message| message.id);
        Ok(messages)
    }

    /// Says that a message was dealt with: it never comes back. `false` when somebody else has pulled it since.
    ///
    /// # Errors
    /// [`LocalError`] when the file cannot be written.
    pub async fn ack(&self, message: &Message) -> Result<bool> {
        let done = sqlx::query("DELETE FROM messages WHERE id = $1 AND attempts = $2")
            .bind(message.id)
            .bind(message.attempts)
            .execute(&self.pool)
            .await?;
        Ok(done.rows_affected() > 0)
    }

    /// Gives a message back; it can be pulled again after `delay`. `false` when somebody else has pulled it since.
    ///
    /// # Errors
    /// [`LocalError`] when the file cannot be written.
    pub async fn release(&self, message: &Message, delay: Duration) -> Result<bool> {
        let done =
            sqlx::query("UPDATE messages SET visible_at = $1 WHERE id = $2 AND attempts = $3")
                .bind(self.clock.now().plus(delay).millis())
                .bind(message.id)
                .bind(message.attempts)
                .execute(&self.pool)
                .await?;
        Ok(done.rows_affected() > 0)
    }
}
