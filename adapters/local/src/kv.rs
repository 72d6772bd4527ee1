//! A key-value namespace: a SQLite file with one table.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use core_domain::kernel::{Clock, Timestamp};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use crate::error::{LocalError, Result};
use crate::execution::Execution;
use crate::sqlite::Database;

pub(crate) const FILE: &str = "entries.sqlite";
pub(crate) const SCHEMA: &str = "
    CREATE TABLE entries (
        key TEXT PRIMARY KEY,
        value BLOB NOT NULL,
        expires_at INTEGER,
        metadata TEXT
    ) STRICT;
    CREATE INDEX entries_by_expiry ON entries (expires_at) WHERE expires_at IS NOT NULL;";

/// Maximum length of a key, in bytes.
const MAX_KEY_BYTES: usize = 512;
/// Maximum length of a value, in bytes.
pub(crate) const MAX_VALUE: usize = 25 * 1024 * 1024;
/// Maximum length of the metadata of a value, in bytes.
const MAX_METADATA: usize = 1024;
/// Maximum number of keys in one list.
pub(crate) const MAX_LIST: u32 = 1_000;

/// An open key-value namespace. If the namespace is deleted while it is open, calls continue to work on the deleted
/// file.
#[derive(Clone, Debug)]
pub struct KvNamespace {
    database: Database,
    clock: Arc<dyn Clock>,
}

/// A value with its metadata and expiry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KvEntry {
    /// The value as bytes.
    pub value: Vec<u8>,
    /// The metadata that the writer attached, as JSON.
    pub metadata: Option<String>,
    /// The time at which the value expires; `None` if it does not expire.
    pub expires_at: Option<Timestamp>,
}

/// A key with the metadata and expiry of its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KvKey {
    /// The key of the value.
    pub name: String,
    /// The metadata that the writer attached, as JSON.
    pub metadata: Option<String>,
    /// The time at which the value expires; `None` if it does not expire.
    pub expires_at: Option<Timestamp>,
}

impl KvNamespace {
    pub(crate) async fn open(
        path: &Path,
        execution: &Execution,
        clock: Arc<dyn Clock>,
    ) -> Result<Self> {
        let database = Database::open(path, execution).await?;
        database.run(add_metadata).await?;
        Ok(Self { database, clock })
    }

    /// Returns the value of a key; `None` if the key has no value or the value has expired.
    ///
    /// # Errors
    /// [`LocalError::Sqlite`] if the file cannot be read; [`LocalError::Limit`] if the call takes too long.
    pub async fn get(&self, key: &str) -> Result<Option<Vec<u8>>> {
        Ok(self.get_entry(key).await?.map(|entry| entry.value))
    }

    /// Returns the value of a key with its metadata and expiry; `None` if the key has no value or the value has
    /// expired.
    ///
    /// # Errors
    /// Those of [`KvNamespace::get`].
    pub async fn get_entry(&self, key: &str) -> Result<Option<KvEntry>> {
        self.entry_within(key, |_| Ok(())).await
    }

    /// Returns the entry of a key. Reads the value only if `reserve` accepts its length in bytes.
    ///
    /// # Errors
    /// Those of [`KvNamespace::get`], and the error of `reserve`.
    pub(crate) async fn entry_within(
        &self,
        key: &str,
        reserve: impl FnOnce(usize) -> Result<()> + Send + 'static,
    ) -> Result<Option<KvEntry>> {
        let (key, now) = (key.to_owned(), self.clock.now().millis());
        let length = "SELECT length(value) FROM entries
             WHERE key = ?1 AND (expires_at IS NULL OR expires_at > ?2)";
        let query = "SELECT value, metadata, expires_at FROM entries WHERE key = ?1";
        let get = move |connection: &Connection| {
            // One transaction, so that both queries see the same value.
            let read = connection.unchecked_transaction()?;
            let length: Option<i64> = read
                .prepare_cached(length)?
                .query_row(params![key, now], |row| row.get(0))
                .optional()?;
            let Some(length) = length else {
                return Ok(None);
            };
            reserve(usize::try_from(length).unwrap_or(usize::MAX))?;
            let mut statement = read.prepare_cached(query)?;
            let entry = statement.query_row([key], |row| {
                Ok(KvEntry {
                    value: row.get(0)?,
                    metadata: row.get(1)?,
                    expires_at: row.get::<_, Option<i64>>(2)?.map(Timestamp::from_millis),
                })
            })?;
            Ok::<_, LocalError>(Some(entry))
        };
        self.database.run(get).await
    }

    /// Stores the value of a key; it expires after `lifetime`. The value is durable when this returns.
    ///
    /// # Errors
    /// Those of [`KvNamespace::put_entry`].
    pub async fn put(&self, key: &str, value: &[u8], lifetime: Option<Duration>) -> Result<()> {
        let entry = KvEntry {
            value: value.to_vec(),
            metadata: None,
            expires_at: lifetime.map(|lifetime| self.clock.now().plus(lifetime)),
        };
        self.put_entry(key, entry).await
    }

