//! The configuration of the SQLite store.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use core_domain::kernel::Clock;

use crate::cursor::CursorKey;
use crate::page::DEFAULT_PAGE_BYTES;
use crate::sql::migrations::MigrationOptions;

/// When a commit is flushed to the disk (`PRAGMA synchronous`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Synchronous {
    /// Immediately: a commit survives a power failure.
    Full,
    /// At a checkpoint: a commit survives a crash of the process, but a power failure may undo the last commits.
    Normal,
}

/// The configuration of the SQLite store.
#[derive(Clone, Debug)]
pub struct SqliteConfig {
    /// The database file. It is created if missing, readable and writable only by its owner (0600). The write-ahead
    /// log, the index of the log and a lock file, which excludes other processes, are next to it and have the same
    /// permissions. Existing files keep their permissions.
    pub path: PathBuf,
    /// The source of `now`.
    pub clock: Arc<dyn Clock>,
    /// The key that signs cursors.
    pub cursor_key: CursorKey,
    /// When a commit is flushed to the disk. Default: `Full`.
    pub synchronous: Synchronous,
    /// The maximum number of concurrent read units. Default: 4. Minimum: 1.
    pub readers: u32,
    /// The maximum time that a unit waits for its turn to write, or for a connection to read. Default: 10 s.
    pub acquire_timeout: Duration,
    /// The time after which an unlimited read, such as a count or a walk, is interrupted. Default: 20 s.
    pub read_timeout: Duration,
    /// The byte budget of a page, see [`RecordStore::with_page_bytes`](crate::RecordStore::with_page_bytes). Its
    /// default is 1 MiB.
    pub page_bytes: usize,
    /// How migrations run. Default: those that have not run, when the store is opened.
    pub migrations: MigrationOptions,
}

impl SqliteConfig {
    /// Creates the default configuration: a durable store in the file.
    pub fn new(
        path: impl Into<PathBuf>,
        clock: Arc<dyn Clock>,
        cursor_key: impl Into<CursorKey>,
    ) -> Self {
        Self {
            path: path.into(),
            clock,
            cursor_key: cursor_key.into(),
            synchronous: Synchronous::Full,
            readers: 4,
            acquire_timeout: Duration::from_secs(10),
            read_timeout: Duration::from_secs(20),
            page_bytes: DEFAULT_PAGE_BYTES,
            migrations: MigrationOptions::default(),
        }
    }
}
