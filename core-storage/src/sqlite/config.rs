//! How a SQLite store is opened.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use core_domain::kernel::Clock;

use crate::cursor::CursorKey;
use crate::page::DEFAULT_PAGE_BYTES;

/// `PRAGMA synchronous`: when a commit is flushed to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Synchronous {
    /// At once: a commit survives a loss of power.
    Full,
    /// At a checkpoint: a commit survives a crash of the process, but a loss of power may undo the last ones.
    Normal,
}

/// What the SQLite store needs.
#[derive(Clone, Debug)]
pub struct SqliteConfig {
    /// The database file; created if missing, for its owner alone (0600). Beside it are its write-ahead log, the log's
    /// index and a lock file that keeps other processes out, with the same permissions. What exists keeps its own.
    pub path: PathBuf,
    /// Where `now` comes from.
    pub clock: Arc<dyn Clock>,
    /// What cursors are signed with.
    pub cursor_key: CursorKey,
    /// What a commit survives.
    pub synchronous: Synchronous,
    /// How many units can read at once.
    pub readers: u32,
    /// The time that a unit waits for its turn to write, or for a connection to read on. Default: 10 s.
    pub acquire_timeout: Duration,
    /// The time after which a read without a limit is interrupted, such as a count or a walk. Default: 20 s.
    pub read_timeout: Duration,
    /// The byte budget of a page, see [`RecordStore::with_page_bytes`](crate::RecordStore::with_page_bytes).
    pub page_bytes: usize,
}

impl SqliteConfig {
    /// A durable store in the file.
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
        }
    }
}
