//! Brings the schema up to date.

use std::sync::Arc;

use core_domain::kernel::StoreError;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection};

use super::error::failure;
use super::pool::Pool;
use crate::sql::{Dialect, ddl, migrations};
use crate::table::Table;

/// Held until the transaction ends; an arbitrary number that nothing else on the database is likely to use.
const LOCK: &str = "SELECT pg_advisory_xact_lock(7305401991423)";
/// Others that start wait for as long as it takes.
const NO_LIMITS: &str = "SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0";

/// Runs the migrations that have not run, and creates the `extra` tables that are missing.
pub(super) async fn migrate(
    pool: &Arc<Pool>,
    schema: Option<&str>,
    extra: &[&'static Table],
) -> Result<(), StoreError> {
    let mut lease = pool.acquire().await?;
    let mut transaction = lease.connection()?.begin().await.map_err(failure)?;
    run(&mut transaction, NO_LIMITS).await?;
    run(&mut transaction, LOCK).await?;
    if let Some(schema) = schema {
        let create = format!("CREATE SCHEMA IF NOT EXISTS {}", ddl::quoted(schema));
        run(&mut transaction, create).await?;
    }
    run(&mut transaction, migrations::MIGRATIONS_TABLE).await?;
    let done = sqlx::query_as(migrations::MIGRATIONS_DONE);
    let done: Vec<(String, String)> = done.fetch_all(&mut *transaction).await.map_err(failure)?;
    for migration in migrations::pending(&done, Dialect::Postgres)? {
        run(&mut transaction, migration.text).await?;
        let noted = sqlx::query(migrations::NOTE_MIGRATION).bind(migration.name);
        let noted = noted.bind(migration.checksum).execute(&mut *transaction);
        noted.await.map_err(failure)?;
    }
    for table in extra {
        run(
            &mut transaction,
            ddl::create(table, Dialect::Postgres, true),
        )
        .await?;
    }
    transaction.commit().await.map_err(failure)
}

/// Runs statements of this crate.
async fn run(connection: &mut PgConnection, text: impl Into<String>) -> Result<(), StoreError> {
    let run = sqlx::raw_sql(AssertSqlSafe(text.into()));
    run.execute(connection).await.map(|_| ()).map_err(failure)
}
