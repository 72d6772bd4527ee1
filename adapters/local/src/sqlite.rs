//! SQLite files: made whole in the staging folder, opened again by the typed stores.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use crate::data_dir::create_file;
use crate::error::{Result, blocking};

/// Marks a file as ours; shown by `file(1)` and `PRAGMA application_id`. The letters `core`.
const APPLICATION_ID: i64 = 1_668_248_165;

/// Makes a SQLite file with these tables and makes it durable.
pub(crate) async fn make(path: &Path, schema: &'static str) -> Result<()> {
    let path = path.to_owned();
    blocking(move || {
        // SQLite would make a file that everybody can read. The files it puts beside it take over the mode of this one.
        create_file(&path)?;
        let connection = connect(&path)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "application_id", APPLICATION_ID)?;
        connection.execute_batch(schema)?;
        // Closing writes the log back and removes it: one file is left.
        connection.close().map_err(|(_, error)| error)?;
        Ok(std::fs::File::open(&path)?.sync_all()?)
    })
    .await
}

/// An open SQLite file. One connection: whoever writes waits here, not in SQLite.
#[derive(Clone, Debug)]
pub(crate) struct Database(Arc<Mutex<Connection>>);

impl Database {
    /// Opens a SQLite file that exists.
    pub(crate) async fn open(path: &Path) -> Result<Self> {
        let path: PathBuf = path.to_owned();
        let connection = blocking(move || Ok(connect(&path)?)).await?;
        Ok(Self(Arc::new(Mutex::new(connection))))
    }

    /// Works with the connection away from the async threads.
    pub(crate) async fn run<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        let connection = Arc::clone(&self.0);
        blocking(move || {
            // A call that panicked has left no transaction behind: each statement is one of its own.
            let connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
            Ok(work(&connection)?)
        })
        .await
    }
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(Duration::from_secs(5))?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    Ok(connection)
}
