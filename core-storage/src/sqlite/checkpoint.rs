//! Checkpoints: the write-ahead log is copied into the database on a thread of its own, beside the writer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::thread::JoinHandle;
use std::time::Duration;

use core_domain::kernel::StoreError;
use rusqlite::Connection;

use super::connection::BUSY_TIMEOUT;

/// Copies what no reader needs any more, without waiting for anybody.
const COPY: &str = "PRAGMA wal_checkpoint(PASSIVE)";
/// Waits until nobody reads from the log, as well.
const RESTART: &str = "PRAGMA wal_checkpoint(RESTART)";
/// After how many changed rows the log is copied; a row changes one or two pages with its indexes.
const ROWS: u64 = 2_000;
/// A log of so many pages (32 MiB) does not start over by itself, because there is always somebody who reads from it; every
/// read looks through all of it. The writer waits until it can.
const MAX_PAGES: i64 = 8_192;
/// How long the writer waits for those who still read from the log. Who reads for longer keeps it growing until they are
/// done.
const RESTART_TIMEOUT: Duration = Duration::from_millis(50);

/// Asks for checkpoints. Dropping it waits for the thread.
pub(super) struct Checkpoints {
    wake: Option<SyncSender<()>>,
    log_is_long: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// How many rows the writer had changed at the last checkpoint.
    rows: u64,
}

impl Checkpoints {
    pub(super) fn start(connection: Connection) -> Result<Self, StoreError> {
        // Room for one request: those that come during a checkpoint are one.
        let (wake, woken) = mpsc::sync_channel(1);
        let log_is_long = Arc::new(AtomicBool::new(false));
        let is_long = log_is_long.clone();
        let thread = std::thread::Builder::new().name("core-sqlite-checkpoint".to_owned());
        let thread = thread.spawn(move || {
            while woken.recv().is_ok() {
                let pages = checkpoint(&connection, COPY).unwrap_or(0);
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

    /// To be called after each commit, while no transaction of the writer is open.
    pub(super) fn after_commit(&mut self, writer: &Connection) {
        if self.log_is_long.swap(false, Ordering::SeqCst) {
            // Nobody writes meanwhile. A failure leaves the log as it is: it is tried again after the next checkpoint.
            let _ = restart(writer);
        }
        let rows = writer.total_changes();
        if rows.wrapping_sub(self.rows) < ROWS {
            return;
        }
        self.rows = rows;
        let _ = self.wake.as_ref().map(|wake| wake.try_send(()));
    }
}

impl Drop for Checkpoints {
    fn drop(&mut self) {
        // Without a sender the thread ends.
        self.wake = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Runs a checkpoint; tells how many pages the log has.
fn checkpoint(connection: &Connection, pragma: &str) -> Result<i64, rusqlite::Error> {
    connection.query_row(pragma, [], |row| row.get(1))
}

/// Copies all of the log, so that the next commit writes it from its beginning. Those who begin to read meanwhile do not
/// need it.
fn restart(writer: &Connection) -> Result<(), rusqlite::Error> {
    writer.busy_timeout(RESTART_TIMEOUT)?;
    let restarted = checkpoint(writer, RESTART);
    writer.busy_timeout(BUSY_TIMEOUT)?;
    restarted.map(drop)
}
