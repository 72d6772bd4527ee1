//! Restricts the SQL of scripts to what D1 allows, and to one database.

use rusqlite::Connection;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;

use super::d1_request::MAX_PARAMS;

/// The SQLite limits that D1 documents, with their values.
const LIMITS: [(Limit, i32); 7] = [
    // Length of a text, a blob or a row, in bytes.
    (Limit::SQLITE_LIMIT_LENGTH, 2_000_000),
    // Length of a statement, in bytes.
    (Limit::SQLITE_LIMIT_SQL_LENGTH, 100_000),
    (Limit::SQLITE_LIMIT_COLUMN, 100),
    (Limit::SQLITE_LIMIT_VARIABLE_NUMBER, MAX_PARAMS as i32),
    (Limit::SQLITE_LIMIT_FUNCTION_ARG, 32),
    // Length of a pattern of LIKE or GLOB, in bytes.
    (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 50),
    // `ATTACH` and `VACUUM INTO` would access other files.
    (Limit::SQLITE_LIMIT_ATTACHED, 0),
];

/// The pragmas that D1 allows. Other pragmas reveal paths, or change limits, files and the memory of the process.
const PRAGMAS: [&str; 19] = [
    "case_sensitive_like",
    // Required by full-text search.
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

/// Pragmas that scripts may read but not set.
const READ_ONLY_PRAGMAS: [&str; 2] = ["page_count", "page_size"];

/// Restricts a connection to the operations that scripts are allowed to use. Call it inside the transaction that runs
/// the script's statements.
pub(super) fn restrict(connection: &Connection) -> rusqlite::Result<()> {
    for (limit, value) in LIMITS {
        connection.set_limit(limit, value)?;
    }
    connection.authorizer(Some(authorize))
}

/// Removes the authorizer, so that the transaction can end.
pub(super) fn remove_authorizer(connection: &Connection) -> rusqlite::Result<()> {
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
