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

/// The longest key, in bytes.
const MAX_KEY: usize = 512;
/// The longest value, in bytes.
pub(crate) const MAX_VALUE: usize = 25 * 1024 * 1024;
/// The longest metadata, in bytes.
const MAX_METADATA: usize = 1024;
/// The most keys of one list.
pub(crate) const MAX_LIST: u32 = 1_000;

/// An open key-value namespace. After the namespace was removed, it keeps working on nothing.
#[derive(Clone, Debug)]
pub struct KvNamespace {
    database: Database,
    clock: Arc<dyn Clock>,
}

/// A value with what is known of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KvEntry {
    /// The value.
    pub value: Vec<u8>,
    /// What its writer noted with it, as JSON.
    pub metadata: Option<String>,
    /// When it is gone.
    pub expires_at: Option<Timestamp>,
}

/// A key with what is known of its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KvKey {
    /// The key itself.
    pub name: String,
    /// What its writer noted with it, as JSON.
    pub metadata: Option<String>,
    /// When it is gone.
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

    /// The value of a key; `None` when it has none or the value has expired.
    ///
    /// # Errors
    /// [`LocalError`] when the file cannot be read.
    pub async fn get(&self, key: &str) -> Result<Option<Vec<u8>>> {
        Ok(self.entry(key).await?.map(|entry| entry.value))
    }

    /// As [`KvNamespace::get`], with what is known of the value.
    ///
    /// # Errors
    /// [`LocalError`] when the file cannot be read.
    pub async fn entry(&self, key: &str) -> Result<Option<KvEntry>> {
        self.entry_within(key, |_| Ok(())).await
    }

    /// Returns the entry of a key. Reads the value only if `reserve` accepts its length in bytes.
    ///
    /// # Errors
    /// [`LocalError`] when the file cannot be read, and the error of `reserve`.
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
            // In one transaction, so that both see the same value.
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

    /// Gives a key a value, durable when this returns; it is gone after `lifetime`.
    ///
    /// # Errors
    /// As [`KvNamespace::put_entry`].
    pub async fn put(&self, key: &str, value: &[u8], lifetime: Option<Duration>) -> Result<()> {
        let entry = KvEntry {
            value: value.to_vec(),
            metadata: None,
            expires_at: lifetime.map(|lifetime| self.clock.now().plus(lifetime)),
        };
        self.put_entry(key, entry).await
    }

    /// Gives a key a value, durable when this returns.
    ///
    /// # Errors
    /// [`LocalError::Invalid`] when the key is empty, longer than 512 bytes or holds a zero byte. [`LocalError::Limit`] if
    /// the value is longer than 25 MiB, the metadata is longer than 1,024 bytes, or the namespace is full.
    pub async fn put_entry(&self, key: &str, entry: KvEntry) -> Result<()> {
        if key.is_empty() || key.len() > MAX_KEY || key.contains('\0') {
            return Err(LocalError::Invalid(format!(
                "this is not a key of 1 to {MAX_KEY} bytes: {key:.100?}"
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
            // Many may have expired: a call deletes some of them.
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

    /// The first keys that begin with `prefix` and come after `after`, in byte order; at most 1,000.
    ///
    /// # Errors
    /// [`LocalError`] when the file cannot be read.
    pub async fn list(&self, prefix: &str, after: &str, limit: u32) -> Result<Vec<String>> {
        let keys = self.keys(prefix, after, limit).await?;
        Ok(keys.into_iter().map(|key| key.name).collect())
    }

    /// As [`KvNamespace::list`], with what is known of the values.
    ///
    /// # Errors
    /// [`LocalError`] when the file cannot be read.
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
                // The keys with one prefix lie together.
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

/// Namespaces that were made before values had metadata get the column for it.
fn add_metadata(connection: &Connection) -> rusqlite::Result<()> {
    let query = "SELECT 1 FROM pragma_table_info('entries') WHERE name = 'metadata'";
    if connection.prepare(query)?.exists([])? {
        return Ok(());
    }
    // Somebody else may be at it.
    let change = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    if !change.prepare(query)?.exists([])? {
        change.execute("ALTER TABLE entries ADD COLUMN metadata TEXT", [])?;
    }
    change.commit()
}
