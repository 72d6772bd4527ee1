//! A key-value namespace: a SQLite file with one table.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use core_domain::kernel::Clock;
use sqlx::SqlitePool;

use crate::error::{LocalError, Result};
use crate::sqlite;

pub(crate) const FILE: &str = "entries.sqlite";
pub(crate) const SCHEMA: &str = "
    CREATE TABLE entries (
        key TEXT PRIMARY KEY,
        value BLOB NOT NULL,
        expires_at INTEGER
    ) STRICT;
    CREATE INDEX entries_by_expiry ON entries (expires_at) WHERE expires_at IS NOT NULL;";

/// The longest key, in bytes.
const MAX_KEY: usize = 512;

/// An open key-value namespace. After the namespace was removed, it keeps working on nothing.
#[derive(Clone, Debug)]
pub struct KvNamespace {
    pool: SqlitePool,
    clock: Arc<dyn Clock>,
}

impl KvNamespace {
    pub(crate) async fn open(path: &Path, clock: Arc<dyn Clock>) -> Result<Self> {
        let pool = sqlite::open(path).await?;
        Ok(Self { pool, clock })
    }

    /// The value of a key; `None` when it has none or the value has expired.
    ///
    /// # Errors
    /// [`LocalError`] when the file cannot be read.
    pub async fn get(&self, key: &str) -> Result<Option<Vec<u8>>> {
        let value = sqlx::query_scalar(
            "SELECT value FROM entries WHERE key = $1 AND (expires_at IS NULL OR expires_at > $2)",
        )
        .bind(key)
        .bind(self.clock.now().millis())
        .fetch_optional(&self.pool)
        .await?;
        Ok(value)
    }

    /// Gives a key a value, durable when this returns; it is gone after `lifetime`.
    ///
    /// # Errors
    /// [`LocalError::Invalid`] when the key is empty, longer than 512 bytes or holds a zero byte.
    pub async fn put(&self, key: &str, value: &[u8], lifetime: Option<Duration>) -> Result<()> {
        if key.is_empty() || key.len() > MAX_KEY || key.contains('\0') {
            return Err(LocalError::Invalid(format!("{key:?} is not a key")));
        }
        let now = self.clock.now();
        sqlx::query("DELETE FROM entries WHERE expires_at <= $1")
            .bind(now.millis())
            .execute(&self.pool)
            .await?;
        sqlx::query(
            "INSERT INTO entries (key, value, expires_at) VALUES ($1, $2, $3)
             ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at",
        )
        .bind(key)
        .bind(value)
        .bind(lifetime.map(|lifetime| now.plus(lifetime).millis()))
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    /// Removes a key; `false` when it had no value.
    ///
    /// # Errors
    /// [`LocalError`] when the file cannot be written.
    pub async fn delete(&self, key: &str) -> Result<bool> {
        let done = sqlx::query("DELETE FROM entries WHERE key = $1")
            .bind(key)
            .execute(&self.pool)
            .await?;
        Ok(done.rows_affected() > 0)
    }

    /// The first keys that begin with `prefix` and come after `after`, in byte order.
    ///
    /// # Errors
    /// [`LocalError`] when the file cannot be read.
    pub async fn list(&self, prefix: &str, after: &str, limit: u32) -> Result<Vec<String>> {
        let keys = sqlx::query_scalar(
            "SELECT key FROM entries
             WHERE key > $1 AND key >= $2 AND substr(key, 1, length($2)) = $2
               AND (expires_at IS NULL OR expires_at > $3)
             ORDER BY key LIMIT $4",
        )
        .bind(after)
        .bind(prefix)
        .bind(self.clock.now().millis())
        .bind(limit)
        .fetch_all(&self.pool)
        .await?;
        Ok(keys)
    }
}
