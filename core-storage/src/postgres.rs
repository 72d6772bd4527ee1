//! The engine on Postgres, for several processes on one database.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use core_domain::kernel::{Clock, StoreError, Timestamp};
use core_domain::port::{Direction, Mode, Store};
use sqlx::error::DatabaseError;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::{Postgres, Row as _};

use crate::checked_tx::CheckedTx;
use crate::cursor::CursorKey;
use crate::filter::Filter;
use crate::query::Select;
use crate::row_store::{Replacement, RowStore, RowTx};
use crate::sql::ddl::{self, Dialect};
use crate::sql::driver::sql_driver;
use crate::sql::{self, Statement, migrations};
use crate::table::{Table, Type, VERSION};
use crate::unit::RecordStore;
use crate::value::{Row, Value, Visit};

/// What the Postgres store needs.
#[derive(Clone)]
pub struct PostgresConfig {
    /// `postgres://user:password@host:port/database`.
    pub url: String,
    /// Where `now` comes from; the database itself unless given. Several processes should leave it to the database.
    pub clock: Option<Arc<dyn Clock>>,
    /// What cursors are signed with; the same in every process on the database.
    pub cursor_key: CursorKey,
    /// How many connections at the most.
    pub connections: u32,
}

impl std::fmt::Debug for PostgresConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The address may hold a password.
        f.debug_struct("PostgresConfig")
            .field("clock", &self.clock)
            .field("connections", &self.connections)
            .finish_non_exhaustive()
    }
}

impl PostgresConfig {
    /// A store in the database, with the database's clock.
    pub fn new(url: impl Into<String>, cursor_key: impl Into<CursorKey>) -> Self {
        Self {
            url: url.into(),
            clock: None,
            cursor_key: cursor_key.into(),
            connections: 16,
        }
    }
}

/// Opens the store and brings its schema up to date; processes that start together wait for each other.
///
/// # Errors
/// [`StoreError::Unavailable`] when the database cannot be reached; [`StoreError::Backend`] when the address is not
/// valid or the database was made by a newer version.
pub async fn open(config: PostgresConfig) -> Result<Arc<dyn Store>, StoreError> {
    let cursor_key = config.cursor_key.clone();
    let rows = rows(config, &[]).await?;
    Ok(Arc::new(RecordStore::new(rows, cursor_key)))
}

/// Opens the row engine; the `extra` tables are created if missing.
///
/// # Errors
/// As [`open`].
pub async fn rows(
    config: PostgresConfig,
    extra: &[&'static Table],
) -> Result<Arc<dyn RowStore>, StoreError> {
    // The cause is left out: it may quote the address, which may hold a password.
    let options = PgConnectOptions::from_str(&config.url)
        .map_err(|_| StoreError::backend("the database address is not valid"))?
        .statement_cache_capacity(512);
    let pool = PgPoolOptions::new()
        .max_connections(config.connections.max(2))
        .acquire_timeout(Duration::from_secs(30))
        .connect_with(options)
        .await
        .map_err(failure)?;
    let mut transaction = pool.begin().await.map_err(failure)?;
    // Held until the transaction ends; an arbitrary number that nothing else on the database is likely to use.
    sqlx::query("SELECT pg_advisory_xact_lock(7305401991423)")
        .execute(&mut *transaction)
        .await
        .map_err(failure)?;
    migrate(&mut transaction, Dialect::Postgres, extra).await?;
    transaction.commit().await.map_err(failure)?;
    Ok(Arc::new(PostgresRows {
        pool,
        clock: config.clock,
    }))
}

const WRITE: &str = "BEGIN ISOLATION LEVEL SERIALIZABLE";
const READ_COMMITTED: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";
const READ: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

#[derive(Debug)]
struct PostgresRows {
    pool: PgPool,
    clock: Option<Arc<dyn Clock>>,
}

#[async_trait]
impl RowStore for PostgresRows {
    async fn begin(&self, mode: Mode) -> Result<Box<dyn RowTx>, StoreError> {
        let connection = match mode {
            Mode::Auto => self.pool.acquire().await.map(Connection::Bare),
            Mode::Read => self
                .pool
                .begin_with(READ)
                .await
                .map(Connection::Transaction),
            Mode::Write => self
                .pool
                .begin_with(WRITE)
                .await
                .map(Connection::Transaction),
            Mode::ReadCommitted => self
                .pool
                .begin_with(READ_COMMITTED)
                .await
                .map(Connection::Transaction),
        };
        let tx = SqlTx {
            connection: connection.map_err(failure)?,
            clock: self.clock.clone(),
        };
        Ok(CheckedTx::wrap(Box::new(tx), mode))
    }
}

fn failure(error: sqlx::Error) -> StoreError {
    match &error {
        sqlx::Error::Database(database) => match database.code().as_deref().unwrap_or_default() {
            // Serialization failure; deadlock; and a unique violation the unit's snapshot did not show.
            "40001" | "40P01" | "23505" => StoreError::retry(error),
            code if is_connection_error(code) => StoreError::unavailable(error),
            _ => StoreError::backend(error),
        },
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed => StoreError::unavailable(error),
        _ => StoreError::backend(error),
    }
}

/// Connection exceptions, shutdown, too many connections.
fn is_connection_error(code: &str) -> bool {
    code.starts_with("08") || code.starts_with("57P") || code == "53300"
}

/// A commit that the server refused did not happen; any other failed commit may have.
fn commit_failure(error: sqlx::Error) -> StoreError {
    let code = error.as_database_error().and_then(DatabaseError::code);
    match code.as_deref() {
        // "Statement completion unknown".
        Some(code) if code != "40003" && !is_connection_error(code) => failure(error),
        _ => StoreError::commit_unknown(error),
    }
}

sql_driver!(
    Postgres,
    lock: " FOR UPDATE SKIP LOCKED",
    now: Some("SELECT CAST(FLOOR(EXTRACT(EPOCH FROM now()) * 1000) AS BIGINT)"),
    files: |migration| migration.postgres
);
