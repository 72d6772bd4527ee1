//! Restricts the SQL of scripts to what D1 allows, on one database.

use rusqlite::Connection;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;

use super::d1_request::MAX_PARAMS;

/// Limits of D1 for SQLite, each with its number.
const LIMITS: [(Limit, i32); 7] = [
    // A text, a blob or a row, in bytes.
    (Limit::SQLITE_LIMIT_LENGTH, 2_000_000),
    // A statement, in bytes.
    (Limit::SQLITE_LIMIT_SQL_LENGTH, 100_000),
    (Limit::SQLITE_LIMIT_COLUMN, 100),
    (Limit::SQLITE_LIMIT_VARIABLE_NUMBER, MAX_PARAMS as i32),
    (Limit::SQLITE_LIMIT_FUNCTION_ARG, 32),
    // A pattern of LIKE or GLOB, in bytes.
    (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 50),
    // `ATTACH` and `VACUUM INTO` would reach other files.
    (Limit::SQLITE_LIMIT_ATTACHED, 0),
];

/// The pragmas that D1 allows. Other pragmas show paths, or change limits, files and the memory of the process.
const PRAGMAS: [&str; 19] = [
    "case_sensitive_like",
    // Full-text search reads it.
    "data_version",
    "defer_foreign_keys",
    "foreign_key_check",
    "foreign_key_list",
    "foreign_keys",
    "function_list",
    "ignore_check_constraints",
    "index_info",
    "index_list",
    "index_xinfo",
    "legacy_alter_table",
    "optimize",
    "quick_check",
    "recursive_triggers",
    "reverse_unordered_selects",
    "table_info",
    "table_list",
    "table_xinfo",
];

/// Pragmas that may be read and not set.
const READ_ONLY_PRAGMAS: [&str; 2] = ["page_count", "page_size"];

/// Restricts a connection to what scripts may do. Call it within the transaction that the script's statements belong to.
pub(super) fn restrict(connection: &Connection) -> rusqlite::Result<()> {
    for (limit, value) in LIMITS {
        connection.set_limit(limit, value)?;
    }
    connection.authorizer(Some(authorize))
}

/// Lifts the restriction, so that the transaction can end.
pub(super) fn lift(connection: &Connection) -> rusqlite::Result<()> {
    connection.authorizer(None::<fn(AuthContext<'_>) -> Authorization>)
}

fn authorize(context: AuthContext<'_>) -> Authorization {
    let is_allowed = match context.action {
        AuthAction::Pragma {
            pragma_name,
            pragma_value,
        } => {
            let is = |name: &&str| name.eq_ignore_ascii_case(pragma_name);
            PRAGMAS.iter().any(is) || (pragma_value.is_none() && READ_ONLY_PRAGMAS.iter().any(is))
        }
        AuthAction::Function { function_name } => {
            !function_name.eq_ignore_ascii_case("load_extension")
        }
        AuthAction::Attach { .. }
        | AuthAction::Detach { .. }
        | AuthAction::Transaction { .. }
        | AuthAction::Savepoint { .. }
        | AuthAction::Unknown { .. } => false,
        _ => true,
    };
    if is_allowed {
        Authorization::Allow
    } else {
        Authorization::Deny
    }
}
