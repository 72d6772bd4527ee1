//! SQLite files: made whole in the staging folder, opened again by the typed stores.

use std::path::Path;
use std::time::Duration;

use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{ConnectOptions, Connection};

use crate::data_dir::create_file;
use crate::error::{LocalError, Result, blocking};

/// Marks a file as ours; shown by `file(1)` and `PRAGMA application_id`. The letters `core`.
const APPLICATION_ID: &str = "1668248165";

/// Makes a SQLite file with these tables and makes it durable.
pub(crate) async fn make(path: &Path, schema: &'static str) -> Result<()> {
    // SQLite would make a file that everybody can read. The files it puts beside it take over the mode of this one.
    let file = path.to_owned();
    blocking(move || Ok(create_file(&file)?)).await?;
    let mut connection = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(false)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .pragma("application_id", APPLICATION_ID)
        .connect()
        .await?;
    sqlx::raw_sql(schema).execute(&mut connection).await?;
    // Closing writes the log back and removes it: one file is left.
    connection.close().await?;
    let path = path.to_owned();
    blocking(move || Ok(std::fs::File::open(path)?.sync_all()?)).await
}

/// Opens a SQLite file that exists. One connection: whoever writes waits here, not in SQLite.
pub(crate) async fn open(path: &Path) -> Result<SqlitePool> {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(false)
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(Duration::from_secs(5));
    SqlitePoolOptions::new()
        .max_connections(1)
        .connect_with(options)
        .await
        .map_err(LocalError::from)
}
