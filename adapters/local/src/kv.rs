//! A key-value namespace: a SQLite file with one table.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use core_domain::kernel::Clock;
use rusqlite::{Connection, OptionalExtension, params};

use crate::error::{LocalError, Result};
use crate::sqlite::Database;

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
    database: Database,
    clock: Arc<dyn Clock>,
}

impl KvNamespace {
    pub(crate) async fn open(path: &Path, clock: Arc<dyn Clock>) -> Result<Self> {
        let database = Database::open(path).await?;
        Ok(Self { database, clock })
    }

    /// The value of a key; `None` when it has none or the value has expired.
    ///
    /// # Errors
    /// [`LocalError`] when the file cannot be read.
    pub async fn get(&self, key: &str) -> Result<Option<Vec<u8>>> {
        let (key, now) = (key.to_owned(), self.clock.now().millis());
        let query =
            "SELECT value FROM entries WHERE key = ?1 AND (expires_at IS NULL OR expires_at > ?2)";
        let get = move |connection: &Connection| {
            let mut statement = connection.prepare_cached(query)?;
            let value = statement.query_row(params![key, now], |row| row.get(0));
            value.optional()
        };
        self.database.run(get).await
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
        let expires_at = lifetime.map(|lifetime| now.plus(lifetime).millis());
        let (key, value) = (key.to_owned(), value.to_vec());
        let put = move |connection: &Connection| {
            connection
                .prepare_cached("DELETE FROM entries WHERE expires_at <= ?1")?
                .execute([now.millis()])?;
            let upsert = "INSERT INTO entries (key, value, expires_at) VALUES (?1, ?2, ?3)
                 ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at";
            let mut statement = connection.prepare_cached(upsert)?;
            statement.execute(params![key, value, expires_at])
        };
        self.database.run(put).await.map(drop)
    }

    /// Removes a key; `false` when it had no value.
    ///
    /// # Errors
    /// [`LocalError`] when the file cannot be written.
    pub async fn delete(&self, key: &str) -> Result<bool> {
        let key = key.to_owned();
        let delete = move |connection: &Connection| {
            let mut statement = connection.prepare_cached("DELETE FROM entries WHERE key = ?1")?;
            statement.execute([key])
        };
        Ok(self.database.run(delete).await? > 0)
    }

    /// The first keys that begin with `prefix` and come after `after`, in byte order.
    ///
    /// # Errors
    /// [`LocalError`] when the file cannot be read.
    pub async fn list(&self, prefix: &str, after: &str, limit: u32) -> Result<Vec<String>> {
        let (prefix, after) = (prefix.to_owned(), after.to_owned());
        let now = self.clock.now().millis();
        let query = "SELECT key FROM entries
             WHERE key > ?1 AND key >= ?2 AND substr(key, 1, length(?2)) = ?2
               AND (expires_at IS NULL OR expires_at > ?3)
             ORDER BY key LIMIT ?4";
        let list = move |connection: &Connection| {
            let mut statement = connection.prepare_cached(query)?;
            let rows = statement.query_map(params![after, prefix, now, limit], |row| row.get(0))?;
            rows.collect()
        };
        self.database.run(list).await
    }
}