    /// Stores the value of a key with its metadata and expiry. The value is durable when this returns.
    ///
    /// # Errors
    /// [`LocalError::Invalid`] if the key is empty, longer than 512 bytes or contains a zero byte.
    /// [`LocalError::Limit`] if the value is longer than 25 MiB, the metadata is longer than 1,024 bytes, or the
    /// namespace is full.
    pub async fn put_entry(&self, key: &str, entry: KvEntry) -> Result<()> {
        if key.is_empty() || key.len() > MAX_KEY_BYTES || key.contains('\0') {
            return Err(LocalError::Invalid(format!(
                "a key has 1 to {MAX_KEY_BYTES} bytes and no zero byte: {key:.100?}"
            )));
        }
        if entry.value.len() > MAX_VALUE {
            let what = format!("the value is longer than {MAX_VALUE} bytes");
            return Err(LocalError::Limit(what));
        }
        let metadata_bytes = entry.metadata.as_ref().map_or(0, String::len);
        if metadata_bytes > MAX_METADATA {
            let what = format!("the metadata is longer than {MAX_METADATA} bytes");
            return Err(LocalError::Limit(what));
        }
        let (key, now) = (key.to_owned(), self.clock.now().millis());
        let put = move |connection: &Connection| {
            // Each call deletes at most 1,000 expired values, so that it stays fast.
            let delete = "DELETE FROM entries WHERE key IN
                 (SELECT key FROM entries WHERE expires_at <= ?1 LIMIT 1000)";
            connection.prepare_cached(delete)?.execute([now])?;
            let upsert = "INSERT INTO entries (key, value, expires_at, metadata) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT (key) DO UPDATE SET
                     value = excluded.value, expires_at = excluded.expires_at, metadata = excluded.metadata";
            let mut statement = connection.prepare_cached(upsert)?;
            let expires_at = entry.expires_at.map(Timestamp::millis);
            statement.execute(params![key, entry.value, expires_at, entry.metadata])
        };
        self.database.run(put).await.map(drop)
    }

    /// Deletes the value of a key. Returns whether the key had a value.
    ///
    /// # Errors
    /// [`LocalError::Sqlite`] if the file cannot be written; [`LocalError::Limit`] if the call takes too long.
    pub async fn delete(&self, key: &str) -> Result<bool> {
        let key = key.to_owned();
        let delete = move |connection: &Connection| {
            let mut statement = connection.prepare_cached("DELETE FROM entries WHERE key = ?1")?;
            statement.execute([key])
        };
        Ok(self.database.run(delete).await? > 0)
    }

    /// Returns the first keys that start with `prefix` and sort after `after`, in byte order; at most 1,000.
    ///
    /// # Errors
    /// Those of [`KvNamespace::get`].
    pub async fn list(&self, prefix: &str, after: &str, limit: u32) -> Result<Vec<String>> {
        let keys = self.keys(prefix, after, limit).await?;
        Ok(keys.into_iter().map(|key| key.name).collect())
    }

    /// Returns the same keys as [`KvNamespace::list`], with the metadata and expiry of their values.
    ///
    /// # Errors
    /// Those of [`KvNamespace::get`].
    pub async fn keys(&self, prefix: &str, after: &str, limit: u32) -> Result<Vec<KvKey>> {
        let (prefix, after) = (prefix.to_owned(), after.to_owned());
        let now = self.clock.now().millis();
        let limit = limit.min(MAX_LIST) as usize;
        let query = "SELECT key, metadata, expires_at FROM entries
             WHERE key > ?1 AND key >= ?2 AND (expires_at IS NULL OR expires_at > ?3)
             ORDER BY key";
        let list = move |connection: &Connection| {
            let mut statement = connection.prepare_cached(query)?;
            let mut rows = statement.query(params![after, prefix, now])?;
            let mut keys = Vec::new();
            while keys.len() < limit
                && let Some(row) = rows.next()?
            {
                let name: String = row.get(0)?;
                // Keys with the same prefix are adjacent in this order.
                if !name.starts_with(&prefix) {
                    break;
                }
                keys.push(KvKey {
                    name,
                    metadata: row.get(1)?,
                    expires_at: row.get::<_, Option<i64>>(2)?.map(Timestamp::from_millis),
                });
            }
            Ok::<_, rusqlite::Error>(keys)
        };
        self.database.run(list).await
    }
}

/// Adds the metadata column to namespaces of older versions.
fn add_metadata(connection: &Connection) -> rusqlite::Result<()> {
    let query = "SELECT 1 FROM pragma_table_info('entries') WHERE name = 'metadata'";
    if connection.prepare(query)?.exists([])? {
        return Ok(());
    }
    // Another connection may add the column at the same time.
    let change = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    if !change.prepare(query)?.exists([])? {
        change.execute("ALTER TABLE entries ADD COLUMN metadata TEXT", [])?;
    }
    change.commit()
}
