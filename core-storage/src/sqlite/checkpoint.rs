//! Checkpoints: a separate thread copies the write-ahead log into the database file while the writer continues.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::thread::JoinHandle;
use std::time::Duration;

use core_domain::kernel::StoreError;
use rusqlite::Connection;

use super::connection::BUSY_TIMEOUT;

/// Copies the pages that no reader needs any more, without waiting for readers.
const PASSIVE_CHECKPOINT: &str = "PRAGMA wal_checkpoint(PASSIVE)";
/// Also waits until no reader uses the log.
const RESTART_CHECKPOINT: &str = "PRAGMA wal_checkpoint(RESTART)";
/// The number of changed rows after which the log is copied. A row changes one or two pages, indexes included.
const ROWS_PER_CHECKPOINT: u64 = 2_000;
/// Maximum length of the log in pages (32 MiB). A longer log does not restart on its own, because some reader always
/// uses it, and every read searches all of it. The writer then waits until the log can restart.
const MAX_PAGES: i64 = 8_192;
/// The maximum time that the writer waits for readers of the log. A reader that takes longer keeps the log growing
/// until it ends.
const RESTART_TIMEOUT: Duration = Duration::from_millis(50);

/// Requests checkpoints. Dropping it waits for the thread.
pub(super) struct Checkpoints {
    wake: Option<SyncSender<()>>,
    log_is_long: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// The number of rows that the writer had changed at the last checkpoint.
    rows: u64,
}

impl Checkpoints {
    pub(super) fn start(connection: Connection) -> Result<Self, StoreError> {
        // One request can be queued; requests during a checkpoint are merged.
        let (wake, woken) = mpsc::sync_channel(1);
        let log_is_long = Arc::new(AtomicBool::new(false));
        let is_long = log_is_long.clone();
        let thread = std::thread::Builder::new().name("core-sqlite-checkpoint".to_owned());
        let thread = thread.spawn(move || {
            while woken.recv().is_ok() {
                let pages = checkpoint(&connection, PASSIVE_CHECKPOINT).unwrap_or(0);
                is_long.store(pages > MAX_PAGES, Ordering::SeqCst);
            }
        });
        Ok(Self {
            wake: Some(wake),
            log_is_long,
            thread: Some(thread.map_err(StoreError::unavailable)?),
            rows: 0,
        })
    }

    /// Must be called after each commit, while the writer has no open transaction.
    pub(super) fn after_commit(&mut self, writer: &Connection) {
        if self.log_is_long.swap(false, Ordering::SeqCst) {
            // No other unit writes at this time. After a failure the log stays long, and the next checkpoint requests
            // this again.
            let _ = restart(writer);
        }
        let rows = writer.total_changes();
        if rows.wrapping_sub(self.rows) < ROWS_PER_CHECKPOINT {
            return;
        }
        self.rows = rows;
        let _ = self.wake.as_ref().map(|wake| wake.try_send(()));
    }
}

impl Drop for Checkpoints {
    fn drop(&mut self) {
        // The thread ends when the sender is dropped.
        self.wake = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Runs a checkpoint. Returns the number of pages in the log.
fn checkpoint(connection: &Connection, pragma: &str) -> Result<i64, rusqlite::Error> {
    connection.query_row(pragma, [], |row| row.get(1))
}

/// Copies the whole log, so that the next commit starts writing at its beginning. Readers that start later do not need
/// the old log.
fn restart(writer: &Connection) -> Result<(), rusqlite::Error> {
    writer.busy_timeout(RESTART_TIMEOUT)?;
    let restarted = checkpoint(writer, RESTART_CHECKPOINT);
    writer.busy_timeout(BUSY_TIMEOUT)?;
    restarted.map(drop)
}
