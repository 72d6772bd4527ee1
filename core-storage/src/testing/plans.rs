//! How SQLite and Postgres plan queries.

use tokio_postgres::{Client, SimpleQueryMessage};

use super::{TestDatabase, connect, postgres};
use crate::query::Select;
use crate::sql::{Dialect, ddl, with_literals};
use crate::tables;

/// Asks two empty databases with every table. Postgres is told to scan and sort only where no index helps, since a scan of
/// nothing costs nothing.
#[derive(Debug)]
pub struct Planners {
    sqlite: rusqlite::Connection,
    postgres: Client,
    _database: TestDatabase,
}

/// How the databases plan a query, a line a step.
#[derive(Clone, Debug)]
pub struct Plans {
    /// SQLite's `EXPLAIN QUERY PLAN`.
    pub sqlite: Vec<String>,
    /// Postgres' `EXPLAIN`.
    pub postgres: Vec<String>,
}

impl Planners {
    /// Makes the databases.
    ///
    /// # Panics
    /// When one cannot be made.
    pub async fn new() -> Self {
        let database = postgres().await;
        let planners = Self {
            postgres: connect(&database.url).await,
            sqlite: rusqlite::Connection::open_in_memory().expect("SQLite opens"),
            _database: database,
        };
        let schema = |dialect| -> String {
            let tables = tables::all().into_iter();
            tables
                .map(|table| ddl::create(table, dialect, false))
                .collect()
        };
        let created = planners.sqlite.execute_batch(&schema(Dialect::Sqlite));
        created.expect("SQLite takes the tables");
        let settings =
            "SET enable_seqscan = off; SET enable_sort = off; SET enable_bitmapscan = off;";
        for statements in [&schema(Dialect::Postgres), settings] {
            let created = planners.postgres.batch_execute(statements).await;
            created.expect("Postgres takes the tables");
        }
        planners
    }

    /// How both plan the query.
    ///
    /// # Panics
    /// When one does not understand it.
    pub async fn plans(&self, select: &Select) -> Plans {
        let text = |dialect, explain| format!("{explain} {}", with_literals(select, dialect));
        let explain = text(Dialect::Postgres, "EXPLAIN (COSTS OFF)");
        let explained = self.postgres.simple_query(&explain).await;
        let lines = explained.expect("Postgres plans the query");
        let lines = lines.iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0).map(|line| line.trim().to_owned()),
            _ => None,
        });
        Plans {
            sqlite: self
                .steps_in_sqlite(&text(Dialect::Sqlite, "EXPLAIN QUERY PLAN"))
                .expect("SQLite plans the query"),
            postgres: lines.collect(),
        }
    }

    fn steps_in_sqlite(&self, explain: &str) -> Result<Vec<String>, rusqlite::Error> {
        let mut explain = self.sqlite.prepare(explain)?;
        let steps = explain.query_map([], |row| row.get("detail"))?;
        steps.collect()
    }
}
