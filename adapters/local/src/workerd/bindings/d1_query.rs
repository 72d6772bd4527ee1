//! Execution of the statements of a script on a SQLite file.

use std::path::Path;
use std::time::Instant;

use rusqlite::fallible_iterator::FallibleIterator;
use rusqlite::{Batch, Connection, Transaction, TransactionBehavior};

use super::calls::Call;
use super::d1_guard;
use super::d1_request::Query;
use super::d1_result::{QueryMeta, Results, RowFormat};
use crate::error::{LocalError, Result};
use crate::execution::Execution;
use crate::sqlite::Database;

/// Runs all queries in one transaction and returns their results as JSON. An error rolls back all of them.
pub(super) async fn run(
    path: &Path,
    execution: &Execution,
    queries: Vec<Query>,
    form: RowFormat,
    call: Call,
) -> Result<Vec<u8>> {
    // The SQLite error would contain the path of the file, so it is hidden as the source of an I/O error.
    let database = Database::open(path, execution).await;
    let database = database.map_err(|error| LocalError::Io(std::io::Error::other(error)))?;
    let mut results = Results::new(form, execution.limits, call);
    let run = move |connection: &Connection| {
        let behavior = if is_read_only(connection, &queries)? {
            // If the schema changes after this check, a query fails instead of writing.
            connection.pragma_update(None, "query_only", true)?;
            TransactionBehavior::Deferred
        } else {
            TransactionBehavior::Immediate
        };
        let change = Transaction::new_unchecked(connection, behavior)?;
        d1_guard::restrict(&change)?;
        let written = queries
            .iter()
            .try_for_each(|query| write_result(&change, query, &mut results));
        d1_guard::remove_authorizer(&change)?;
        written?;
        change.commit()?;
        Ok::<_, LocalError>(results.finish())
    };
    database.run(run).await
}

/// Returns whether all statements only read, so that the queries need no write lock. A statement that cannot be
/// prepared ends the queries, so later statements do not count.
fn is_read_only(connection: &Connection, queries: &[Query]) -> rusqlite::Result<bool> {
    d1_guard::restrict(connection)?;
    let mut is_read_only = true;
    'queries: for query in queries {
        let mut statements = Batch::new(connection, &query.sql);
        loop {
            match statements.next() {
                Ok(Some(statement)) if statement.readonly() => {}
                Ok(Some(_)) => {
                    is_read_only = false;
                    break 'queries;
                }
                Ok(None) => break,
                Err(_) => break 'queries,
            }
        }
    }
    d1_guard::remove_authorizer(connection)?;
    Ok(is_read_only)
}

fn write_result(connection: &Connection, query: &Query, results: &mut Results) -> Result<()> {
    let started = Instant::now();
    let before = total_changes(connection)?;
    let start = results.begin();
    let mut statements = Batch::new(connection, &query.sql);
    let mut has_rows = false;
    while let Some(mut statement) = statements.next()? {
        results.write_rows(&start, &mut statement, &query.params)?;
        has_rows = true;
    }
    if !has_rows {
        results.write_empty();
    }
    let size = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size";
    let meta = QueryMeta {
        duration: started.elapsed(),
        changes: total_changes(connection)? - before,
        last_row_id: connection.last_insert_rowid(),
        database_bytes: connection.query_row(size, [], |row| row.get(0))?,
    };
    results.end(&start, &meta)
}

fn total_changes(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("SELECT total_changes()", [], |row| row.get(0))
}
