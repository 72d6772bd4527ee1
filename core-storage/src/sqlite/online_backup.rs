//! Copies any SQLite database, also one that is in use.

use std::path::Path;

use core_domain::kernel::StoreError;
use rusqlite::{Connection, MAIN_DB, OpenFlags};

/// Copies a SQLite database with SQLite's online backup. The copy has the content of one moment, also if other processes
/// write to the database in the meantime. An existing file is replaced. The database can be any, not only one of the suite.
///
/// # Errors
/// [`StoreError::Unavailable`] if the database cannot be read or the copy cannot be written.
pub fn back_up(database: &Path, copy: &Path) -> Result<(), StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let source = Connection::open_with_flags(database, flags).map_err(StoreError::unavailable)?;
    let copied = source.backup(MAIN_DB, copy, None);
    copied.map_err(StoreError::unavailable)
}
