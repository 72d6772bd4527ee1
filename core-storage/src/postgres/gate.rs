//! The gate of a database: a lock that write units share, and that a unit which moves a platform holds alone.
//!
//! It is a lock of a table, which the server takes before the snapshot of a transaction. So a unit that waited sees what the
//! holder of the gate changed. The lock is part of the transaction: it also works through a pooler, and a prepared
//! transaction keeps it.

use std::time::Duration;

use crate::cells::tables::HIDDEN;
use crate::sql::ddl::quote_ident;
use crate::sql::postgres::RunError;

/// The error code for a lock that is not available in time.
const LOCK_NOT_AVAILABLE: &str = "55P03";

/// Returns the statement of a unit that passes the gate.
pub(super) fn pass() -> String {
    lock("ROW SHARE")
}

/// Returns the statements of a unit that closes the gate. Units that only read the table do not wait.
pub(super) fn close(max_wait: Duration) -> String {
    // With 0, the server would wait without a limit.
    let millis = max_wait.as_millis().max(1);
    format!("SET LOCAL lock_timeout = {millis}; {}", lock("EXCLUSIVE"))
}

/// Returns whether the gate could not be closed in time.
pub(super) fn is_busy(error: &RunError) -> bool {
    matches!(error, RunError::Driver(error) if error.sqlstate() == Some(LOCK_NOT_AVAILABLE))
}

fn lock(mode: &str) -> String {
    format!("LOCK TABLE {} IN {mode} MODE", quote_ident(HIDDEN.name))
}
