//! SQLite files: created in the staging folder, and opened by the typed stores.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::data_dir::create_file;
use crate::error::{LocalError, Result, run_blocking};
use crate::execution::Execution;
use crate::limits::BindingLimits;

/// The application id of the provider's SQLite files, shown by `file(1)` and `PRAGMA application_id`. The ASCII letters
/// `core`.
const APPLICATION_ID: i64 = 1_668_248_165;

/// Number of SQLite virtual machine instructions between two checks of the clock: some tens of microseconds.
const STEPS_BETWEEN_CHECKS: i32 = 1_000;

/// Maximum number of pages in a SQLite file.
const MAX_PAGES: i64 = 4_294_967_294;

/// Creates a durable SQLite file with this schema.
pub(crate) async fn create_database(path: &Path, schema: &'static str) -> Result<()> {
    let path = path.to_owned();
    run_blocking(move || {
        // SQLite would create a file that every user can read. The files that SQLite creates next to it copy the mode
        // of this file.
        create_file(&path)?;
        let connection = connect(&path)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "application_id", APPLICATION_ID)?;
        connection.execute_batch(schema)?;
        // Closing writes the log back and deletes it: one file is left.
        connection.close().map_err(|(_, error)| error)?;
        Ok(std::fs::File::open(&path)?.sync_all()?)
    })
    .await
}

/// An open SQLite file with one connection. Concurrent calls wait for the connection here, not inside SQLite.
#[derive(Clone, Debug)]
pub(crate) struct Database {
    connection: Arc<Mutex<Connection>>,
    execution: Execution,
}

impl Database {
    /// Opens an existing SQLite file and limits its size to [`BindingLimits::database_bytes`].
    pub(crate) async fn open(path: &Path, execution: &Execution) -> Result<Self> {
        let path: PathBuf = path.to_owned();
        let max_bytes = i64::try_from(execution.limits.database_bytes).unwrap_or(i64::MAX);
        let open = move || {
            let connection = connect(&path)?;
            let page_bytes: i64 =
                connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
            // A file that is already larger keeps its size.
            let pages = (max_bytes / page_bytes.max(1)).clamp(1, MAX_PAGES);
            connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))?;
            Ok(connection)
        };
        let connection = execution.run(open).await?;
        Ok(Self {
            connection: Arc::new(Mutex::new(connection)),
            execution: execution.clone(),
        })
    }

    /// Runs work on the connection, off the async threads, for at most [`BindingLimits::call_timeout`]. Stops early if
    /// the caller drops the future.
    pub(crate) async fn run<T, E, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        E: Into<LocalError>,
        F: FnOnce(&Connection) -> Result<T, E> + Send + 'static,
    {
        let connection = Arc::clone(&self.connection);
        let limits = self.execution.limits;
        let abandoned = Arc::new(AtomicBool::new(false));
        let _guard = SetOnDrop(Arc::clone(&abandoned));
        let run = move || {
            // A call that panicked leaves no open transaction: transactions roll back on drop.
            let connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
            let started = Instant::now();
            let is_over = move || {
                abandoned.load(Ordering::Relaxed) || started.elapsed() >= limits.call_timeout
            };
            connection.progress_handler(STEPS_BETWEEN_CHECKS, Some(is_over))?;
            let done = work(&connection);
            connection.progress_handler(0, None::<fn() -> bool>)?;
            done.map_err(|error| to_limit_error(error.into(), limits))
        };
        self.execution.run(run).await
    }
}

/// Sets the flag on drop.
struct SetOnDrop(Arc<AtomicBool>);

impl Drop for SetOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Converts the errors with which SQLite stops at a limit into [`LocalError::Limit`].
fn to_limit_error(error: LocalError, limits: BindingLimits) -> LocalError {
    let code = match &error {
        LocalError::Sqlite(error) => error.sqlite_error_code(),
        _ => None,
    };
    match code {
        Some(ErrorCode::OperationInterrupted) => LocalError::Limit(format!(
            "the call took longer than {} seconds",
            limits.call_timeout.as_secs_f64()
        )),
        Some(ErrorCode::DiskFull) => LocalError::Limit(format!(
            "the database is full: the maximum is {} bytes",
            limits.database_bytes
        )),
        _ => error,
    }
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(Duration::from_secs(5))?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    Ok(connection)
}
