//! The configuration of the store.

use std::sync::Arc;
use std::time::Duration;

use core_domain::kernel::Clock;
use core_storage::sql::migrations::MigrationOptions;
use core_storage::sql::postgres::SessionTimeouts;
use core_storage::{CursorKey, DEFAULT_PAGE_BYTES};
use sqlx::PgPool;

/// The configuration of the store.
#[derive(Clone)]
pub struct SqlxConfig {
    /// The pool of the host program. Its limits and its timeout for acquiring a connection apply to the suite as well.
    pub pool: PgPool,
    /// The source of `now`. Default: `None`, which is the clock of the database. Several processes on one database
    /// should use the default.
    pub clock: Option<Arc<dyn Clock>>,
    /// The key that signs cursors. All processes on the database must use the same key.
    pub cursor_key: CursorKey,
    /// The schema that contains the tables; created if it is missing. Lower-case letters, digits and `_`. Default:
    /// `None`, which is the default schema of the connection.
    pub schema: Option<String>,
    /// The timeouts that the server enforces in the transactions of the suite. A single read of one row or one page has
    /// no transaction; for it the settings of the host program apply.
    pub timeouts: SessionTimeouts,
    /// The extra time, in addition to the statement timeout, after which this process stops waiting for a reply and
    /// closes the connection. Default: 5 s. Without a statement timeout there is no limit.
    pub answer_margin: Duration,
    /// How long a unit that meets conflicts is run again, measured from its first run. Default: 10 s.
    pub retry_timeout: Duration,
    /// The byte budget of a page, see [`RecordStore::with_page_bytes`](core_storage::RecordStore::with_page_bytes). Its
    /// default is 1 MiB.
    pub page_bytes: usize,
    /// How migrations run. Default: those that have not run, when the store is opened.
    pub migrations: MigrationOptions,
}

impl std::fmt::Debug for SqlxConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The options of the pool contain the password.
        f.debug_struct("SqlxConfig")
            .field("clock", &self.clock)
            .field("schema", &self.schema)
            .finish_non_exhaustive()
    }
}

impl SqlxConfig {
    /// Creates the default configuration for the pool, with the database's clock.
    pub fn new(pool: PgPool, cursor_key: impl Into<CursorKey>) -> Self {
        Self {
            pool,
            clock: None,
            cursor_key: cursor_key.into(),
            schema: None,
            timeouts: SessionTimeouts::default(),
            answer_margin: Duration::from_secs(5),
            retry_timeout: Duration::from_secs(10),
            page_bytes: DEFAULT_PAGE_BYTES,
            migrations: MigrationOptions::default(),
        }
    }
}
