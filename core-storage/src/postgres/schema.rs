//! Runs the migrations.

use std::sync::Arc;

use core_domain::kernel::StoreError;

use super::connection::Connection;
use super::error::RunError;
use super::pool::{Pool, Work};
use crate::sql::{Dialect, ddl, migrations};
use crate::table::Table;

/// Processes that start at the same time wait without a limit.
const BEGIN: &str = "BEGIN; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0";
/// Held until the transaction ends. The number is arbitrary and unlikely to be used by anything else on the database.
const LOCK: &str = "SELECT pg_advisory_xact_lock(7305401991423)";

/// Runs the pending migrations, and creates the `extra` tables that are missing.
pub(super) async fn migrate(
    pool: &Arc<Pool>,
    schema: Option<&str>,
    extra: &[&'static Table],
) -> Result<(), StoreError> {
    let mut lease = pool.acquire().await?;
    // A failure leaves a transaction open.
    lease.work = Work::Statement;
    let connection = lease.connection()?;
    // Migrations have no time limit, and neither has the wait for the migrations of other processes.
    let limit = connection.set_answer_timeout(None);
    migrate_on(connection, schema, extra).await?;
    connection.set_answer_timeout(limit);
    lease.work = Work::None;
    Ok(())
}

async fn migrate_on(
    connection: &mut Connection,
    schema: Option<&str>,
    extra: &[&'static Table],
) -> Result<(), StoreError> {
    connection.run(BEGIN).await?;
    connection.run(LOCK).await?;
    if let Some(schema) = schema {
        let create = format!("CREATE SCHEMA IF NOT EXISTS {}", ddl::quoted(schema));
        connection.run(&create).await?;
    }
    connection.run(migrations::MIGRATIONS_TABLE).await?;
    let done = connection.rows(migrations::MIGRATIONS_DONE, &[]).await;
    let done = done.map_err(RunError::into_failure)?;
    let done = done
        .iter()
        .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)));
    let done: Result<Vec<(String, String)>, tokio_postgres::Error> = done.collect();
    let done = done.map_err(StoreError::backend)?;
    for migration in migrations::pending(&done, Dialect::Postgres)? {
        connection.run(migration.text).await?;
        let note = [migration.name, &migration.checksum];
        let noted = connection.rows(migrations::NOTE_MIGRATION, &note).await;
        noted.map_err(RunError::into_failure)?;
    }
    for table in extra {
        connection
            .run(&ddl::create(table, Dialect::Postgres, true))
            .await?;
    }
    connection.run("COMMIT").await
}
