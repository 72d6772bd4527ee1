//! The gate of a Postgres database: a lock that write units share, and that a unit which moves a platform holds alone.
//!
//! It is a lock of a table, which the server takes before the snapshot of a transaction. So a unit that waited sees what the
//! holder of the gate changed. The lock is part of the transaction: it also works through a pooler, and a prepared
//! transaction keeps it.

use super::ddl::quote_ident;
use crate::cells::tables::HIDDEN;

/// Returns the statement of a unit that passes the gate.
#[cfg(feature = "postgres")]
pub(crate) fn pass() -> String {
    lock("ROW SHARE")
}

/// Returns the statement of a unit that closes the gate. Units that only read the table do not wait.
pub(super) fn close() -> String {
    lock("EXCLUSIVE")
}

fn lock(mode: &str) -> String {
    format!("LOCK TABLE {} IN {mode} MODE", quote_ident(HIDDEN.name))
}
