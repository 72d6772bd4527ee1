//! The statements that open a unit of work.

use core_domain::port::Mode;

use crate::sql::Dialect;

const SERIALIZABLE: &str = "BEGIN ISOLATION LEVEL SERIALIZABLE";
/// Units of this mode run few statements, always the same. A generic plan is made once for a connection instead of for
/// every run, which takes as long as the statement itself. The text contains what the plan depends on: limits, and the
/// values of index predicates. A plan that was made while a table was small must stay good when it is large, so only
/// plain index scans are allowed.
const READ_COMMITTED: &str = "BEGIN ISOLATION LEVEL READ COMMITTED; \
     SET LOCAL plan_cache_mode = force_generic_plan; SET LOCAL enable_bitmapscan = off; \
     SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off";
const SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// Returns the statements that open a unit of this mode; `None` for [`Mode::Auto`], which has no transaction.
#[must_use]
pub const fn begin(mode: Mode) -> Option<&'static str> {
    match mode {
        Mode::Auto => None,
        Mode::Read => Some(SNAPSHOT),
        Mode::Write => Some(SERIALIZABLE),
        Mode::ReadCommitted => Some(READ_COMMITTED),
    }
}

/// Returns the query for the time of the transaction, in milliseconds since the Unix epoch.
#[must_use]
pub const fn now() -> &'static str {
    Dialect::Postgres.now()
}
