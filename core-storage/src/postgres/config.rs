//! What the store needs to know.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use core_domain::kernel::Clock;

use crate::cursor::CursorKey;
use crate::page::DEFAULT_PAGE_BYTES;

/// What the Postgres store needs.
#[derive(Clone)]
pub struct PostgresConfig {
    /// `postgres://user:password@host:port/database`. `sslmode` and `sslrootcert` in it mean what they mean to libpq; TLS
    /// needs the feature `postgres-tls`.
    pub url: String,
    /// Where `now` comes from; the database itself unless given. Several processes should leave it to the database.
    pub clock: Option<Arc<dyn Clock>>,
    /// What cursors are signed with; the same in every process on the database.
    pub cursor_key: CursorKey,
    /// How many connections at the most. 16 unless set.
    pub connections: u32,
    /// The schema of the tables, created if missing: small letters, digits and `_`. That of the connection unless set.
    pub schema: Option<String>,
    /// A file of certificates (PEM) that the server's certificate must come from, instead of those that the address names
    /// or the system trusts.
    pub root_certificates: Option<PathBuf>,
    /// How long a unit waits for a connection. 10 s unless set: less than a request waits for its answer.
    pub acquire_timeout: Duration,
    /// `statement_timeout`: how long a statement may take; zero is for ever. 20 s unless set. Migrations have no limit.
    pub statement_timeout: Duration,
    /// `lock_timeout`: how long a statement waits for a lock, after which its unit is run again. 5 s unless set.
    pub lock_timeout: Duration,
    /// `idle_in_transaction_session_timeout`: after which silence of this process the server gives up a transaction, and
    /// its locks. 30 s unless set.
    pub idle_timeout: Duration,
    /// The byte budget of a page, see [`RecordStore::with_page_bytes`](crate::RecordStore::with_page_bytes).
    pub page_bytes: usize,
}

impl std::fmt::Debug for PostgresConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The address may hold a password.
        f.debug_struct("PostgresConfig")
            .field("clock", &self.clock)
            .field("connections", &self.connections)
            .field("schema", &self.schema)
            .finish_non_exhaustive()
    }
}

impl PostgresConfig {
    /// A store in the database, with the database's clock.
    pub fn new(url: impl Into<String>, cursor_key: impl Into<CursorKey>) -> Self {
        Self {
            url: url.into(),
            clock: None,
            cursor_key: cursor_key.into(),
            connections: 16,
            schema: None,
            root_certificates: None,
            acquire_timeout: Duration::from_secs(10),
            statement_timeout: Duration::from_secs(20),
            lock_timeout: Duration::from_secs(5),
            idle_timeout: Duration::from_secs(30),
            page_bytes: DEFAULT_PAGE_BYTES,
        }
    }
}
