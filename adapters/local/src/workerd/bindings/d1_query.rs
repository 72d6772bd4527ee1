//! Running the statements of a script on a SQLite file.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::fallible_iterator::FallibleIterator;
use rusqlite::limits::Limit;
use rusqlite::types::{Value as SqlValue, ValueRef};
use rusqlite::{Batch, Connection, Statement, Transaction, TransactionBehavior, params_from_iter};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

use crate::error::{LocalError, Result};
use crate::sqlite::Database;

/// Settings of SQLite that hold for the whole process, and are for no script to change.
const OF_THE_PROCESS: [&str; 4] = [
    "temp_store_directory",
    "data_store_directory",
    "soft_heap_limit",
    "hard_heap_limit",
];

/// How long the statements of one request may take.
const MOST_TIME: Duration = Duration::from_secs(30);

/// One query: one or more statements, of which those that have parameters take all of them.
#[derive(Deserialize)]
pub(super) struct Query {
    sql: String,
    #[serde(default)]
    params: Option<Vec<Value>>,
}

impl Query {
    /// Which setting of the whole process the query names, if any.
    pub(super) fn setting_of_the_process(&self) -> Option<&'static str> {
        let sql = self.sql.to_ascii_lowercase();
        let mut settings = OF_THE_PROCESS.into_iter();
        settings.find(|setting| sql.contains(setting))
    }
}

/// How rows are answered.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// One object a row.
    Objects,
    /// The names of the columns, and one list a row.
    Rows,
}

/// Runs queries in one transaction; what goes wrong undoes all of them.
pub(super) async fn run(path: &Path, queries: Vec<Query>, form: Form) -> Result<Vec<Value>> {
    // What SQLite says of a file it cannot open names the file.
    let database = Database::open(path).await;
    let database = database.map_err(|error| LocalError::Io(std::io::Error::other(error)))?;
    let (give, handle) = oneshot::channel();
    let work = database.run(move |connection| {
        // Nobody listens any more only when the request was given up.
        let _ = give.send(connection.get_interrupt_handle());
        // A script reaches its own file, and no other by `ATTACH` or `VACUUM INTO`.
        connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
        let behavior = TransactionBehavior::Immediate;
        let change = Transaction::new_unchecked(connection, behavior)?;
        let results: rusqlite::Result<Vec<Value>> = queries
            .iter()
            .map(|query| answer(&change, query, form))
            .collect();
        let results = results?;
        change.commit()?;
        Ok(results)
    });
    tokio::pin!(work);
    match tokio::time::timeout(MOST_TIME, &mut work).await {
        Ok(done) => done,
        Err(_) => {
            if let Ok(handle) = handle.await {
                handle.interrupt();
            }
            work.await
        }
    }
}

fn answer(connection: &Connection, query: &Query, form: Form) -> rusqlite::Result<Value> {
    let started = Instant::now();
    let before = total_changes(connection)?;
    let params: Vec<SqlValue> = query.params.iter().flatten().map(to_sql).collect();
    let mut rows = Rows::default();
    let mut statements = Batch::new(connection, &query.sql);
    while let Some(mut statement) = statements.next()? {
        rows = rows_of(&mut statement, &params)?;
    }
    let changes = total_changes(connection)? - before;
    let size = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size";
    let size: i64 = connection.query_row(size, [], |row| row.get(0))?;
    Ok(json!({
        "success": true,
        "meta": {
            "served_by": "local",
            "duration": started.elapsed().as_secs_f64() * 1_000.0,
            "changes": changes,
            "last_row_id": connection.last_insert_rowid(),
            "changed_db": changes != 0,
            "size_after": size,
            "rows_read": rows.rows.len(),
            "rows_written": changes,
        },
        "results": rows.shown(form),
    }))
}

#[derive(Default)]
struct Rows {
    columns: Vec<String>,
    rows: Vec<Vec<Value>>,
}

impl Rows {
    fn shown(self, form: Form) -> Value {
        if form == Form::Rows {
            return json!({ "columns": self.columns, "rows": self.rows });
        }
        let columns = &self.columns;
        let object = |row: Vec<Value>| columns.iter().cloned().zip(row).collect::<Map<_, _>>();
        self.rows.into_iter().map(object).collect()
    }
}

fn rows_of(statement: &mut Statement<'_>, params: &[SqlValue]) -> rusqlite::Result<Rows> {
    let columns: Vec<String> = statement
        .column_names()
        .into_iter()
        .map(str::to_owned)
        .collect();
    // A statement without parameters stands before the one that they are for.
    let params = if statement.parameter_count() == 0 {
        &[]
    } else {
        params
    };
    let mut found = statement.query(params_from_iter(params))?;
    let mut rows = Vec::new();
    while let Some(row) = found.next()? {
        let cells = (0..columns.len()).map(|at| row.get_ref(at).map(to_json));
        rows.push(cells.collect::<rusqlite::Result<_>>()?);
    }
    Ok(Rows { columns, rows })
}

fn total_changes(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("SELECT total_changes()", [], |row| row.get(0))
}

fn to_sql(value: &Value) -> SqlValue {
    match value {
        Value::Null => SqlValue::Null,
        Value::Bool(truth) => SqlValue::Integer(i64::from(*truth)),
        Value::Number(number) => number.as_i64().map_or_else(
            || SqlValue::Real(number.as_f64().unwrap_or_default()),
            SqlValue::Integer,
        ),
        Value::String(text) => SqlValue::Text(text.clone()),
        // Bytes come as a list of numbers.
        Value::Array(bytes) => {
            let byte = |value: &Value| value.as_u64().and_then(|byte| u8::try_from(byte).ok());
            SqlValue::Blob(bytes.iter().filter_map(byte).collect())
        }
        Value::Object(_) => SqlValue::Text(value.to_string()),
    }
}

fn to_json(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => number.into(),
        ValueRef::Real(number) => number.into(),
        ValueRef::Text(text) => String::from_utf8_lossy(text).into(),
        ValueRef::Blob(bytes) => bytes.into(),
    }
}
