//! The query plans of SQLite and Postgres.

use tokio_postgres::{Client, SimpleQueryMessage};

use super::{TestDatabase, connect, postgres};
use crate::query::Select;
use crate::sql::{Dialect, ddl, with_literals};
use crate::tables;

/// The error of a database that rejects a schema or a query.
type DatabaseError = Box<dyn std::error::Error + Send + Sync>;

/// Two empty databases with all tables. Postgres is configured to scan and sort only if no index helps, because
/// scanning an empty table costs nothing.
#[derive(Debug)]
pub struct PlanDatabases {
    sqlite: rusqlite::Connection,
    postgres: Client,
    _database: TestDatabase,
}

/// The plans of one query, one line for each step.
#[derive(Clone, Debug)]
pub struct Plans {
    /// The output of SQLite's `EXPLAIN QUERY PLAN`.
    pub sqlite: Vec<String>,
    /// The output of Postgres' `EXPLAIN`.
    pub postgres: Vec<String>,
}

impl PlanDatabases {
    /// Creates the databases.
    ///
    /// # Errors
    /// The error of the database that rejects the tables.
    pub async fn new() -> Result<Self, DatabaseError> {
        let database = postgres().await;
        let schema = |dialect| -> String {
            let tables = tables::all().into_iter();
            tables
                .map(|table| ddl::create(table, dialect, false))
                .collect()
        };
        let sqlite = rusqlite::Connection::open_in_memory()?;
        sqlite.execute_batch(&schema(Dialect::Sqlite))?;
        let postgres = connect(&database.url).await;
        let settings =
            "SET enable_seqscan = off; SET enable_sort = off; SET enable_bitmapscan = off;";
        for statements in [&schema(Dialect::Postgres), settings] {
            postgres.batch_execute(statements).await?;
        }
        Ok(Self {
            sqlite,
            postgres,
            _database: database,
        })
    }

    /// Returns the plans of both databases for the query.
    ///
    /// # Errors
    /// The error of the database that rejects the query.
    pub async fn plans(&self, select: &Select) -> Result<Plans, DatabaseError> {
        let text = |dialect, explain| format!("{explain} {}", with_literals(select, dialect));
        let explain = text(Dialect::Postgres, "EXPLAIN (COSTS OFF)");
        let explained = self.postgres.simple_query(&explain).await?;
        let lines = explained.iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0).map(|line| line.trim().to_owned()),
            _ => None,
        });
        Ok(Plans {
            sqlite: self.steps_in_sqlite(&text(Dialect::Sqlite, "EXPLAIN QUERY PLAN"))?,
            postgres: lines.collect(),
        })
    }

    fn steps_in_sqlite(&self, explain: &str) -> Result<Vec<String>, rusqlite::Error> {
        let mut explain = self.sqlite.prepare(explain)?;
        let steps = explain.query_map([], |row| row.get("detail"))?;
        steps.collect()
    }
}
